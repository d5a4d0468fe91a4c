"""Questions about long videos: the frames are found with under 2 % of the video decoded, and nothing else changes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import av
import pytest

import vip
from tests.clips import clip, scene, stamps
from tests.search.asked import SceneEmbedder
from vip import registry, store
from vip.config import ExtractSettings
from vip.protocols import SilentObserver
from vip.records import Image, Vectors
from vip.search import ask_long
from vip.search.ask_frames import ChosenFrames, choose_frames
from vip.video.reader import Video

SCENE_S = 10
SCENES, RATE, BLACK = 40, 12, 25
SRT = "1\n00:03:12,100 --> 00:03:12,900\nNow the pump fails.\n"


class CountingEmbedder(SceneEmbedder):
    """The joint space of the scenes, in which `nothing` is a black picture; it counts what it is shown."""

    shown = 0

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        return super().embed_images([scene(0) * 0]) if "nothing" in texts[0] else super().embed_texts(texts)

    def embed_images(self, images: Sequence[Image]) -> Vectors:
        CountingEmbedder.shown += len(images)
        return super().embed_images(images)


@pytest.fixture(scope="module")
def long_video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty scenes of ten seconds each, one of them black; decoding can begin at each second."""
    path = tmp_path_factory.mktemp("long") / "talk.mp4"
    with av.open(str(path), "w") as output:
        stream: Any = output.add_stream("libx264", rate=RATE, options={"g": str(RATE), "preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = 160, 90, "yuv420p"
        for number in range(SCENES):
            picture = scene(number) * (number != BLACK)
            for _ in range(SCENE_S * RATE):
                output.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        output.mux(stream.encode(None))
    return path


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The frames that decoders gave, one entry each."""
    given: list[int] = []
    decode = Video._decode_packets

    def counting(self: Video, *args: Any, **options: Any) -> Iterator[Any]:
        for frame in decode(self, *args, **options):
            given.append(1)
            yield frame

    monkeypatch.setattr(Video, "_decode_packets", counting)
    return given


@pytest.fixture(autouse=True)
def _joint_space(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(registry.BUILT_IN["embedder"], "scenes", f"{CountingEmbedder.__module__}:CountingEmbedder")
    monkeypatch.setattr(ask_long, "LONG_S", 300.0)
    monkeypatch.setattr(CountingEmbedder, "shown", 0)
    monkeypatch.chdir(tmp_path)


def choose(source: Any, question: str, frames: int = 3, **options: Any) -> ChosenFrames:
    return choose_frames(
        source,
        question,
        frames=frames,
        words=True,
        out=None,
        overwrite=options.pop("overwrite", False),
        settings=ExtractSettings(**{"embedder": "scenes", **options}),
        observer=SilentObserver(),
        isolated=False,
    )


def scenes_of(chosen: ChosenFrames) -> list[int]:
    return [int((keyframe.time_s or 0) // SCENE_S) for _, keyframe in chosen.keyframes]


@pytest.mark.parametrize("number", [0, 19, 37])
def test_the_scene_is_found_and_under_two_percent_is_decoded(long_video: Path, decoded: list[int], number: int) -> None:
    chosen = choose(long_video, f"where is scene {number}?")
    assert number in scenes_of(chosen)
    assert len(chosen.keyframes) == 3
    total = SCENES * SCENE_S * RATE
    assert 0 < CountingEmbedder.shown < 0.02 * total
    assert len(decoded) < 0.02 * total
    (note,) = chosen.notes
    assert f"of {total:,}: " in note
    assert {path.name for path in Path("talk.vip").iterdir()} == {"asked"}


def test_all_of_it_is_analyzed_where_the_video_is_short_or_the_embedder_knows_no_texts(
    long_video: Path, tmp_path: Path, decoded: list[int]
) -> None:
    short = clip(tmp_path / "short.mp4", range(8))
    assert scenes_of(choose(short, "why scene 5?", frames=1)) == [0]
    assert (tmp_path / "short.vip" / store.MANIFEST).exists()
    chosen = choose(long_video, "where is scene 5?", embedder="classic")
    assert (Path("talk.vip") / store.MANIFEST).exists()
    assert "the embedder classic compares no pictures with questions" in chosen.notes[0]


def test_frames_that_show_nothing_are_not_chosen_even_where_they_fit_best(long_video: Path) -> None:
    chosen = scenes_of(choose(long_video, "where is nothing?"))
    assert len(chosen) == 3
    assert BLACK not in chosen


def test_another_video_under_the_same_name_is_looked_at_itself(long_video: Path, tmp_path: Path) -> None:
    video = tmp_path / "talk.mp4"
    video.write_bytes(long_video.read_bytes())
    first = choose(video, "where is scene 7?")
    shown = CountingEmbedder.shown
    os.utime(video, (1, 1))
    again = choose(video, "where is scene 7?")
    assert CountingEmbedder.shown > shown
    assert {folder for folder, _ in again.keyframes} != {folder for folder, _ in first.keyframes}


def test_a_second_time_nothing_is_decoded(long_video: Path, decoded: list[int]) -> None:
    first = choose(long_video, "where is scene 7?")
    before, shown = len(decoded), CountingEmbedder.shown
    again = choose(long_video, "where is scene 7?")
    assert (len(decoded), CountingEmbedder.shown) == (before, shown)
    assert again == first
    choose(long_video, "where is scene 8?")
    assert CountingEmbedder.shown > shown


def test_the_run_stays_as_it_is_and_can_be_made_later(long_video: Path) -> None:
    choose(long_video, "where is scene 7?")
    run = vip.extract(long_video, keyframes=3, embedder="scenes", candidates=30)
    before = stamps(run.folder)
    chosen = choose(run.folder, "where is scene 21?")
    assert 21 in scenes_of(chosen)
    assert {folder.parents[1] for folder, _ in chosen.keyframes} == {run.folder}
    assert {name: stamp for name, stamp in stamps(run.folder).items() if not name.startswith("asked/")} == {
        name: stamp for name, stamp in before.items() if not name.startswith("asked/")
    }


def test_words_and_pictures_of_the_chosen_frames_are_there(long_video: Path, tmp_path: Path) -> None:
    video = tmp_path / "talk.mp4"
    video.write_bytes(long_video.read_bytes())
    video.with_suffix(".srt").write_text(SRT)
    answer = vip.ask(video, "where is scene 19?", frames=2, embedder="scenes")
    assert answer.status == "not_asked"
    assert "Now the pump fails." in [frame.words for frame in answer.frames]
    for frame in answer.frames:
        assert store.read_picture(tmp_path / frame.image_path, inside=tmp_path).shape == (90, 160, 3)


def test_a_part_of_a_long_video_is_searched_alone(long_video: Path) -> None:
    chosen = choose(long_video, "where is scene 3?", start=0, end=310)
    assert 3 in scenes_of(chosen)
    assert max(scenes_of(chosen)) < 31
    part = choose(long_video, "where is scene 3?", start=50, end=390)
    assert min(scenes_of(part)) >= 5


def test_another_part_number_of_frames_or_embedder_is_another_search(long_video: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.BUILT_IN["embedder"], "others", f"{CountingEmbedder.__module__}:CountingEmbedder")
    assert 35 not in scenes_of(choose(long_video, "where is scene 35?", end=310))
    assert 35 in scenes_of(choose(long_video, "where is scene 35?", end=390))
    assert 2 in scenes_of(choose(long_video, "where is scene 2?", end=390))
    assert 2 not in scenes_of(choose(long_video, "where is scene 2?", start=50, end=390))
    assert len(choose(long_video, "where is scene 2?", 2, end=390).keyframes) == 2
    shown = CountingEmbedder.shown
    choose(long_video, "where is scene 2?", 2, end=390, embedder="others")
    assert CountingEmbedder.shown > shown


def test_what_a_killed_search_left_is_made_again(long_video: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ask_long, "_write_pictures", fail)
        with pytest.raises(KeyboardInterrupt):
            choose(long_video, "where is scene 7?")
    assert 7 in scenes_of(choose(long_video, "where is scene 7?"))


@pytest.mark.parametrize("is_finished", [False, True])
def test_a_link_in_the_folder_leads_nowhere(is_finished: bool, long_video: Path, tmp_path: Path) -> None:
    ((folder, _), *_) = choose(long_video, "where is scene 7?").keyframes
    folder.rename(tmp_path / "outside")
    folder.symlink_to(tmp_path / "outside")
    if not is_finished:
        (tmp_path / "outside" / ask_long.LOOKED).unlink()
    before = stamps(tmp_path / "outside")
    with pytest.raises(vip.errors.StoreError):
        choose(long_video, "where is scene 7?")
    assert stamps(tmp_path / "outside") == before
