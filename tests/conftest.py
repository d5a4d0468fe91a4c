"""Fixtures that several folders of tests share."""

from __future__ import annotations

import pytest

from tests.media import Clips


@pytest.fixture(scope="session")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Clips:
    """Small video files by name, written when they are first asked for."""
    return Clips(tmp_path_factory.mktemp("clips"))
