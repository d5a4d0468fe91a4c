"""Copies: which frames make a row, which of a row stays, and what is said of the others; frames made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.extraction.analyses import analysis, measured
from vip.extraction.analyze import FrameAnalysis
from vip.extraction.copies import copies, same_picture
from vip.records import Image


def grey(level: int) -> Image:
    return np.full((18, 32, 3), level, np.uint8)


def frames(*looks: tuple[int, float]) -> list[FrameAnalysis]:
    """A frame a second for each grey level and sharpness."""
    return [analysis(1000 * place, signature=grey(level), measured=measured(sharpness)) for place, (level, sharpness) in enumerate(looks)]


def left_for(found: list[FrameAnalysis], remaining: list[int] | None = None) -> dict[int, int]:
    """Frame that was dropped -> the one that stayed for it."""
    dropped = copies(found, range(len(found)) if remaining is None else remaining)
    return {index: decision.neighbours[0] for index, decision in dropped.items()}


@pytest.mark.parametrize(("sharpness", "stays"), [((1, 2, 3), 2), ((3, 2, 1), 0), ((1, 3, 2), 1), ((5, 5, 5), 0), ((1, 5, 5), 1)])
def test_of_a_row_the_sharpest_stays_and_of_equals_the_first(sharpness: tuple[float, ...], stays: int) -> None:
    found = frames(*((100, value) for value in sharpness))
    assert left_for(found) == {index: stays for index in range(3) if index != stays}


def test_a_copy_says_when_the_one_that_stayed_was_seen() -> None:
    found = copies(frames((100, 1), (100, 2), (100, 1)), range(3))
    assert [(index, row.kept, row.rule, row.reason, row.neighbours) for index, row in found.items()] == [
        (0, False, "duplicate", "dropped: shows the same picture as 0:01.00", (1,)),
        (2, False, "duplicate", "dropped: shows the same picture as 0:01.00", (1,)),
    ]


def test_each_row_has_a_frame_that_stays_the_last_row_too() -> None:
    found = frames((10, 1), (10, 2), (90, 4), (90, 3), (200, 1), (200, 9), (200, 1))
    assert left_for(found) == {0: 1, 3: 2, 4: 5, 6: 5}


def test_a_picture_that_comes_back_after_another_is_no_copy() -> None:
    assert left_for(frames((10, 1), (90, 1), (10, 1))) == {}


@pytest.mark.parametrize("remaining", [[], [0], [3]])
def test_a_frame_alone_and_none_at_all_have_no_copies(remaining: list[int]) -> None:
    assert left_for(frames(*[(100, 1)] * 4), remaining) == {}


def test_only_the_frames_that_remain_make_rows_and_their_numbers_are_those_of_all() -> None:
    """A frame that was dropped between two of a row does not part them, and is none of it."""
    found = frames((100, 900), (10, 1), (100, 5), (255, 1), (100, 7), (10, 9))
    assert left_for(found, [1, 2, 4, 5]) == {2: 4}


def test_a_row_is_held_against_its_first_frame_and_not_against_the_one_before() -> None:
    assert left_for(frames((100, 1), (104, 2), (105, 3), (108, 9), (110, 1))) == {0: 1, 2: 3}


@pytest.mark.parametrize(
    ("a", "b", "same"), [(0, 4, True), (0, 5, False), (255, 251, True), (255, 250, False), (0, 255, False), (1, 255, False)]
)
def test_light_and_dark_cells_are_held_against_each_other_without_running_over(a: int, b: int, same: bool) -> None:
    assert same_picture(analysis(0, signature=grey(a)), analysis(1, signature=grey(b))) is same
    assert same_picture(analysis(0, signature=grey(b)), analysis(1, signature=grey(a))) is same


def test_one_cell_that_differs_makes_another_picture() -> None:
    shown = grey(100)
    shown[17, 31, 2] = 105
    assert not same_picture(analysis(0, signature=grey(100)), analysis(1, signature=shown))
