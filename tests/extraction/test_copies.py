"""Copies: which frames make a row, which of a row stays, and what is said of the others; frames made by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import cv2
import numpy as np
import pytest

from tests.extraction.analyses import analysis, large_picture, look_at, measured, picture
from vip.extraction.analyze import FrameAnalysis
from vip.extraction.copies import copies, same_picture
from vip.extraction.quality import sharpness_of
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


def test_a_row_is_held_against_its_first_and_its_sharpest_frame_and_not_against_the_one_before() -> None:
    assert left_for(frames((100, 9), (104, 2), (105, 3), (108, 1), (110, 1))) == {1: 0, 3: 2}
    assert left_for(frames((100, 1), (104, 9), (107, 2), (109, 1), (111, 3))) == {0: 1, 2: 1, 3: 4}


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


def sharp_look(image: Image, pts: int = 0) -> FrameAnalysis:
    return look_at(image, pts, measured=measured(sharpness_of(image)))


def lit(image: Image, share: float) -> Image:
    return np.asarray(np.round(image * share), np.uint8)


def with_cursor(image: Image) -> Image:
    shown = image.copy()
    shown[200:216, 300:312] = 255 - shown[200:216, 300:312]
    return shown


def with_person(image: Image) -> Image:
    shown = image.copy()
    cv2.ellipse(shown, (320, 300), (20, 50), 0, 0, 360, (70, 50, 40), -1)
    cv2.circle(shown, (320, 235), 15, (220, 180, 160), -1)
    return shown


def with_other_digit(image: Image) -> Image:
    return np.asarray(cv2.putText(image.copy(), "8", (20, 350), cv2.FONT_HERSHEY_SIMPLEX, 1, (255, 255, 255), 2), np.uint8)


def with_shadow(image: Image) -> Image:
    """So soft that it has no edge anywhere."""
    across, down = np.meshgrid(np.arange(640), np.arange(360))
    blob = np.exp(-((across - 320) ** 2 + (down - 180) ** 2) / (2 * 120**2))
    return np.asarray(image - (14 * blob)[..., None].astype(np.uint8), np.uint8)


def moved(image: Image) -> Image:
    return np.asarray(np.roll(image, 12, axis=1), np.uint8)


@pytest.mark.parametrize("seed", [1, 2, 4, 6])
@pytest.mark.parametrize("share", [0.97, 1.03])
def test_a_little_more_or_less_light_is_the_same_picture(share: float, seed: int) -> None:
    """As where a fade begins; a cell of the signature differs by six levels, so that thumbnails tell."""
    whole = lit(large_picture(seed), 0.8)
    assert same_picture(sharp_look(whole), sharp_look(lit(whole, share)))
    assert same_picture(sharp_look(lit(whole, share)), sharp_look(whole))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("change", [with_cursor, with_person, with_other_digit, moved, partial(lit, share=0.85)])
def test_whatever_moves_joins_or_leaves_makes_another_picture_however_small(change: Callable[[Image], Image], seed: int) -> None:
    one, other = sharp_look(picture(seed)), sharp_look(change(picture(seed)))
    assert not same_picture(one, other)
    assert not same_picture(other, one)


def test_a_soft_shadow_on_a_wall_makes_another_picture() -> None:
    wall = np.full((360, 640, 3), 150, np.uint8)
    one, other = sharp_look(wall), sharp_look(with_shadow(wall))
    assert 5 <= int(np.abs(one.signature.astype(int) - other.signature).max()) < 24
    assert not same_picture(one, other)


@pytest.mark.parametrize("seed", [1, 2, 4, 6])
def test_what_sharpens_step_by_step_is_one_row_and_the_sharpest_stays(seed: int) -> None:
    """As coding does with a still picture: the last is too far from the first, but is the picture of the sharpest before it."""
    found = [sharp_look(lit(large_picture(seed), 0.8 * share), 100 * place) for place, share in enumerate((0.9, 0.93, 0.96, 1))]
    assert not same_picture(found[0], found[3])
    assert left_for(found) == {0: 3, 1: 3, 2: 3}


def test_a_row_ends_24_levels_from_its_first_frame_however_small_the_steps() -> None:
    assert left_for(frames(*((level, level) for level in range(100, 150, 4)))) == {
        **dict.fromkeys((0, 1, 2, 3, 4), 5),
        **dict.fromkeys((6, 7, 8, 9, 10), 11),
    }


def test_thumbnails_that_cannot_be_decoded_or_have_another_shape_are_no_copies() -> None:
    one = sharp_look(picture(1))
    lighter = np.asarray(one.signature.astype(int) - 6, np.uint8)
    assert not same_picture(one, analysis(1, signature=lighter, thumbnail=b"no picture"))
    assert not same_picture(one, analysis(1, signature=lighter, thumbnail=cv2.imencode(".jpg", picture(1))[1].tobytes()))
