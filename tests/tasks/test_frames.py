"""Frames of videos: as many as asked, by vip or evenly spaced, chosen once."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path

import pytest

import vip
from tests.clips import SAMPLE
from vip import pipeline, store
from vip.config import SampleSettings
from vip.errors import InputError
from vip.tasks.frames import VideoFrames, choose_frames, show_frames


@pytest.mark.slow
def test_vip_chooses_as_extract_does_and_even_frames_lie_at_even_distances(tmp_path: Path) -> None:
    chosen = choose_frames(SAMPLE, 6, "vip", kept_in=tmp_path / "frames")
    as_usual = vip.extract(SAMPLE, out=tmp_path / "usual.vip", keyframes=6)
    assert [frame.time_s for frame in chosen.keyframes] == [frame.time_s for frame in as_usual.keyframes]
    assert show_frames(chosen).chosen == "vip algorithm1, classic"
    even = choose_frames(SAMPLE, 6, "even", kept_in=tmp_path / "frames")
    times = [frame.time_s or 0 for frame in even.keyframes]
    gaps = [second - first for first, second in pairwise(times)]
    assert len(times) == 6
    assert max(gaps) - min(gaps) <= 2 / 25
    assert show_frames(even).chosen == "evenly spaced"


@pytest.mark.slow
def test_frames_are_chosen_once_and_again_where_the_video_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    video = Path(shutil.copy(SAMPLE, tmp_path / "a.mp4"))
    (tmp_path / "b").mkdir()
    other = Path(shutil.copy(SAMPLE, tmp_path / "b" / "a.mp4"))
    first = choose_frames(video, 2, "even", kept_in=tmp_path / "frames")
    stamp = (first.folder / store.MANIFEST).stat().st_mtime_ns
    again = choose_frames(video, 2, "even", kept_in=tmp_path / "frames")
    assert (again.folder, (again.folder / store.MANIFEST).stat().st_mtime_ns) == (first.folder, stamp)
    assert choose_frames(other, 2, "even", kept_in=tmp_path / "frames").folder != first.folder
    video.write_bytes(video.read_bytes() + b"\0" * 8)
    choose_frames(video, 2, "even", kept_in=tmp_path / "frames")
    assert (first.folder / store.MANIFEST).stat().st_mtime_ns != stamp


@pytest.mark.slow
def test_a_run_gives_its_keyframes_or_another_number_of_its_candidates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = vip.extract(SAMPLE, out=tmp_path / "runs" / "film", keyframes=6)
    assert choose_frames(run.folder, 6, "vip", kept_in=tmp_path / "frames").folder == run.folder
    assert not (tmp_path / "frames").exists()
    even = choose_frames(run.folder, 4, "even", kept_in=tmp_path / "frames")
    assert show_frames(even).chosen == "evenly spaced"

    def refuse(*args: object, **options: object) -> None:
        raise AssertionError("the video is analyzed again")

    monkeypatch.setattr(pipeline, "extract", refuse)
    frames = VideoFrames([tmp_path / "runs"], SampleSettings(frames=3, frames_folder=tmp_path / "frames"))
    fewer = frames.of_video("film")
    assert len(fewer.pictures) == 3
    assert fewer.chosen == "vip algorithm1, classic"
    assert frames.of_video("film") is fewer
    assert len(VideoFrames([tmp_path / "runs"], SampleSettings()).of_video("film").pictures) == 6


@pytest.mark.parametrize("name", ["missing", "../a", "", "/etc/passwd"])
def test_a_video_that_is_not_there_is_one_sentence(name: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "a.mp4").write_bytes(b"no video")
    with pytest.raises(InputError, match="There is no run folder and no video"):
        VideoFrames([tmp_path / "in"], SampleSettings(frames_folder=tmp_path / "frames")).of_video(name)
