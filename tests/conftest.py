"""Fixtures that several folders of tests share."""

from __future__ import annotations

import os

import hypothesis
import pytest

from tests.media import Clips

# The same examples at every run; HYPOTHESIS_PROFILE=search looks for new ones.
hypothesis.settings.register_profile("same", derandomize=True)
hypothesis.settings.register_profile("search")
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture(scope="session")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Clips:
    """Small video files by name, written when they are first asked for."""
    return Clips(tmp_path_factory.mktemp("clips"))
