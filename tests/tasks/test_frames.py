"""Frames of videos: as many as asked, by vip or evenly spaced, chosen once."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import vip
from tests.clips import SAMPLE
from tests.report.runs import make_run
from vip import pipeline, store
from vip.config import ExtractSettings, SampleSettings
from vip.errors import InputError, UsageError
from vip.store import Run, load_run
from vip.tasks import frames as module
from vip.tasks.fiber.task import Fiber
from vip.tasks.frames import ShownFrames, VideoFrames, choose_frames, make_samples, show_frames, with_frames
from vip.tasks.infilling import VideoInfilling
from vip.tasks.nextqa.mc import NextqaMultiChoice
from vip.tasks.records import Blank, Sample, SamplePicture, Text
from vip.tasks.task import SampleSource
from vip.video import FileSource


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


@pytest.mark.parametrize("name", ["missing", "../a", "", ".", "..", "/etc/passwd", "é" * 125, "x" * 10**6, "nul\0"])
def test_a_video_that_is_not_there_is_one_sentence(name: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "a.mp4").write_bytes(b"no video")
    for place in (tmp_path, tmp_path / "in"):
        (place / "keyframes.jsonl").write_bytes(b"")  # the folder itself is no video of it
    with pytest.raises(InputError, match="There is no run folder and no video"):
        VideoFrames([tmp_path / "in"], SampleSettings(frames_folder=tmp_path / "frames")).of_video(name)


def test_a_link_to_a_run_elsewhere_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "videos").mkdir()
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "keyframes.jsonl").write_bytes(b"")
    (tmp_path / "videos" / "film").symlink_to(tmp_path / "private")
    with pytest.raises(InputError, match=r"film is a link, and vip follows none to a run\. Copy the run folder there\."):
        VideoFrames([tmp_path / "videos"], SampleSettings()).find("film")
    (tmp_path / "named").symlink_to(tmp_path / "videos")
    (tmp_path / "videos" / "film").unlink()
    (tmp_path / "private").rename(tmp_path / "videos" / "film")
    assert VideoFrames([tmp_path / "named"], SampleSettings()).find("film") == tmp_path / "named" / "film"


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, str, dict[str, object]]]:
    """What is asked of the extraction and of the selection: no video is read."""
    calls: list[tuple[str, str, dict[str, object]]] = []
    made = make_run(tmp_path / "made", rules=("kept",) * 2)

    def extract(source: object, *, out: Path, settings: ExtractSettings, overwrite: bool) -> Run:
        assert overwrite
        names = ("keyframes", "start", "end", "sampler", "pruner")
        calls.append(("extract", out.name, {name: getattr(settings, name) for name in names if name in settings.model_fields_set}))
        return made

    def reselect(run: Run, *, out: Path, keyframes: int, overwrite: bool) -> Run:
        assert overwrite
        calls.append(("reselect", out.name, {"keyframes": keyframes}))
        return made

    monkeypatch.setattr(pipeline, "extract", extract)
    monkeypatch.setattr(pipeline, "reselect", reselect)
    return calls


def test_a_clip_has_frames_and_a_folder_of_its_own(chosen: list[tuple[str, str, dict[str, object]]], tmp_path: Path) -> None:
    (tmp_path / "film.mp4").write_bytes(b"")
    frames = VideoFrames([tmp_path], SampleSettings(frames=4, frames_by="even", frames_folder=tmp_path / "frames"))
    clips: list[tuple[float | None, float | None]] = [(None, None), (1.0, 2.5), (1.0, 4.0), (0.5, 2.5), (None, 2.5), (1.0, None)]
    for _ in range(2):
        for start, end in clips:
            frames.of_video("film", start, end)
    names = [name for _, name, _ in chosen]
    assert len(chosen) == len(set(names)) == len(clips)
    place = names[0].split("-")[1]
    assert names[:2] + names[4:] == [
        f"film-{place}-even-4.vip",
        f"film-{place}-1s-2.5s-even-4.vip",
        f"film-{place}--2.5s-even-4.vip",
        f"film-{place}-1s--even-4.vip",
    ]
    assert [(more.get("start"), more.get("end")) for _, _, more in chosen] == clips
    assert {(kind, more["keyframes"], more["sampler"], more["pruner"]) for kind, _, more in chosen} == {("extract", 4, "uniform", "none")}


def test_vip_chooses_eight_frames_where_nothing_is_said(chosen: list[tuple[str, str, dict[str, object]]], tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "film.mp4").write_bytes(b"")
        VideoFrames([tmp_path / folder], SampleSettings(frames_folder=tmp_path)).of_video("film")
    assert [(kind, more) for kind, _, more in chosen] == [("extract", {"keyframes": 8, "start": None, "end": None})] * 2
    assert all(name.endswith("-vip-8.vip") for _, name, _ in chosen)
    assert chosen[0][1] != chosen[1][1], "videos of one name in two folders"


def test_a_link_in_the_place_of_a_folder_for_frames_is_not_followed(
    chosen: list[tuple[str, str, dict[str, object]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "film.mp4").write_bytes(b"")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "frames").symlink_to("elsewhere")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"frames is a link, and vip writes through none that you did not name\. Remove it, or name one"):
        VideoFrames([tmp_path], SampleSettings()).of_video("film")
    assert chosen == []
    VideoFrames([tmp_path], SampleSettings(frames_folder=Path("frames"))).of_video("film")
    ((_, name, _),) = chosen
    (tmp_path / "elsewhere" / name).symlink_to(tmp_path)
    with pytest.raises(UsageError, match=rf"frames.{name} is a link"):
        VideoFrames([tmp_path], SampleSettings(frames_folder=Path("frames"))).of_video("film")
    assert len(chosen) == 1


def test_keyframes_of_a_run_are_those_inside_the_clip_with_both_of_its_ends(tmp_path: Path) -> None:
    make_run(tmp_path / "film", rules=("kept",) * 6)  # one each second
    frames = VideoFrames([tmp_path], SampleSettings())

    def times(start: float | None, end: float | None) -> list[float | None]:
        return [one.time_s for one in frames.of_video("film", start, end).pictures]

    assert times(1.0, 3.0) == [1.0, 2.0, 3.0]
    assert times(1.1, 2.9) == [2.0]
    assert times(None, 1.0) == [0.0, 1.0]
    assert times(4.0, None) == [4.0, 5.0]
    assert times(None, None) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert times(1.0, 2.0) == [1.0, 2.0], "the clip that begins there too has other frames"


def test_a_run_is_taken_as_it_is_where_number_and_chooser_are_those_that_are_asked_for(
    chosen: list[tuple[str, str, dict[str, object]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "film", rules=("kept",) * 4)
    monkeypatch.setattr(module, "video_of", lambda manifest, video: FileSource(tmp_path / "film.mp4"))
    kept = tmp_path / "frames"
    assert choose_frames(run.folder, 4, "vip", kept_in=kept).folder == run.folder
    assert not chosen
    choose_frames(run.folder, 3, "vip", kept_in=kept)
    choose_frames(run.folder, 4, "even", kept_in=kept)
    choose_frames(run.folder, 4, "vip", kept_in=kept, start_s=1.0)
    choose_frames(run.folder, 4, "vip", kept_in=kept, end_s=2.0)
    assert [kind for kind, _, _ in chosen] == ["reselect", "extract", "extract", "extract"]
    chosen.clear()
    manifest = json.loads((run.folder / store.MANIFEST).read_text())
    manifest["backends"] = {"sampler": "uniform", "pruner": "none", "embedder": "classic"}
    (run.folder / store.MANIFEST).write_text(json.dumps(manifest))
    assert show_frames(load_run(run.folder)).chosen == "evenly spaced"
    choose_frames(run.folder, 4, "vip", kept_in=kept)
    assert [kind for kind, _, _ in chosen] == ["reselect"], "evenly spaced frames are none that vip chose"


def test_a_run_that_was_made_elsewhere_opens_no_video(tmp_path: Path) -> None:
    run = make_run(tmp_path / "film", rules=("kept",) * 4)
    with pytest.raises(InputError, match="was made elsewhere, so its video is not opened"):
        choose_frames(run.folder, 4, "even", kept_in=tmp_path / "frames")
    (run.folder / store.MANIFEST).unlink()
    assert show_frames(load_run(run.folder)).chosen == "pictures of a folder"


def test_frames_of_a_clip_are_asked_for_by_its_own_name_and_stand_in_front_of_what_is_shown() -> None:
    asked: list[tuple[object, ...]] = []

    class Frames(VideoFrames):
        def of_video(self, video: str, start_s: float | None = None, end_s: float | None = None) -> ShownFrames:
            asked.append((video, start_s, end_s))
            return ShownFrames((SamplePicture(source=video, keyframe_id="k"),), "by hand")

    samples = [blank("film", 1, 2).model_copy(update={"clip": "film_3", "context": (Text(text="said"),)}), blank("other")]
    first, second = with_frames(samples, Frames([], SampleSettings()))
    assert asked == [("film_3", 1, 2), ("other", None, None)]
    assert [piece.kind for piece in first.context] == ["picture", "text"]
    assert (first.frames_chosen, second.frames_chosen) == ("by hand", "by hand")


def test_settings_that_a_task_has_no_use_for_are_named(tmp_path: Path) -> None:
    for task, settings, said in (
        (VideoInfilling(), SampleSettings(frames=4), "infilling shows no frames of videos. Leave --frames out."),
        (VideoInfilling(), SampleSettings(frames_by="even"), "infilling shows no frames of videos. Leave --frames-by out."),
        (VideoInfilling(), SampleSettings(chunker="spacy:x"), "infilling makes no blanks of captions. Leave --chunker out."),
        (VideoInfilling(), SampleSettings(available=tmp_path), "infilling makes no blanks of captions. Leave --available out."),
        (NextqaMultiChoice(), SampleSettings(labels=tmp_path), "nextqa-mc takes no labels. Leave --labels out."),
        (Fiber(), SampleSettings(subtitles=tmp_path), "fiber has no subtitles. Leave --subtitles out."),
    ):
        with pytest.raises(UsageError, match=re.escape(said)):
            make_samples(task, SampleSource(paths=(), settings=settings))


def test_as_many_samples_are_drawn_as_are_asked_for_by_the_seed(tmp_path: Path) -> None:
    class Many(Fiber):
        def samples(self, source: SampleSource) -> Iterator[Sample]:
            yield from (blank(f"v{number}") for number in range(20))

    drawn = [
        [one.video for one in make_samples(Many(), SampleSource(paths=(), settings=SampleSettings(most=6, seed=seed)))]
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert list(map(len, drawn)) == [6, 6, 6]
