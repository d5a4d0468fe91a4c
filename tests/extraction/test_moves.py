"""Frames that move for a moment between pictures that stand still, made by hand: which go, and which are shots or steps of their own."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from tests.extraction.analyses import look_at, measured, picture
from tests.extraction.test_bad_frames import rules
from vip.extraction.analyze import FrameAnalysis
from vip.extraction.bad_frames import bad_frames
from vip.records import Image


def page(*lines: str, left: int = 60) -> Image:
    """A white page with lines of text."""
    image = np.full((360, 640, 3), 250, np.uint8)
    for row, line in enumerate(lines):
        cv2.putText(image, line, (left, 80 + 60 * row), cv2.FONT_HERSHEY_SIMPLEX, 1.6, (30, 30, 30), 4)
    return image


def disc(radius: int) -> Image:
    """A disc with a letter, as large as it has grown."""
    image = page("Today")
    cv2.circle(image, (400, 200), radius, (200, 60, 60), -1)
    cv2.putText(image, "A", (400 - radius // 2, 200 + radius // 2), cv2.FONT_HERSHEY_SIMPLEX, radius / 25, (255, 255, 255), 3)
    return image


def moment(moving: Image, *, before: Image | None = None, behind: Image | None = None, **changed: object) -> list[FrameAnalysis]:
    """A frame that rests, one that moves, and one that rests, all as sharp unless told."""
    rest: dict[str, object] = {"is_still": True, "measured": measured(100.0)}
    between = {**rest, "is_still": False, "is_between_rests": True, **changed}
    frames = [look_at(moving, 800, **between), look_at(disc(110) if behind is None else behind, 1600, **rest)]
    return frames if before is None else [look_at(before, 0, **rest), *frames]


def test_a_frame_that_moves_for_a_moment_and_shows_what_rests_beside_it_goes() -> None:
    found = bad_frames(moment(disc(40), before=disc(0)), None)
    assert rules(found) == {1: "in_transition"}
    assert found[1].reason == "dropped: moves for a moment, beside what stands still at 0:00.00 and 0:01.60"
    assert found[1].neighbours == (0, 2)


@pytest.mark.parametrize("flags", [{"is_between_rests": False}, {"is_still": True}, {"is_between_rests": False, "in_transition": True}])
def test_a_frame_that_moves_for_longer_or_not_at_all_stays(flags: dict[str, bool]) -> None:
    assert bad_frames(moment(disc(40), before=disc(0), **flags), None) == {}


@pytest.mark.parametrize(("sharpness", "goes"), [(49.0, True), (51.0, False)])
def test_of_a_picture_unlike_those_beside_it_a_blurred_one_goes(sharpness: float, goes: bool) -> None:
    """What is as sharp as they are may be a shot of its own."""
    found = bad_frames(moment(picture(3), before=disc(0), measured=measured(sharpness)), None)
    assert rules(found) == ({1: "in_transition"} if goes else {})


def test_a_picture_that_is_as_sharp_as_one_of_those_beside_it_may_be_a_shot() -> None:
    frames = moment(picture(3), before=disc(0), measured=measured(60.0))
    assert bad_frames([replace(frames[0], measured=measured(200.0)), *frames[1:]], None) == {}


def test_what_is_as_before_when_a_line_is_about_to_join_is_no_move() -> None:
    assert bad_frames(moment(page("One"), before=page("One"), behind=page("One", "and one")), None) == {}


def test_a_line_that_joins_for_a_moment_is_no_move() -> None:
    """Where something is written, each step stays: the next one is told by it."""
    one, two, three = page("One"), page("One", "and one"), page("One", "and one", "is two")
    assert bad_frames(moment(two, before=one, behind=three), None) == {}
    assert rules(bad_frames(moment(page("One", "", "and one"), before=one, behind=three), None)) == {1: "in_transition"}


def test_at_the_beginning_what_rests_behind_is_enough() -> None:
    assert rules(bad_frames(moment(disc(40)), None)) == {0: "in_transition"}


@pytest.mark.parametrize(("sharpness", "goes"), [(49.0, True), (51.0, False)])
def test_at_the_end_only_what_is_blurred_goes(sharpness: float, goes: bool) -> None:
    """A camera may have begun to move."""
    frames = moment(disc(40), before=disc(110), measured=measured(sharpness))[:2]
    assert rules(bad_frames(frames, None)) == ({1: "in_transition"} if goes else {})


def test_a_move_beside_which_nothing_is_left_stays() -> None:
    assert bad_frames(moment(disc(40))[:1], None) == {}


@pytest.mark.parametrize(("flags", "goes"), [({"is_still": False}, False), ({"is_still": False, "is_calm": True}, True)])
def test_what_lies_beside_a_move_rests_itself(flags: dict[str, bool], goes: bool) -> None:
    frames = moment(disc(40), before=disc(0))
    frames[2] = replace(frames[2], **flags)  # type: ignore[arg-type]
    assert bool(bad_frames(frames, None)) == goes


def test_frames_of_one_move_go_together() -> None:
    first, moving, last = moment(disc(40), before=disc(0))
    again = replace(moving, pts=900, time_s=0.9, signature=look_at(disc(70)).signature)
    assert rules(bad_frames([first, moving, again, last], None)) == {1: "in_transition", 2: "in_transition"}
