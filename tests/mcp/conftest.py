"""Roots with videos."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.clips import SAMPLE, clip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a short video."""
    clip(tmp_path / "videos" / "short.mp4")
    return tmp_path / "videos"


@pytest.fixture
def long_root(root: Path) -> Path:
    """The same with a video whose keyframes take some seconds."""
    shutil.copyfile(SAMPLE, root / "long.mp4")
    return root
