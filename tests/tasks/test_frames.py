"""Frames of videos: as many as asked, by vip or evenly spaced, chosen once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import vip
from tests.clips import SAMPLE
from vip import pipeline, store
from vip.config import SampleSettings
from vip.errors import InputError, UsageError
from vip.tasks.fiber.task import Fiber
from vip.tasks.frames import ShownFrames, VideoFrames, choose_frames, make_samples, show_frames
from vip.tasks.infilling import VideoInfilling
from vip.tasks.records import Blank, Sample, SamplePicture
from vip.tasks.task import SampleSource


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


def blank(video: str, start_s: float | None = None, end_s: float | None = None) -> Sample:
    ask = Blank(text="A _____ at dusk.")
    return Sample(id=f"{video} {start_s}", task="fiber", task_version=1, video=video, start_s=start_s, end_s=end_s, ask=ask)


class Blanks(Fiber):
    """The task with samples of its own."""

    def samples(self, source: SampleSource) -> Iterator[Sample]:
        yield from (blank("film", 3.2, 6.8), blank("film"), blank("film", 20, 24))


@pytest.mark.slow
def test_samples_of_a_clip_show_frames_of_the_clip(tmp_path: Path) -> None:
    shutil.copy(SAMPLE, tmp_path / "film.mp4")
    settings = SampleSettings(videos=tmp_path, frames=2, frames_by="even", frames_folder=tmp_path / "frames")
    clip, whole, _ = make_samples(Blanks(), SampleSource(paths=(), settings=settings))
    assert [len(sample.context) for sample in (clip, whole)] == [2, 2]
    assert all(3.2 <= (piece.time_s or 0) <= 6.8 for piece in clip.context if isinstance(piece, SamplePicture))
    assert clip.frames_chosen == "evenly spaced"
    assert Blanks().request(clip, None).text.startswith("You see 2 frames of a video, in order of time. One noun phrase")
    assert Blanks().request(blank("film"), None).text.startswith("You see nothing of the video")
    vip.extract(tmp_path / "film.mp4", out=tmp_path / "runs" / "film", keyframes=6)
    of_run = list(make_samples(Blanks(), SampleSource(paths=(), settings=SampleSettings(videos=tmp_path / "runs"))))
    assert 0 < len(of_run[0].context) < len(of_run[1].context) == 6


def test_frames_are_chosen_for_the_samples_that_are_drawn_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float | None] = []
    monkeypatch.setattr(VideoFrames, "of_video", lambda self, video, start_s, end_s: asked.append(start_s) or ShownFrames((), "none"))
    settings = SampleSettings(videos=tmp_path, most=1)
    (one,) = make_samples(Blanks(), SampleSource(paths=(), settings=settings))
    assert asked == [one.start_s]


def test_what_shows_no_frames_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"infilling shows no frames of videos\. Leave --videos out\."):
        make_samples(VideoInfilling(), SampleSource(paths=(), settings=SampleSettings(videos=tmp_path)))
    with pytest.raises(InputError, match=r"nowhere is no folder\. Give the folder of the videos"):
        make_samples(Fiber(), SampleSource(paths=(), settings=SampleSettings(videos=tmp_path / "nowhere")))


@pytest.mark.parametrize("name", ["missing", "../a", "", "/etc/passwd"])
def test_a_video_that_is_not_there_is_one_sentence(name: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "a.mp4").write_bytes(b"no video")
    with pytest.raises(InputError, match="There is no run folder and no video"):
        VideoFrames([tmp_path / "in"], SampleSettings(frames_folder=tmp_path / "frames")).of_video(name)
