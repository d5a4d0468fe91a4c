"""Frames on their way from one picture to the next, drawn ones: pushes, scrolls and wipes; which go, and which stay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.extraction.analyses import look_at, picture, scaled
from vip.extraction.analyze import FrameAnalysis, signature_of
from vip.extraction.bad_frames import bad_frames
from vip.extraction.pushes import is_push
from vip.extraction.quality import is_mixture
from vip.records import Image

HEIGHT, WIDTH = 360, 640
SIDES = ("left", "right", "up", "down")


def pushed(before: Image, after: Image, share: float, to: str) -> Image:
    """The picture of which this share has come in, pushing the one before towards a side."""
    axis = 1 if to in ("left", "right") else 0
    size = before.shape[axis]
    gone = round(share * size) if to in ("left", "up") else size - round(share * size)
    both = (before, after) if to in ("left", "up") else (after, before)
    return np.asarray(np.take(np.concatenate(both, axis), range(gone, gone + size), axis), np.uint8)


def page(seed: int, *, lines: int = 8) -> Image:
    """Lines of text on a light page."""
    rng = np.random.default_rng(seed)
    shown = np.full((HEIGHT, WIDTH, 3), 245, np.uint8)
    for row in range(50, 50 + 40 * lines, 40):
        words = "".join(rng.choice(list("abcdefghij     "), rng.integers(10, 45)))
        cv2.putText(shown, words, (30, row), cv2.FONT_HERSHEY_SIMPLEX, 0.8, (20, 20, 20), 2, cv2.LINE_AA)
    return shown


def is_push_of(shown: Image, before: Image, after: Image) -> bool:
    return is_push(look_at(shown), look_at(before), look_at(after))


@pytest.mark.parametrize("to", SIDES)
@pytest.mark.parametrize("share", [0.2, 0.35, 0.5, 0.8])
@pytest.mark.parametrize(("before", "after"), [(picture(1), picture(2)), (page(1), page(2))])
def test_a_picture_that_pushes_another_out_of_sight_is_a_push_to_any_side(before: Image, after: Image, share: float, to: str) -> None:
    assert is_push_of(pushed(before, after, share, to), before, after)


@pytest.mark.parametrize("to", SIDES)
@pytest.mark.parametrize("share", [0, 0.03, 0.97, 1])
def test_one_that_has_hardly_begun_or_is_nearly_over_is_none(share: float, to: str) -> None:
    assert not is_push_of(pushed(picture(1), picture(2), share, to), picture(1), picture(2))


@pytest.mark.parametrize("seed", range(12))
def test_a_page_that_scrolls_by_any_number_of_pixels_is_a_push(seed: int) -> None:
    """Lines of text lie closer than two cells of a signature."""
    share = np.random.default_rng(seed).uniform(0.15, 0.85)
    assert is_push_of(pushed(page(2 * seed), page(2 * seed + 1), share, SIDES[seed % 4]), page(2 * seed), page(2 * seed + 1))


@pytest.mark.parametrize("to", SIDES)
def test_a_slide_with_two_lines_that_pushes_another_is_a_push(to: str) -> None:
    before, after = page(1, lines=2), page(2, lines=2)
    assert is_push_of(pushed(before, after, 0.5, to), before, after)


def test_thumbnails_that_cannot_be_decoded_or_have_other_shapes_are_none() -> None:
    before, shown, after = look_at(page(1)), look_at(pushed(page(1), page(2), 0.5, "up")), look_at(page(2))
    assert is_push(shown, before, after)
    assert not is_push(replace(shown, thumbnail=b"no picture"), before, after)
    assert not is_push(shown, replace(before, thumbnail=b""), after)
    assert not is_push(shown, before, replace(after, thumbnail=cv2.imencode(".jpg", page(2))[1].tobytes()))


@given(st.integers(0, 10_000), st.integers(0, 10_000), st.integers(0, 10_000))
def test_a_third_picture_between_two_cuts_is_none(before: int, shown: int, after: int) -> None:
    if shown not in (before, after):
        assert not is_push_of(picture(shown), picture(before), picture(after))


def test_a_window_in_which_something_new_is_to_be_seen_is_none() -> None:
    """As where the camera swings on to another view, and somebody walks in meanwhile."""
    shown = pushed(page(1), page(2), 0.5, "left")
    assert is_push_of(shown, page(1), page(2))
    shown[100:280, 200:420] = scaled(picture(5), 220, 180)
    assert not is_push_of(shown, page(1), page(2))


def test_a_cross_fade_and_a_wipe_are_none() -> None:
    fade = np.asarray(cv2.addWeighted(picture(1), 0.5, picture(2), 0.5, 0), np.uint8)
    wipe = np.hstack([picture(1)[:, :320], picture(2)[:, 320:]])
    assert not is_push_of(fade, picture(1), picture(2))
    assert not is_push_of(np.asarray(wipe, np.uint8), picture(1), picture(2))


@pytest.mark.parametrize("level", [5, 40])
def test_an_empty_view_that_grows_lighter_is_none(level: int) -> None:
    """As a road when a cloud passes: any window of two grey pictures is like a third one between."""
    road = np.full((HEIGHT, WIDTH, 3), 100, np.uint8)
    assert not is_push_of(road + level, road, road + 2 * level)


def test_a_camera_that_pans_slowly_is_none() -> None:
    scene = np.hstack([picture(1), picture(2)])
    views = [np.asarray(scene[:, x : x + WIDTH], np.uint8) for x in (0, 30, 60)]
    assert not is_push_of(views[1], views[0], views[2])


def frames(*looks: tuple[float, Image, bool]) -> list[FrameAnalysis]:
    """Frames at these seconds; whether they stand still."""
    return [look_at(image, round(1000 * time_s), is_still=is_still) for time_s, image, is_still in looks]


def on_their_way(found: list[FrameAnalysis]) -> dict[int, tuple[int, ...]]:
    return {index: decision.neighbours for index, decision in bad_frames(found, None).items() if "on its way" in decision.reason}


def shares(shape: str) -> np.ndarray:
    """How much of the later picture is to be seen at each place in the midst of a wipe: float (H, W, 1) from 0 to 1."""
    across, down = np.meshgrid(np.linspace(0, 1, WIDTH), np.linspace(0, 1, HEIGHT))
    found = {
        "left": across > 0.5,
        "diagonal": across + down > 0.8,
        "circle": np.hypot(across - 0.5, down - 0.5) < 0.3,
        "soft": np.clip(4 * across - 1.5, 0, 1),
        "grain": np.random.default_rng(0).random((HEIGHT, WIDTH)) < 0.5,
        "fade": np.full((HEIGHT, WIDTH), 0.5),
    }[shape]
    return np.asarray(found, np.float32)[..., None]


def mixed(before: Image, after: Image, shape: str) -> Image:
    return np.asarray(before + shares(shape) * (after.astype(np.float32) - before), np.uint8)


SHAPES = ("left", "diagonal", "circle", "soft", "grain", "fade")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", [1, 3, 5])
def test_a_wipe_of_any_shape_between_pictures_that_stand_still_is_dropped(shape: str, seed: int) -> None:
    before, after = picture(seed), picture(seed + 1)
    wipe = mixed(before, after, shape)
    assert on_their_way(frames((0, before, True), (0.5, wipe, False), (1, after, True))) == {1: (0, 2)}
    for stills in ((True, False), (False, True)):  # where things move, what lies between looks like a wipe too
        assert on_their_way(frames((0, before, stills[0]), (0.5, wipe, False), (1, after, stills[1]))) == {}


@given(st.integers(0, 10_000), st.integers(0, 10_000), st.integers(0, 10_000))
def test_a_third_picture_is_no_mixture_of_two_others(before: int, shown: int, after: int) -> None:
    if shown not in (before, after):
        assert not is_mixture(*(signature_of(picture(seed)) for seed in (shown, before, after)))


def test_inserts_that_join_one_after_the_other_are_no_wipe() -> None:
    """What is to be seen with the first one is a mixture of the view without and with both, but it is one view."""
    first = page(3)
    first[40:164, 30:250] = scaled(picture(9), 220, 124)
    both = first.copy()
    both[200:324, 380:600] = scaled(picture(10), 220, 124)
    found = frames(*((place / 2, step, True) for place, step in enumerate((page(3), first, both))))
    assert is_mixture(found[1].signature, found[0].signature, found[2].signature)
    assert on_their_way([replace(frame, view=np.array([1, 0], np.float32)) for frame in found]) == {}


def test_what_hardly_differs_from_the_picture_before_is_no_wipe() -> None:
    nearly = np.asarray(cv2.addWeighted(picture(1), 0.98, picture(2), 0.02, 0), np.uint8)
    assert on_their_way(frames((0, picture(1), True), (0.5, nearly, False), (1, picture(2), True))) == {}


HALF = pushed(page(1), page(2), 0.5, "up")


def test_a_page_that_scrolls_is_dropped_and_the_sentence_says_where_it_rests() -> None:
    found = frames((0, page(1), False), (0.5, HALF, False), (1, page(2), False))
    dropped = bad_frames(found, None)
    assert {index: (decision.rule, decision.reason, decision.neighbours) for index, decision in dropped.items()} == {
        1: ("in_transition", "dropped: on its way from the picture at 0:00.00 to that at 0:01.00", (0, 2))
    }


def test_all_frames_on_the_way_are_held_against_the_pictures_at_either_end() -> None:
    steps = [pushed(page(1), page(2), share, "up") for share in (0, 0.25, 0.5, 0.75, 1)]
    assert on_their_way(frames(*((place / 4, step, False) for place, step in enumerate(steps)))) == {1: (0, 4), 2: (0, 4), 3: (0, 4)}


@pytest.mark.parametrize("step_s", [0.2, 0.3, 0.4, 0.6])
@pytest.mark.parametrize("page_s", [1.2, 1.6, 2.4, 3.2, 8])
def test_a_page_that_goes_on_scrolling_is_seen_whole_at_whatever_speed(page_s: float, step_s: float) -> None:
    """At a page in 2.4 s each frame is a window of those 1.2 s before and behind it, and these are of others."""
    pages = np.concatenate([page(seed) for seed in range(8)])
    shown_s = [step_s * place for place in range(int(7 * page_s / step_s))]
    tops = [round(HEIGHT * time_s / page_s) for time_s in shown_s]
    found = frames(*((time_s, np.asarray(pages[top : top + HEIGHT], np.uint8), False) for time_s, top in zip(shown_s, tops, strict=True)))
    dropped, seen = on_their_way(found), np.zeros(len(pages), bool)
    for index, top in enumerate(tops):
        if index not in dropped:
            seen[top : top + HEIGHT] = True
    assert seen[: tops[-1] + HEIGHT].all()


@pytest.mark.parametrize(
    ("before", "after", "is_still", "goes"),
    [
        *[
            ((1.2, False), (1.2, False), False, True),
            ((1.3, False), (1.2, False), False, False),
            ((1.2, False), (1.3, False), False, False),
        ],
        *[((6, True), (6, True), False, True), ((6.1, True), (6, True), False, False), ((6, True), (1, False), False, True)],
        *[((6, True), (6, True), True, False), ((6, False), (6, True), False, False)],
    ],
)
def test_the_pictures_are_near_or_stand_still(before: tuple[float, bool], after: tuple[float, bool], is_still: bool, goes: bool) -> None:
    """A push takes a second; where nothing moves on either side, what lies between is the push and nothing else."""
    found = frames((10 - before[0], page(1), before[1]), (10, HALF, is_still), (10 + after[0], page(2), after[1]))
    assert on_their_way(found) == ({1: (0, 2)} if goes else {})


def test_a_frame_without_others_on_a_side_stays() -> None:
    shown: tuple[Any, ...] = ((0, page(1), True), (0.5, HALF, False), (1, page(2), True))
    assert on_their_way(frames(*shown[:2])) == on_their_way(frames(*shown[1:])) == on_their_way(frames(shown[1])) == {}
