"""Tones: a bright colour alone is not white, one bright spot makes no light picture, and grey has no colour."""

from __future__ import annotations

import numpy as np
import pytest

from vip.extraction.tones import STEPS, tones_of


def picture(*pixels: tuple[int, int, int], rest: tuple[int, int, int] = (0, 0, 0)) -> np.ndarray:
    """18 rows of 32 columns, all alike but for these pixels."""
    made = np.full((18, 32, 3), rest, np.uint8)
    for place, pixel in enumerate(pixels):
        made[place % 18, 31 - place] = pixel
    return made


@pytest.mark.parametrize(
    ("shown", "white", "middle", "colour"),
    [
        (picture(), 0, 0, 0),
        (picture((255, 255, 255), rest=(50, 50, 50)), 255, 50, 0),
        (picture((200, 201, 202), rest=(90, 90, 90)), 200, 90, 2 / 576),
        (picture((255, 0, 40)), 0, 0, 255 / 576),
        (picture((255, 180, 40), (30, 90, 120)), 120, 0, (215 + 90) / 576),
        (picture(rest=(100, 0, 0)), 0, 30, 100),
        (picture(rest=(0, 100, 0)), 0, 59, 100),
        (picture(rest=(20, 0, 100)), 0, 17, 100),
    ],
)
def test_tones_are_the_whitest_the_middle_and_the_colour(shown: np.ndarray, white: int, middle: int, colour: float) -> None:
    assert tones_of(shown[None])[0] * STEPS == pytest.approx([white, middle, colour])


def test_the_middle_tone_is_that_of_most_of_the_picture() -> None:
    shown = np.stack([picture(rest=(40, 40, 40)), picture(rest=(40, 40, 40))])
    shown[0, :8], shown[1, :10] = 240, 240
    assert (tones_of(shown) * STEPS)[:, 1].tolist() == [40, 240]


def test_each_picture_has_its_own() -> None:
    found = tones_of(np.stack([picture((9, 8, 7)), picture((250, 240, 245))]))
    assert (found.shape, found.dtype) == ((2, 3), np.float64)
    assert found[:, 0] * STEPS[0] == pytest.approx([7, 240])
