"""The white level is that of the whitest tone: a bright colour alone is not white."""

from __future__ import annotations

import numpy as np
import pytest

from vip.extraction.white_level import white_levels


def picture(*pixels: tuple[int, int, int]) -> np.ndarray:
    """18 rows of 32 columns, black but for these pixels."""
    made = np.zeros((18, 32, 3), np.uint8)
    for place, pixel in enumerate(pixels):
        made[place % 18, 31 - place] = pixel
    return made


@pytest.mark.parametrize(
    ("shown", "level"),
    [
        (picture(), 0),
        (picture((255, 255, 255)), 255),
        (picture((90, 91, 92), (200, 201, 202)), 200),
        (picture((255, 0, 40)), 0),
        (picture((255, 180, 40), (30, 90, 120)), 120),
    ],
)
def test_the_white_level_is_the_least_of_the_highest_red_green_and_blue(shown: np.ndarray, level: int) -> None:
    assert white_levels(shown[None]).tolist() == [level]


def test_each_picture_has_its_own() -> None:
    found = white_levels(np.stack([picture((9, 8, 7)), picture((250, 240, 245))]))
    assert (found.tolist(), found.dtype) == ([7, 240], np.float64)
