"""`shots`: every shot has a candidate, the sharpest of it, at the times of the file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.clips import scene
from tests.media import Clips, write
from vip import registry
from vip.errors import BackendError
from vip.extraction.quality import measure
from vip.extraction.samplers.shots import DETECTORS, ShotsSampler, _sharpest, find_cuts
from vip.records import Frame, Image, PacketIndex
from vip.video import Video

RATE = 10
SHOT = 10  # frames, one second
NAMES = ["shots", *(f"shots:{detail}" for detail in DETECTORS)]


def shots_of(blurred: Callable[[int], bool]) -> Callable[[int], Image]:
    """Five shots; the frames of a shot for which `blurred` holds are out of focus."""

    def picture(number: int) -> Image:
        shot = number // SHOT
        image = scene(shot) // 3 + np.uint8(40 * shot)  # each of a brightness of its own, which is all that a histogram sees
        return np.asarray(cv2.GaussianBlur(image, (0, 0), 2), np.uint8) if blurred(number % SHOT) else image

    return picture


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five shots of a second, only the seventh frame of each in focus, and a clock that starts at 3 s."""
    path = tmp_path_factory.mktemp("shots") / "five.mkv"
    ticks = [3000 + 100 * number for number in range(5 * SHOT)]
    write(path, frames=50, rate=RATE, gop=50, ticks=ticks, time_base=Fraction(1, 1000), picture=shots_of(lambda place: place != 6))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_each_shot_gives_its_sharpest_frame_at_its_true_time(name: str, video: Path) -> None:
    with Video(video) as source:
        assert registry.sampler(name).sample(source, keyframes=1) == [3600 + 1000 * shot for shot in range(5)]


def test_more_keyframes_than_shots_get_more_candidates_a_shot(video: Path) -> None:
    with Video(video) as source:
        for keyframes, count in ((7, 7), (20, 20), (200, 50)):
            chosen = ShotsSampler(None).sample(source, keyframes=keyframes)
            assert len(chosen) == len(set(chosen)) == count
            assert {(pts - 3000) // 1000 for pts in chosen} == set(range(5))


def test_a_long_shot_gets_a_candidate_every_ten_seconds(tmp_path: Path) -> None:
    ticks = [1000 * number for number in range(36)]
    write(tmp_path / "slow.mkv", frames=36, rate=1, ticks=ticks, time_base=Fraction(1, 1000), picture=lambda number: scene(number // 34))
    with Video(tmp_path / "slow.mkv") as source:
        chosen = ShotsSampler(None).sample(source, keyframes=1)
    assert len([pts for pts in chosen if pts < 34_000]) == 4
    assert len([pts for pts in chosen if pts >= 34_000]) == 1


def test_a_video_of_one_frame_and_one_without_cuts_are_one_shot(clips: Clips) -> None:
    for name in ("one_frame.mp4", "h264.mp4"):
        with Video(clips(name).path) as source:
            assert len(ShotsSampler(None).sample(source, keyframes=1)) == 1


@pytest.mark.parametrize("name", NAMES)
def test_the_manifest_names_the_detector_that_was_asked_for(name: str) -> None:
    assert registry.sampler(name).name == name


def test_without_pyscenedetect_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scenedetect", None)
    with pytest.raises(BackendError, match=r"pip install 'vip-keyframes\[shots\]'"):
        ShotsSampler(None)


def test_a_misspelt_detector_is_refused_with_the_right_name() -> None:
    with pytest.raises(BackendError, match='Did you mean "adaptive"'):
        ShotsSampler("adaptative")


@pytest.mark.parametrize("start", [0, 10_000])
def test_borders_are_left_out_by_the_length_of_the_shot_wherever_it_lies(start: int) -> None:
    """Sharpest at its very ends, where a cut may blend in, and then in its middle."""
    shot = [(start + number, {0: 9.0, 99: 9.0, 50: 5.0}.get(number, 1.0)) for number in range(100)]
    assert _sharpest(shot, 1, Fraction(60)) == [start + 50]
    assert _sharpest(shot[:1], 1, Fraction(60)) == [start]


@pytest.mark.parametrize(("border", "sharpest"), [(10, 15), (30, 50), (60, 50)])
def test_no_more_is_left_out_at_a_border_than_the_border_is_long_nor_than_a_fifth(border: int, sharpest: int) -> None:
    shot = [(number, {5: 9.0, 15: 8.0, 50: 5.0}.get(number, 1.0)) for number in range(101)]
    assert _sharpest(shot, 1, Fraction(border)) == [sharpest]


def test_borders_count_where_without_them_too_few_frames_remain() -> None:
    shot = [(number, float(number == 0)) for number in range(11)]
    assert _sharpest(shot, 7, Fraction(2)) == list(range(2, 9)), "just as many as are wanted"
    assert _sharpest(shot, 8, Fraction(2))[0] == 0


class Film:
    """A video of these pictures, ten a second."""

    time_base = Fraction(1, 10)

    def __init__(self, pictures: Sequence[Image], lost: bool = False) -> None:
        self.pictures = [] if lost else pictures
        pts, ones = np.arange(len(pictures), dtype=np.int64), np.ones(len(pictures), np.int64)
        self.index = PacketIndex(pts, pts, ones.astype(bool), ones, ones.astype(bool), self.time_base)

    def frames(self, pts: Sequence[int], *, longest_side_px: int | None = None) -> Iterator[Frame]:
        return (Frame(number, self.time_base, image) for number, image in enumerate(self.pictures))


def test_a_video_that_cannot_be_decoded_gives_its_first_frame() -> None:
    assert ShotsSampler(None).sample(Film([scene(0)] * 3, lost=True), keyframes=1) == [0]


def test_a_frame_that_shows_nothing_is_taken_last_however_sharp_it_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = np.random.default_rng(0).integers(0, 38, (90, 160, 3), np.uint8)
    soft = np.asarray(cv2.GaussianBlur(scene(0), (0, 0), 12), np.uint8)
    assert measure(noise).quality.sharpness > measure(soft).quality.sharpness
    monkeypatch.setattr("vip.extraction.samplers.shots.find_cuts", lambda frames, *_: [frame.pts for frame in frames if frame.pts < 0])
    assert ShotsSampler(None).sample(Film([noise] * 5 + [soft] + [noise] * 5), keyframes=1) == [5]


def test_a_flicker_shorter_than_six_tenths_of_a_second_is_no_shot() -> None:
    pictures = [scene(0)] * 20 + [scene(1)] * 3 + [scene(0)] * 20
    assert len(ShotsSampler(None).sample(Film(pictures), keyframes=1)) <= 2


def test_as_many_candidates_as_are_asked_spread_over_all_shots() -> None:
    film = Film([scene(number // 10) for number in range(60)])
    few = ShotsSampler(None).sample(film, keyframes=1, candidates=3)
    assert len(few) == 3
    assert few[0] < 10
    assert few[-1] >= 50
    assert len(ShotsSampler(None).sample(film, keyframes=1, candidates=24)) == 24


def test_further_candidates_go_to_the_shot_with_the_longest_stretch_for_one() -> None:
    """A shot of 19 s has two already, one of 9.9 s has one: 9.5 s each, and 9.9 s."""
    film = Film([scene(0)] * 191 + [scene(1)] * 100)
    chosen = ShotsSampler(None).sample(film, keyframes=4)
    assert [sum(pts < 191 for pts in chosen), sum(pts >= 191 for pts in chosen)] == [2, 2]


class Told:
    """A detector that finds a cut at the last frame that it was told of, and another when all is over."""

    def __init__(self) -> None:
        self.colours: list[tuple[int, ...]] = []

    def process_frame(self, time: Any, image: Image) -> list[Any]:
        self.colours.append(tuple(image[0, 0].tolist()))
        return [time] if time.pts == 4 else []

    def post_process(self, time: Any) -> list[Any]:
        return [time]


def test_cuts_come_at_the_times_of_the_file_also_those_found_at_the_end() -> None:
    red = np.full((2, 2, 3), (200, 100, 0), np.uint8)
    detector = Told()
    assert list(find_cuts(iter([Frame(pts, Fraction(1, 10), red) for pts in range(-3, 5)]), detector, Fraction(10))) == [1, 4]
    assert set(detector.colours) == {(0, 100, 200)}, "PySceneDetect takes BGR"
    assert list(find_cuts(iter([]), detector, Fraction(10))) == []


def test_the_border_is_three_tenths_of_a_second_by_the_clock_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.extraction.samplers.shots.find_cuts", lambda frames, *_: [frame.pts for frame in frames if frame.pts < 0])
    soft, softer = (np.asarray(cv2.GaussianBlur(scene(0), (0, 0), sigma), np.uint8) for sigma in (1, 2))
    assert ShotsSampler(None).sample(Film([softer] * 2 + [scene(0)] + [softer] * 30 + [soft] + [softer] * 30), keyframes=1) == [33]
    assert ShotsSampler(None).sample(Film([softer] * 3 + [scene(0)] + [softer] * 29 + [soft] + [softer] * 30), keyframes=1) == [3]
