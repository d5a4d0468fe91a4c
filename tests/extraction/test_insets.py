"""Slides beside a speaker in a window, drawn: what the window is, what it is not, and what is left of it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import cv2
import numpy as np
import pytest

from tests.extraction.analyses import look_at, picture
from tests.test_local_change import LINES, OTHERS, noisy, slide
from vip.extraction.analyze import FrameAnalysis
from vip.extraction.insets import ACTIVE_STEPS, LEAST_FRAMES, MOST_AREA, OVER_AT_ONCE, STILL_STEPS, without_inset
from vip.local_change import STANDS_STILL, change_of_thumbnails
from vip.records import Image

WINDOW = (400, 220, 220, 130)  # left, top, width, height in 640x360: 12 % of the picture
SLIDES = (slide(*LINES), slide(*OTHERS), slide(LINES[2], OTHERS[0]))


def with_speaker(page: Image, seed: int, window: tuple[int, int, int, int] = WINDOW) -> Image:
    """The page with a window in which something else is seen than in that of another seed."""
    left, top, width, height = window
    shown = page.copy()
    shown[top : top + height, left : left + width] = cv2.resize(picture(seed), (width, height), interpolation=cv2.INTER_AREA)
    return shown


def talk(each: int = 4, pages: Sequence[Image] = SLIDES, window: tuple[int, int, int, int] = WINDOW) -> list[FrameAnalysis]:
    """So many frames of each slide, two seconds apart; the packets say nothing."""
    images = [with_speaker(page, number, window) for number, page in enumerate(page for page in pages for _ in range(each))]
    return looks(images)


def looks(images: Sequence[Image]) -> list[FrameAnalysis]:
    return [look_at(image, 2000 * number) for number, image in enumerate(images)]


def strength(before: FrameAnalysis, now: FrameAnalysis) -> float:
    return change_of_thumbnails(before.thumbnail, now.thumbnail).strength(STANDS_STILL)


def is_seen(frames: Sequence[FrameAnalysis]) -> bool:
    return without_inset(frames) is not frames


def test_without_the_window_only_the_slides_differ() -> None:
    frames = talk()
    assert all(strength(one, other) >= 1 for one, other in itertools.pairwise(frames))
    bare = without_inset(frames)
    for place, (one, other) in enumerate(itertools.pairwise(bare)):
        assert (strength(one, other) >= 1) == (place % 4 == 3)
        assert (
            np.array_equal(one.signature, other.signature)
            or place % 4 == 3
            or np.abs(one.signature.astype(int) - other.signature).max() <= 3
        )


def test_what_stands_beside_the_window_is_still() -> None:
    assert not any(frame.is_still for frame in talk())
    assert all(frame.is_still for frame in without_inset(talk()))


@pytest.mark.parametrize(("flags", "is_still"), [({}, False), ({"is_calm": True}, True), ({"is_calm": True, "in_transition": True}, False)])
def test_a_slide_that_is_seen_once_is_still_where_packets_are_as_usual(flags: dict[str, bool], is_still: bool) -> None:
    frames = looks([with_speaker(page, seed) for seed, page in enumerate([SLIDES[0]] * 4 + [SLIDES[1]] + [SLIDES[2]] * 4)])
    frames[4] = replace(frames[4], **flags)
    assert without_inset(frames)[4].is_still == is_still


@pytest.mark.parametrize(("share", "is_still"), [(0.0, True), (0.3, False), (0.5, False), (0.7, False), (1.0, True)])
@pytest.mark.parametrize("contrast", [1.0, 0.5])
def test_a_frame_in_a_fade_between_two_slides_is_of_neither(contrast: float, share: float, is_still: bool) -> None:
    """Packets do not show a fade beside somebody who moves more than the page fades."""
    one, other = (np.asarray(255 - contrast * (255 - page.astype(np.float64)), np.uint8) for page in SLIDES[:2])
    middle = np.asarray(cv2.addWeighted(other, share, one, 1 - share, 0), np.uint8)
    frames = looks([with_speaker(page, seed) for seed, page in enumerate([one] * 4 + [middle] + [other] * 4)])
    bare = without_inset([replace(frame, is_calm=True) for frame in frames])
    assert bare[4].is_still == is_still
    assert all(frame.is_still for place, frame in enumerate(bare) if place != 4)


def test_at_the_end_a_slide_that_is_seen_once_is_in_no_fade() -> None:
    frames = looks([with_speaker(page, seed) for seed, page in enumerate([SLIDES[0]] * 4 + [SLIDES[1]] * 4 + [SLIDES[2]])])
    assert without_inset([replace(frame, is_calm=True) for frame in frames])[8].is_still
    assert not without_inset(frames)[8].is_still


def test_nothing_else_of_a_frame_changes() -> None:
    frames = talk()
    for frame, bare in zip(frames, without_inset(frames), strict=True):
        kept = replace(bare, signature=frame.signature, thumbnail=frame.thumbnail, is_still=frame.is_still)
        assert all(getattr(kept, name) is getattr(frame, name) for name in frame.__slots__)


def test_what_always_stands_on_the_page_does_not_count() -> None:
    """A progress of lines is one where little of the page went; a frame around the slide would make anything little."""
    framed = []
    for page in SLIDES:
        drawn = page.copy()
        cv2.rectangle(drawn, (2, 2), (637, 357), (40, 40, 160), 8)
        framed.append(drawn)
    bare = without_inset(talk(pages=framed))
    assert (
        change_of_thumbnails(bare[0].thumbnail, bare[4].thumbnail).gone
        > 1.3 * change_of_thumbnails(*(look_at(page).thumbnail for page in framed[:2])).gone
    )


def test_what_takes_the_place_of_something_else_does_count() -> None:
    """All of them have a chart, in the same place, and nothing else."""
    pages = []
    for seed in range(3):
        pages.append(slide())
        squares = np.random.default_rng(seed).integers(0, 2, (18, 32, 1), np.uint8) * 200
        pages[-1][40:184, 40:296] = np.repeat(np.repeat(squares, 8, axis=0), 8, axis=1)
    bare = without_inset(talk(pages=pages))
    assert strength(bare[0], bare[4]) >= 1
    assert strength(bare[4], bare[8]) >= 1


@pytest.mark.parametrize(("levels", "seen"), [(2, True), (8, False)])
def test_what_coding_changes_is_no_movement(levels: int, seen: bool) -> None:
    pages = [np.asarray(page - page // 8 - levels * (number % 2), np.uint8) for page in SLIDES for number in range(4)]
    assert is_seen(looks([with_speaker(page, number) for number, page in enumerate(pages)])) == seen


@pytest.mark.parametrize(("width", "seen"), [(20, True), (200, False)])
def test_a_clock_may_run_on_the_page_and_nothing_larger(width: int, seen: bool) -> None:
    images = [with_speaker(page, number) for number, page in enumerate(page for page in SLIDES for _ in range(4))]
    for number, image in enumerate(images):
        image[20:40, 400 : 400 + width] = 60 + 40 * (number % 2)
    assert is_seen(looks(images)) == seen


# ---------------------------------------------------------------- what is no window


def test_slides_without_a_window_stay_as_they_are() -> None:
    assert not is_seen(looks([page for page in SLIDES for _ in range(4)]))
    assert not is_seen(looks([page for page in SLIDES for _ in range(2)]))


@pytest.mark.parametrize(("width", "seen"), [(340, True), (360, False)])
def test_where_much_of_the_picture_moves_that_is_what_is_shown(width: int, seen: bool) -> None:
    """One cell wider on each side it takes 0.396 and 0.417 of the picture."""
    window = (630 - width, 350 - 9 * width // 16, width, 9 * width // 16)
    assert MOST_AREA == 0.4
    assert is_seen(talk(window=window)) == seen


@pytest.mark.parametrize(("moving", "seen"), [(8, True), (4, False)])
def test_a_window_moves_most_of_the_time(moving: int, seen: bool) -> None:
    """Of twelve frames the window changes in so many and in those where a slide comes, as somebody stands in it for a while."""
    pages = [page for page in SLIDES for _ in range(4)]
    frames = looks([with_speaker(page, min(number, moving)) for number, page in enumerate(pages)])
    assert ACTIVE_STEPS == 0.6
    assert is_seen(frames) == seen


def test_a_view_of_one_picture_is_no_page_with_a_window() -> None:
    """Where nothing comes beside it, what moves is all there is to see."""
    assert not is_seen(talk(12, SLIDES[:1]))


def test_a_board_that_a_camera_films_is_no_page() -> None:
    """Its background is not flat: somebody may come before it whom it matters to see."""
    assert is_seen(talk(pages=[page - page // 4 for page in SLIDES]))
    assert not is_seen(talk(pages=[noisy(page - page // 4, 3) for page in SLIDES]))


def test_where_each_frame_is_another_slide_nobody_knows() -> None:
    pages = [slide(f"{number} {LINES[number % 3]}", f"{OTHERS[number % 3]} {number}", "x" * number) for number in range(12)]
    assert STILL_STEPS > 0
    assert not is_seen(talk(1, pages))


@pytest.mark.parametrize(("each", "seen"), [(2, True), (1, False)])
def test_what_moves_beside_a_window_is_soon_over(each: int, seen: bool) -> None:
    """A card flies over the page for eight frames, and rests for some; logos that are animated go on and on."""
    moving = [slide(LINES[0], OTHERS[0][number:], "x" * number) for number in range(12)]
    pages = [page for page in moving for _ in range(each)] + [SLIDES[0]] * 4
    assert OVER_AT_ONCE == 0.2
    assert is_seen(talk(1, pages)) == seen


def test_a_few_frames_say_nothing() -> None:
    assert is_seen(talk(3)[:LEAST_FRAMES])
    assert not is_seen(talk(3)[: LEAST_FRAMES - 1])
    assert without_inset([]) == []


def test_a_thumbnail_that_cannot_be_read_stays_as_it_is() -> None:
    frames = talk()
    frames[5] = replace(frames[5], thumbnail=b"no picture")
    bare = without_inset(frames)
    assert bare[5].thumbnail == b"no picture"
    assert bare[4].thumbnail != frames[4].thumbnail
    assert not is_seen([replace(frame, thumbnail=b"") for frame in frames])
