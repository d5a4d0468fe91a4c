"""Pictures are scaled down to a side and to a number of bytes."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from tests.report.runs import picture
from vip.html.pictures import shrink


def decoded(data: bytes) -> np.ndarray:
    image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB)
    assert image is not None
    return image


@pytest.mark.parametrize(
    ("width", "height", "expected"), [(1920, 1080, (960, 540)), (1080, 1920, (540, 960)), (64, 48, (64, 48)), (4000, 2, (960, 1))]
)
def test_a_picture_is_scaled_down_to_its_longest_side_and_never_up(width: int, height: int, expected: tuple[int, int]) -> None:
    jpeg = shrink(np.full((height, width, 3), (200, 30, 60), np.uint8), longest_side_px=960, max_bytes=10**6)
    assert (jpeg.width_px, jpeg.height_px) == expected
    image = decoded(jpeg.data)
    assert image.shape == (*expected[::-1], 3)
    assert np.abs(image.reshape(-1, 3).mean(0) - (200, 30, 60)).max() < 6  # red stays red


def test_a_picture_of_many_bytes_becomes_smaller_until_it_fits() -> None:
    jpeg = shrink(picture(1, width_px=960, height_px=540), longest_side_px=960, max_bytes=60_000)
    assert len(jpeg.data) <= 60_000
    assert 96 <= jpeg.width_px < 960


def test_the_smallest_picture_is_96_px_whatever_its_bytes() -> None:
    assert shrink(picture(1, width_px=960, height_px=540), longest_side_px=960, max_bytes=10).width_px == 96
