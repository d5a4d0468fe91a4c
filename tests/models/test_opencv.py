"""The detector `opencv` on pictures with and without a face."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np
import pytest

from vip.errors import BackendError
from vip.models.opencv import OpenCVDetector
from vip.records import Image
from vip.video import Video

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "sample.mp4"
DETECTOR = OpenCVDetector(None)


def frame_at(time_s: float) -> Image:
    with Video(SAMPLE) as video:
        shown = video.index.shown_pts
        wanted = int(shown[np.abs(shown * float(video.time_base) - time_s).argmin()])
        return next(video.frames([wanted], longest_side_px=640)).image


def test_the_face_of_the_sample_is_found_where_it_is() -> None:
    (found,) = DETECTOR.detect([frame_at(4.0)])
    assert [detection.label for detection in found] == ["face"]
    left, top, right, bottom = found[0].box_xyxy
    assert 0.3 < (left + right) / 2 < 0.7
    assert 0.1 < (top + bottom) / 2 < 0.6
    assert found[0].score > 0.8


@pytest.mark.parametrize("time_s", [1.5, 8.5, 11.5, 14.5, 17.5])
def test_no_face_and_nobody_is_found_in_a_rocket_a_cup_a_cat_a_retina_or_the_sky(time_s: float) -> None:
    assert DETECTOR.detect([frame_at(time_s)]) == [[]]


@pytest.mark.parametrize("shape", [(144, 176), (720, 60), (30, 640), (1, 1)])
def test_odd_sizes_are_searched_without_a_crash(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    (found,) = DETECTOR.detect([rng.integers(0, 256, (*shape, 3), np.uint8)])
    assert all(0 <= detection.box_xyxy[0] <= detection.box_xyxy[2] <= 1 for detection in found)


def test_several_threads_find_what_one_finds() -> None:
    """OpenCV's classifiers keep state while they run."""
    images = [frame_at(time_s) for time_s in (3.5, 4.0, 4.5, 5.0, 8.5, 11.5)]
    alone = DETECTOR.detect(images)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda image: DETECTOR.detect([image])[0], images * 4)) == alone * 4


def test_a_larger_picture_of_the_same_has_the_same_face() -> None:
    small = frame_at(4.0)
    large = np.asarray(cv2.resize(small, (1920, 1080), interpolation=cv2.INTER_CUBIC), np.uint8)
    (here,), (there,) = DETECTOR.detect([small, large])
    assert there.box_xyxy == pytest.approx(here.box_xyxy, abs=0.05)


def test_an_opencv_without_its_classifiers_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(cv2, "CascadeClassifier")
    with pytest.raises(BackendError, match=r"no HOG and no cascades\. Run `pip install"):
        OpenCVDetector(None)
