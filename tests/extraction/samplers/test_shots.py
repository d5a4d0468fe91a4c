"""`shots`: every shot has a candidate, the sharpest of it, at the times of the file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.clips import scene
from tests.media import Clips, write
from vip import registry
from vip.errors import BackendError
from vip.extraction.samplers.shots import DETECTORS, ShotsSampler, _sharpest
from vip.records import Image
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
