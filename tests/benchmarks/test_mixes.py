"""A mix shows what its truth says, when it says so."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import av
import mixes
import numpy as np
import pytest
from mixes import Image, Mix, PhotoClip, Recipe, VideoClip, build, plan

from tests import clips as videos

RECIPE = Recipe("h264", 96, 54, seed=5, segments=7, shortest_s=0.9, longest_s=1.4, fps=10)
STRIPES = 8  # how many different clips the tests can tell apart


class Stripes:
    """A fine pattern of stripes, one of them bright: which one names the clip, and the contrast says how sharp it is."""

    length_s = 3.0

    def __init__(self, number: int) -> None:
        self.number, self.name = number, f"stripe {number}"

    def frames(self, start_s: float, count: int, recipe: Recipe) -> Iterator[Image]:
        image = np.full((recipe.height, recipe.width, 3), 60, np.uint8)
        wide = recipe.width // STRIPES
        image[::4, self.number * wide : (self.number + 1) * wide] = 255
        for _ in range(count):
            yield image


CLIPS = [Stripes(number) for number in range(STRIPES)]


@pytest.fixture(scope="module")
def mix(tmp_path_factory: pytest.TempPathFactory) -> Mix:
    return build(RECIPE, CLIPS, tmp_path_factory.mktemp("mix"))


def frames_of(path: Path) -> list[tuple[float, Image]]:
    with av.open(str(path)) as container:
        return [(float(frame.time or 0), frame.to_ndarray(format="rgb24")) for frame in container.decode(video=0)]


def clip_in(image: Image) -> str:
    columns = image.astype(float).mean(axis=(0, 2)).reshape(STRIPES, -1).mean(axis=1)
    return f"stripe {int(columns.argmax())}"


def test_segments_follow_one_another_and_fill_the_video(mix: Mix) -> None:
    segments = mix.truth["segments"]
    assert len(segments) == RECIPE.segments
    assert segments[0]["start_s"] == 0
    assert [row["end_s"] for row in segments[:-1]] == [row["start_s"] for row in segments[1:]]
    assert segments[-1]["end_s"] == mix.truth["duration_s"] == len(frames_of(mix.video)) / RECIPE.fps


def test_each_frame_shows_the_clip_that_the_truth_names(mix: Mix) -> None:
    for time_s, image in frames_of(mix.video):
        if any(fault["start_s"] <= time_s < fault["end_s"] for fault in mix.truth["faults"]):
            continue
        named = next(row["clip"] for row in mix.truth["segments"] if row["start_s"] <= time_s < row["end_s"])
        assert clip_in(image) == named, time_s


def test_each_fault_opens_a_segment_and_can_be_seen(mix: Mix) -> None:
    shown = frames_of(mix.video)
    starts = {row["start_s"] for row in mix.truth["segments"]}
    sharp = min(image.std() for time_s, image in shown if not any(f["start_s"] <= time_s < f["end_s"] for f in mix.truth["faults"]))
    assert {fault["kind"] for fault in mix.truth["faults"]} == set(mixes.FAULTS)
    for fault in mix.truth["faults"]:
        assert fault["start_s"] in starts
        stretch = [image for time_s, image in shown if fault["start_s"] <= time_s < fault["end_s"]]
        assert len(stretch) in range(4, 9)
        if fault["kind"] == "black":
            assert max(image.max() for image in stretch) < 20
        elif fault["kind"] == "defocus":
            assert max(image.std() for image in stretch) < sharp / 2
        else:
            assert clip_in(stretch[0]) != clip_in(stretch[-1])


def test_the_same_seed_cuts_the_same_segments_and_another_seed_others() -> None:
    assert plan(RECIPE, CLIPS) == plan(RECIPE, CLIPS)
    assert plan(RECIPE, CLIPS) != plan(replace(RECIPE, seed=6), CLIPS)


def test_no_clip_comes_twice() -> None:
    names = [segment.clip.name for segment in plan(replace(RECIPE, segments=99), CLIPS)]
    assert sorted(names) == sorted(clip.name for clip in CLIPS)


@pytest.mark.parametrize("codec", ["h264", "hevc", "vp9", "av1"])
def test_sync_frames_come_at_least_once_a_gop(tmp_path: Path, codec: str) -> None:
    mix = build(replace(RECIPE, codec=codec, gop=10, segments=2), CLIPS, tmp_path)
    with av.open(str(mix.video)) as container:
        flags = [packet.is_keyframe for packet in container.demux(video=0) if packet.size]
    sync = [number for number, is_sync in enumerate(flags) if is_sync]
    assert sync[0] == 0
    assert np.diff([*sync, len(flags)]).max() <= 10


def test_without_a_gop_only_the_first_frame_is_a_sync_frame(tmp_path: Path) -> None:
    mix = build(replace(RECIPE, gop=0, segments=3), CLIPS, tmp_path)
    with av.open(str(mix.video)) as container:
        assert [packet.is_keyframe for packet in container.demux(video=0) if packet.size][:2] == [True, False]
        container.seek(0)
        assert sum(packet.is_keyframe for packet in container.demux(video=0) if packet.size) == 1


def test_a_mix_is_made_once(mix: Mix) -> None:
    before = mix.video.stat().st_mtime_ns
    assert build(RECIPE, CLIPS, mix.video.parent) == mix
    assert mix.video.stat().st_mtime_ns == before


def test_a_mix_that_was_cut_off_is_made_anew(tmp_path: Path) -> None:
    short = replace(RECIPE, segments=1)
    whole = build(short, CLIPS, tmp_path)
    whole.video.write_bytes(whole.video.read_bytes()[:100])
    whole.video.with_suffix(".json").unlink()  # it is written last
    assert len(frames_of(build(short, CLIPS, tmp_path).video)) == whole.truth["duration_s"] * short.fps


def test_a_video_of_another_rate_keeps_its_pace(tmp_path: Path) -> None:
    clip = VideoClip(videos.clip(tmp_path / "scenes.mp4", range(5)))  # one scene a second at 3 frames a second
    assert clip.length_s == pytest.approx(5)
    images = list(clip.frames(1.0, 20, replace(RECIPE, width=160, height=90)))
    for number, image in enumerate(images):
        scene = math.ceil(3 * (1 + number / 10) - 1e-6) // 3  # the first frame that is not earlier
        differences = [np.abs(image.astype(int) - videos.scene(other)).mean() for other in range(5)]
        assert int(np.argmin(differences)) == scene, number
    assert len(images) == 20


def test_a_picture_of_another_shape_gets_black_bars() -> None:
    shown = mixes.fit(np.full((90, 90, 3), 200, np.uint8), 160, 90)
    assert shown[:, :35].max() == shown[:, 125:].max() == 0
    assert shown[:, 35:125].min() == 200


def test_a_photograph_moves_and_fills_the_picture() -> None:
    first, later = list(PhotoClip("coffee.png").frames(0, 1, RECIPE)) + list(PhotoClip("coffee.png").frames(19, 1, RECIPE))
    assert first.shape == later.shape == (54, 96, 3)
    assert np.abs(first.astype(int) - later).mean() > 10


def test_clips_that_are_all_too_short_are_refused() -> None:
    with pytest.raises(ValueError, match=r"None of the 8 clips lasts 3\.5 s"):
        plan(replace(RECIPE, shortest_s=3.0), CLIPS)
