"""`katna`: the paper's extractor against a plain reading of its steps, and the bugs that it does not have."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from fractions import Fraction

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clips import scene
from vip.extraction.samplers import katna
from vip.extraction.samplers.katna import (
    KatnaSampler,
    Numbers,
    before_changes,
    local_maxima,
    numbers_of,
    sharpest_of_clusters,
    smooth,
    within_bounds,
)
from vip.records import Frame, Image, PacketIndex

TIME_BASE = Fraction(1, 25)


def frame(number: int, image: Image) -> Frame:
    return Frame(number, TIME_BASE, image)


def video(frames: int, shot: int = 30) -> Iterator[Frame]:
    """A new scene every `shot` frames, with a little motion in each."""
    for number in range(frames):
        image = scene(number // shot).copy()
        image[number % 90, :, :] = 128
        yield frame(number, image)


def row(pts: int, brightness: float = 50, entropy: float = 5, sharpness: float = 1, level: int = 0) -> Numbers:
    histogram = np.zeros(256, np.float32)
    histogram[level] = 1000
    return Numbers(pts, brightness, entropy, sharpness, histogram)


def test_the_frame_before_each_cut_is_found() -> None:
    found = [numbers.pts for numbers in before_changes(video(150))]
    cuts = [29, 59, 89, 119]
    assert all(any(abs(pts - cut) <= 1 for pts in found) for cut in cuts), found


def test_differences_run_through_where_old_frames_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [numbers.pts for numbers in before_changes(video(200))]
    monkeypatch.setattr(katna, "FORGET_EVERY", 61)
    assert [numbers.pts for numbers in before_changes(video(200))] == whole


def test_memory_does_not_grow_with_the_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(katna, "FORGET_EVERY", 50)
    tracemalloc.start()
    try:
        before_changes(video(200, shot=200))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30 * scene(0).nbytes, "a picture of 200, and the numbers of 90"


def test_numbers_of_old_frames_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    alive, most = 0, 0

    class Counted(Numbers):
        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    def counted(shown: Frame) -> Numbers:
        nonlocal alive, most
        alive += 1
        most = max(most, alive)
        return Counted(**asdict(numbers_of(shown)))

    monkeypatch.setattr(katna, "FORGET_EVERY", 50)
    monkeypatch.setattr(katna, "numbers_of", counted)
    found = before_changes(video(400, shot=400))
    assert 50 <= most <= 50 + katna.SETTLED + 1 + len(found)


@given(st.lists(st.floats(0, 1e6), min_size=21, max_size=200))
def test_smoothing_is_the_mean_over_a_hanning_window(values: list[float]) -> None:
    differences = np.array(values)
    smoothed = smooth(differences)
    assert len(smoothed) == len(differences)
    window = np.hanning(20) / np.hanning(20).sum()
    for place in range(10, len(values) - 10):
        around = differences[place - 10 : place + 10]
        assert smoothed[place] == pytest.approx(float(around @ window[::-1]), abs=1e-3)


def test_few_differences_stay_as_they_are() -> None:
    for count in range(20):
        assert smooth(np.arange(float(count))).tolist() == list(range(count))
    assert smooth(np.full(20, 3.0)) == pytest.approx(np.full(20, 3.0))


def test_a_maximum_is_higher_than_both_neighbours() -> None:
    assert local_maxima(np.array([9.0, 1, 2, 1, 3, 3, 1, 5])) == [2]
    for count in range(3):
        assert local_maxima(np.zeros(count)) == []


def test_bounds_hold_where_enough_remain_and_widen_no_more_than_needed() -> None:
    rows = [row(0), row(1, brightness=7), row(2, brightness=1), row(3, brightness=95), row(4, entropy=0.3), row(5)]
    assert [kept.pts for kept in within_bounds(rows, 2)] == [0, 5]
    assert [kept.pts for kept in within_bounds(rows, 3)] == [0, 1, 4, 5]  # brightness 6 to 94, entropy from 0
    assert [kept.pts for kept in within_bounds(rows, 5)] == [0, 1, 3, 4, 5]
    assert len(within_bounds(rows, 99)) == 6


def test_of_each_cluster_the_sharpest_image_of_that_cluster_is_taken() -> None:
    rng = np.random.default_rng(1)
    rows = [row(pts, sharpness=float(rng.random()), level=50 * (pts % 5)) for pts in range(40)]
    chosen = sharpest_of_clusters(rows, 5)
    expected = {max((r for r in rows if r.pts % 5 == group), key=lambda r: r.sharpness).pts for group in range(5)}
    assert {numbers.pts for numbers in chosen} == expected
    cv2.setRNGSeed(99)
    assert [numbers.pts for numbers in sharpest_of_clusters(rows, 5)] == [numbers.pts for numbers in chosen]


def test_the_numbers_of_a_picture_are_the_textbooks() -> None:
    half = np.zeros((10, 10, 3), np.uint8)
    half[:, 5:] = (255, 0, 0)
    numbers = numbers_of(frame(3, half))
    assert numbers.pts == 3
    assert numbers.brightness == pytest.approx(50)
    assert numbers.entropy == pytest.approx(1.0)
    assert numbers.histogram.sum() == 100


def test_smoothing_continues_both_ends_by_their_reflection() -> None:
    """A line stays a line, up to its ends: half a step of it, since the window has no middle value."""
    line = 3.0 * np.arange(60) + 7
    assert smooth(line) == pytest.approx(line - 1.5)
    assert smooth(np.full(30, 4.0)) == pytest.approx(np.full(30, 4.0))


class Film:
    """A video of these frames."""

    time_base = TIME_BASE

    def __init__(self, frames: list[Frame], hidden: int = 0) -> None:
        count = len(frames) + hidden
        pts, ones = np.arange(count, dtype=np.int64), np.ones(count, np.int64)
        self.index = PacketIndex(pts, pts, ones.astype(bool), ones, ones.astype(bool), TIME_BASE)
        self.shown = frames

    def frames(self, pts: Sequence[int], *, longest_side_px: int | None = None) -> Iterator[Frame]:
        assert longest_side_px == 640
        return iter(self.shown)


def test_a_video_that_never_changes_gives_its_middle_frame() -> None:
    assert KatnaSampler(None).sample(Film([frame(number, scene(0)) for number in range(25)]), keyframes=2) == [12]


def test_no_more_than_are_wanted_come_in_time_order(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row(pts, sharpness=pts % 7, level=40 * (pts % 6)) for pts in range(60, 0, -1)]
    monkeypatch.setattr(katna, "before_changes", lambda frames: rows)
    film = Film([], hidden=61)
    few = KatnaSampler(None).sample(film, keyframes=2, candidates=5)
    assert few == sorted(few)
    assert len(few) == 5
    assert len(KatnaSampler(None).sample(film, keyframes=2, candidates=6)) == 6
    assert KatnaSampler(None).sample(film, keyframes=20) == list(range(1, 61)), "three a keyframe are all there are"


def test_brightness_is_that_of_the_largest_channel_and_sharpness_that_of_the_grey_picture() -> None:
    blue = np.zeros((10, 10, 3), np.uint8)
    blue[:, 5:] = (0, 10, 255)
    assert numbers_of(frame(0, blue)).brightness == pytest.approx(50)
    grey = cv2.cvtColor(scene(1), cv2.COLOR_RGB2GRAY)
    assert numbers_of(frame(0, scene(1))).sharpness == pytest.approx(cv2.Laplacian(grey, cv2.CV_64F).var(), rel=1e-6)
