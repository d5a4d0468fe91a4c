"""Videos of runs: one in memory at a time."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

from tests.tasks.described import described_folder
from vip.store import Run
from vip.tasks import described_videos as module
from vip.tasks.described_videos import DescribedVideo, described_videos


@pytest.mark.slow
def test_a_run_is_forgotten_once_its_samples_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, video_of = list[weakref.ref[Run]](), module._video_of_run

    def noted(run: Run) -> DescribedVideo:
        read.append(weakref.ref(run))
        return video_of(run)

    monkeypatch.setattr(module, "_video_of_run", noted)
    folders = [str(described_folder(tmp_path / f"v{number}", 3)) for number in range(5)]
    for number, video in enumerate(described_videos(folders), 1):
        assert len(video.keyframes) == 3
        del video
        gc.collect()
        assert len(read) == number
        assert sum(run() is not None for run in read[:-1]) == 0
