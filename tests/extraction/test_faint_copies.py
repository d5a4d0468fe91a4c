"""Faint copies: titles that fade over a picture that stands or moves, and what only looks like a fade; pictures drawn here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.extraction.analyses import TIME_BASE, large_picture, picture, scaled
from vip.extraction.analyze import FrameAnalysis, FrameAnalyzer
from vip.extraction.embeddings import embeddings_of
from vip.extraction.faint_copies import faint_copies
from vip.extraction.pruners.algorithm1 import Algorithm1
from vip.extraction.pruners.none import NoPruning
from vip.extraction.select import select_from
from vip.models.classic import ClassicEmbedder
from vip.models.opencv import OpenCVDetector
from vip.protocols import Pruner
from vip.records import Decision, Frame, Image

EMBEDDER = ClassicEmbedder(None)
LOOKER = FrameAnalyzer(EMBEDDER, EMBEDDER, OpenCVDetector(None))
SCENE = scaled(large_picture(4), 800, 450)
BLACK = Decision(kept=False, rule="black", reason="dropped: nearly black")
COPY = Decision(kept=False, rule="duplicate", reason="dropped: shows the same picture as 0:01.00", neighbours=(1,))


def view(shift_px: int = 0) -> Image:
    """uint8 (360, 640, 3): a view that the camera may have moved over."""
    return SCENE[shift_px : shift_px + 360, 2 * shift_px : 2 * shift_px + 640].copy()


def titled(image: Image, share: float, *, words: str = "Frame by Frame", height: float = 2.2, line: int = 200) -> Image:
    """The picture under white words, which so much of is to be seen."""
    written = image.copy()
    cv2.putText(written, words, (40, line), cv2.FONT_HERSHEY_DUPLEX, height, (255, 255, 255), 6, cv2.LINE_AA)
    return (share * written.astype(np.float32) + (1 - share) * image).astype(np.uint8)


def frames(*images: Image, step_s: float = 1.0) -> list[FrameAnalysis]:
    return [LOOKER(Frame(round(1000 * step_s * number), TIME_BASE, image)) for number, image in enumerate(images)]


def fading(*shares: float, step_px: int = 0, step_s: float = 1.0) -> list[FrameAnalysis]:
    return frames(*(titled(view(step_px * number), share) for number, share in enumerate(shares)), step_s=step_s)


def whole_for(found: Sequence[FrameAnalysis], dropped: dict[int, Decision] | None = None) -> dict[int, int]:
    """Frame that gives way -> the one that shows whole what it shows faintly."""
    kept = [index for index in range(len(found)) if index not in (dropped or {})]
    return {index: decision.neighbours[0] for index, decision in faint_copies(found, kept, dropped or {}).items()}


@pytest.mark.parametrize("step_px", [0, 3, 4])
@pytest.mark.parametrize("share", [0.4, 0.5, 0.7, 0.8])
def test_a_title_half_faded_in_or_out_goes_and_the_whole_one_and_the_plain_picture_stay(share: float, step_px: int) -> None:
    assert whole_for(fading(0, share, 1, share, 0, step_px=step_px)) == {1: 2, 3: 2}


def test_it_says_when_it_is_whole() -> None:
    (decision,) = faint_copies(fading(0, 0.5, 1), [0, 1, 2], {}).values()
    assert (decision.kept, decision.rule, decision.neighbours) == (False, "faded", (2,))
    assert decision.reason == "dropped: part of it is half faded in or out; at 0:02.00 it is whole"


def test_a_line_of_a_slide_that_fades_in_is_seen_as_well() -> None:
    slide = titled(np.full((360, 640, 3), 30, np.uint8), 1, words="Results", line=80)
    assert whole_for(frames(*(titled(slide, share, words="92 % of the clips", height=1.5) for share in (0, 0.5, 1)))) == {1: 2}


def test_only_what_would_be_kept_is_looked_at() -> None:
    assert faint_copies(fading(0, 0.5, 1), [0, 2], {}) == {}


def test_a_title_that_lasts_as_faint_as_it_is_is_no_fade() -> None:
    assert whole_for(fading(0, 0.5, 0.5, 1)) == {}
    assert whole_for(fading(0, 0.5, 0.5, 1), {2: BLACK}) == {1: 3}


def test_a_frame_that_stands_still_is_in_no_fade() -> None:
    before, middle, after = fading(0, 0.5, 1)
    assert whole_for([before, replace(middle, is_still=True), after]) == {}


def test_what_only_one_of_them_shows_keeps_it() -> None:
    wall = np.full((360, 640, 3), 90, np.uint8)
    hand = titled(wall, 0.5)
    cv2.circle(hand, (480, 290), 60, (220, 180, 160), -1)
    assert whole_for(frames(wall, titled(wall, 0.5), titled(wall, 1))) == {1: 2}
    assert whole_for(frames(wall, hand, titled(wall, 1))) == {}


def test_another_title_is_no_clearer_one() -> None:
    assert whole_for(frames(titled(view(), 0.5), titled(view(), 1, words="QWZX MOON", line=320))) == {}


def test_another_view_is_no_clearer_one() -> None:
    assert whole_for(frames(titled(view(), 0.5), titled(scaled(picture(9), 640, 360), 1))) == {}


@pytest.mark.parametrize(("step_s", "goes"), [(6.0, True), (6.1, False)])
def test_what_is_whole_six_seconds_away_counts(step_s: float, goes: bool) -> None:
    assert whole_for(fading(0.5, 1, step_s=step_s)) == ({0: 1} if goes else {})


@pytest.mark.parametrize(("between", "goes"), [(2, True), (3, False)])
def test_three_frames_on_either_side_are_looked_at(between: int, goes: bool) -> None:
    found = fading(0.5, *[0] * between, 1, step_s=0.5)
    assert whole_for(found) == ({0: between + 1} if goes else {})
    black = dict.fromkeys(range(1, between + 1), BLACK)
    assert whole_for(found, black) == {0: between + 1}, "those that are dropped do not count"


def test_a_copy_shows_it_whole_and_a_bad_frame_does_not() -> None:
    found = fading(0.5, 0, 1)
    assert whole_for(found, {2: COPY}) == {0: 2}
    assert whole_for(found, {2: BLACK}) == {}


@pytest.mark.parametrize("thumbnail", [b"", b"no picture", cv2.imencode(".jpg", np.zeros((90, 90, 3), np.uint8))[1].tobytes()])
def test_a_thumbnail_that_cannot_be_compared_is_left_out(thumbnail: bytes) -> None:
    before, middle, after = fading(0, 0.5, 1)
    assert whole_for([before, middle, replace(after, thumbnail=thumbnail)]) == {}
    assert whole_for([before, replace(middle, thumbnail=thumbnail), after]) == {}


@given(st.lists(st.sampled_from([0.0, 0.2, 0.4, 0.6, 0.8, 1.0]), min_size=1, max_size=7))
@settings(max_examples=30, deadline=None)
def test_what_gives_way_gives_way_to_a_frame_that_shows_more(shares: list[float]) -> None:
    found = whole_for(fading(*shares, step_s=0.5))
    assert all(shares[index] < shares[whole] for index, whole in found.items())
    assert len(found) < len(shares)


def kept(shares: Sequence[float], pruner: Pruner, keyframes: int | None) -> list[int]:
    found = fading(*shares, step_px=4)
    decisions, _, _ = select_from(
        found, embeddings_of(found, EMBEDDER), pruner=pruner, keyframes=keyframes, redundant=0.999, min_sharpness=None
    )
    return [index for index, decision in enumerate(decisions) if decision.kept]


def test_others_take_the_places_of_those_that_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = (0, 0, 0.5, 1, 1, 0.5, 0, 0)
    chosen = kept(shares, Algorithm1(None), 5)
    assert (len(chosen), {2, 5} & {*chosen}) == (5, set())
    monkeypatch.setattr("vip.extraction.select.faint_copies", lambda *_: {})
    assert {2, 5} & {*kept(shares, Algorithm1(None), 5)}, "else nothing had to give way"


def test_where_all_frames_are_taken_as_they_are_faint_ones_are() -> None:
    assert kept((0, 0.5, 1), NoPruning(None), None) == [0, 1, 2]
