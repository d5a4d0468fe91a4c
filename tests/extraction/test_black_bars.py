"""Bars are black rows on both sides, or black columns; a dark edge on one side is none."""

from __future__ import annotations

import numpy as np
import pytest

from vip.extraction.black_bars import bars_of


def picture(*, above: int = 0, below: int = 0, left: int = 0, right: int = 0, black: int = 0) -> np.ndarray:
    """18 rows of 32 columns, grey but for these."""
    made = np.full((18, 32, 3), 90, np.uint8)
    made[:above] = made[18 - below :] = made[:, :left] = made[:, 32 - right :] = black
    return made


@pytest.mark.parametrize(
    ("shown", "bars"),
    [
        (picture(), [0, 0]),
        (picture(above=2, below=2), [2, 0]),
        (picture(left=5, right=5), [0, 5]),
        (picture(above=1, below=1, left=3, right=3), [1, 3]),
        (picture(above=3, below=2), [2, 0]),
        (picture(left=4, right=6), [0, 4]),
        (picture(above=3, left=7), [0, 0]),
        (picture(above=18), [0, 0]),
    ],
)
def test_bars_are_as_wide_as_what_is_black_on_both_sides(shown: np.ndarray, bars: list[int]) -> None:
    assert bars_of(shown[None]).tolist() == [bars]


def test_what_coding_leaves_of_black_is_black_and_a_little_light_is_not() -> None:
    noisy, light = picture(above=2, below=2, black=10), picture(above=2, below=2)
    light[1, 30, 2] = 11
    assert bars_of(np.stack([noisy, light])).tolist() == [[2, 0], [1, 0]]


def test_each_picture_has_its_own() -> None:
    shown = np.stack([picture(above=2, below=2), picture(), picture(left=9, right=9)])
    assert bars_of(shown).tolist() == [[2, 0], [0, 0], [0, 9]]
