"""What the tests of the command line share."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.terminal import vip
from tests.clips import SAMPLE


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `vip run sample.mp4 -n 4 --engine offline`."""
    folder = tmp_path_factory.mktemp("undisturbed")
    done = vip(folder, "run", SAMPLE, "-n", "4", "--engine", "offline")
    assert done.code == 0, done.err
    return folder / "sample.vip"


@pytest.fixture
def extracted(undisturbed: Path, tmp_path: Path) -> Path:
    """A run folder sample.vip of four keyframes in tmp_path that are not described yet."""
    folder = tmp_path / "sample.vip"
    shutil.copytree(undisturbed, folder)
    for name in ("descriptions.jsonl", "report.html"):
        (folder / name).unlink()
    return folder


@pytest.fixture
def described(undisturbed: Path, tmp_path: Path) -> Path:
    """A run folder sample.vip of four keyframes in tmp_path, described by `offline`, with its report."""
    return Path(shutil.copytree(undisturbed, tmp_path / "sample.vip"))
