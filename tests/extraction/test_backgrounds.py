"""Slides on lights that wander, drawn: what is such a video, what is none, and what is left of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import cv2
import numpy as np
import pytest

from tests.extraction.analyses import large_picture, look_at
from tests.test_local_change import LINES, OTHERS, moved, noisy, slide
from vip.extraction.analyze import FrameAnalysis
from vip.extraction.backgrounds import LEAST_FRAMES, without_drift
from vip.local_change import STANDS_STILL, LocalChange, change_of_thumbnails
from vip.records import Image

SLIDES = (slide(*LINES), slide(*OTHERS), slide(LINES[2], OTHERS[0]))


def lit(page: Image, number: int, *, shade: int = 60, reach: float = 0.08) -> Image:
    """The page with a soft shadow on its background, somewhere else for another number."""
    height, width = page.shape[:2]
    down, across = np.mgrid[0:1:45j, 0:1:80j]
    x, y = 0.5 + 0.45 * np.sin(1.3 * number), 0.5 + 0.45 * np.cos(1.7 * number)
    shadow = cv2.resize(shade * np.exp(-((across - x) ** 2 + (down - y) ** 2) / reach), (width, height))[..., None]
    return np.asarray(page * (1 - shadow / 255), np.uint8)  # as letters on a transparent page are laid over it


def film(pages: Sequence[Image] = SLIDES, each: int = 4, shine: Callable[[Image, int], Image] = lit) -> list[FrameAnalysis]:
    """So many frames of each slide, two seconds apart; the packets say nothing."""
    images = [page for page in pages for _ in range(each)]
    return [look_at(shine(page, number), 2000 * number) for number, page in enumerate(images)]


def changes(frames: Sequence[FrameAnalysis]) -> list[LocalChange]:
    return [change_of_thumbnails(before.thumbnail, now.thumbnail) for before, now in itertools.pairwise(frames)]


def is_seen(frames: Sequence[FrameAnalysis]) -> bool:
    return without_drift(frames) is not frames


def test_without_the_drift_only_the_slides_differ() -> None:
    frames = film()
    assert any(change.strength(STANDS_STILL) >= 1 for place, change in enumerate(changes(frames)) if place % 4 != 3)
    words = without_drift(frames)
    for place, change in enumerate(changes(words)):
        assert (change.strength(STANDS_STILL) >= 1) == (place % 4 == 3)
        levels = np.abs(words[place].signature.astype(int) - words[place + 1].signature).max()
        assert (levels <= 15) == (place % 4 != 3)


def test_frames_whose_words_stay_are_still() -> None:
    assert not any(frame.is_still for frame in film())
    assert all(frame.is_still for frame in without_drift(film()))


@pytest.mark.parametrize(("flags", "is_still"), [({}, False), ({"is_calm": True}, True), ({"is_calm": True, "in_transition": True}, False)])
def test_a_slide_that_is_seen_once_is_still_where_packets_are_as_usual(flags: dict[str, bool], is_still: bool) -> None:
    pages = [SLIDES[0]] * 5 + [SLIDES[1]] + [SLIDES[2]] * 5
    frames = film(pages, each=1)
    frames[5] = replace(frames[5], **flags)
    assert without_drift(frames)[5].is_still == is_still


def test_lines_join_without_the_drift_as_they_do_on_a_plain_background() -> None:
    pages = [slide(*LINES[:2]), slide(*LINES), *SLIDES[1:]]
    joined = changes(without_drift(film(pages)))[3]
    assert joined.is_progress
    assert joined.gone < 0.01


def test_a_frame_in_which_lines_join_is_not_of_the_slide_before() -> None:
    pages = [slide(LINES[0])] + [SLIDES[0]] * 5 + [SLIDES[1]] * 5
    first, second, *_ = without_drift(film(pages, each=1))
    assert not first.is_still
    assert second.is_still


def test_nothing_else_of_a_frame_changes() -> None:
    frames = film()
    for frame, words in zip(frames, without_drift(frames), strict=True):
        kept = replace(words, signature=frame.signature, thumbnail=frame.thumbnail, is_still=frame.is_still)
        assert all(getattr(kept, name) is getattr(frame, name) for name in frame.__slots__)


def test_blank_frames_are_no_slide_that_stays() -> None:
    found = without_drift(film([slide()] * 4 + [SLIDES[0]] * 8 + [SLIDES[1]] * 8, each=1))
    assert [frame.is_still for frame in found] == [False] * 4 + [True] * 16


def test_light_letters_on_dark_are_words_too() -> None:
    frames = film(shine=lambda page, number: np.asarray(255 - lit(page, number, shade=30), np.uint8))
    assert [change.strength(STANDS_STILL) >= 1 for change in changes(without_drift(frames))] == [place % 4 == 3 for place in range(11)]


# ---------------------------------------------------------------- what is none


@pytest.mark.parametrize(
    "shine",
    [lambda page, number: page, noisy, lambda page, number: lit(page, number, shade=3)],
    ids=["a plain background", "noise", "a drift that nobody sees"],
)
def test_a_background_that_stays_is_left_as_it_is(shine: Callable[[Image, int], Image]) -> None:
    assert not is_seen(film(shine=shine))


def test_a_view_of_a_camera_under_a_light_that_changes_is_no_page() -> None:
    views = [large_picture(seed) for seed in range(3)]
    assert not is_seen(film(views, shine=lambda view, number: np.asarray(view * (0.8 + 0.05 * (number % 4)), np.uint8)))


def test_words_that_move_a_little_are_no_slide() -> None:
    """As things do that lie under a changing light."""
    assert is_seen(film())
    assert not is_seen(film(shine=lambda page, number: lit(moved(page, 4 * (number % 2), 0), number)))


@pytest.mark.parametrize(("where", "seen"), [(7, True), (3, False)], ids=["once", "there and back"])
def test_words_may_move_once_in_a_while(where: int, seen: bool) -> None:
    images = [moved(page, int(place == where), int(place == where)) for page in SLIDES for place in range(8)]
    assert is_seen(film(images, each=1)) == seen


@pytest.mark.parametrize(("others", "seen"), [(2, True), (4, False)])
def test_a_few_photographs_may_be_among_the_slides(others: int, seen: bool) -> None:
    pages = [large_picture(1)] * others + [SLIDES[0]] * 6 + [SLIDES[1]] * (6 - others)
    assert is_seen(film(pages, each=1)) == seen


def test_slides_of_several_colours_have_a_background_that_stays() -> None:
    pages = [np.asarray(page * shade, np.uint8) for page, shade in zip(SLIDES, ((1, 1, 1), (1, 0.8, 0.6), (0.6, 0.8, 1)), strict=True)]
    assert not is_seen(film(pages, shine=lambda page, number: page))


@pytest.mark.parametrize(("reach", "seen"), [(0.08, True), (0.002, False)])
def test_a_light_that_is_small_is_no_background(reach: float, seen: bool) -> None:
    assert is_seen(film(shine=lambda page, number: lit(page, number, shade=20, reach=reach))) == seen


def test_a_word_alone_is_too_little() -> None:
    assert not is_seen(film([slide("a")] * 3))


def test_other_words_in_every_frame_are_no_slides() -> None:
    pages = [slide(*(line[shift:] for line in (*LINES, *OTHERS))) for shift in range(12)]
    assert not is_seen(film(pages, each=1))


@pytest.mark.parametrize("drawn", [(), LINES + OTHERS], ids=["nothing", "words"])
def test_where_there_are_no_words_there_is_nothing_behind_them(drawn: tuple[str, ...]) -> None:
    assert is_seen(film([slide(*drawn)] * 3)) == bool(drawn)


@pytest.mark.parametrize("count", [LEAST_FRAMES - 1, LEAST_FRAMES])
def test_few_frames_say_nothing(count: int) -> None:
    assert is_seen(film(each=8)[:count]) == (count == LEAST_FRAMES)


def test_thumbnails_that_cannot_be_compared_say_nothing() -> None:
    frames = film()
    assert not is_seen([replace(frame, thumbnail=b"no picture") for frame in frames])
    frames[5] = replace(frames[5], thumbnail=b"no picture")
    found = without_drift(frames)
    assert found is not frames
    assert found[5].thumbnail == b"no picture"
    assert not found[5].is_still
