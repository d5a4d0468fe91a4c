"""Still frames that seem to be blurred copies of a neighbour are taken back; blurred copies are not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import pytest

from tests.extraction.analyses import picture
from tests.extraction.test_distinct import EMBEDDER, analyses
from tests.test_local_change import LINES, OTHERS, slide
from vip.extraction.bad_frames import bad_frames
from vip.extraction.embeddings import embeddings_of
from vip.extraction.other_pictures import other_pictures
from vip.extraction.pruners.algorithm1 import Algorithm1
from vip.extraction.select import select_from
from vip.records import Decision, Image


def softened(image: Image) -> Image:
    return np.asarray(cv2.GaussianBlur(image, (0, 0), 1.5), np.uint8)


def with_detail(view: Image) -> Image:
    """The view with an insert that is full of detail."""
    shown = view.copy()
    shown[60:170, 380:560] = cv2.resize(slide(*LINES, *OTHERS), (180, 110), interpolation=cv2.INTER_AREA)
    return shown


SPARSE = picture(3)
FULL = with_detail(SPARSE)


def blurred_beside(other: int) -> Decision:
    return Decision(kept=False, rule="blurred", reason="dropped: blurred", neighbours=(other,))


def replaced(decision: Decision, **changed: Any) -> Decision:
    return decision.model_copy(update=changed)


def test_a_view_beside_the_same_with_a_detailed_insert_is_taken_back() -> None:
    frames = analyses([SPARSE, SPARSE, FULL, FULL])
    assert other_pictures(frames, {0: blurred_beside(2), 1: blurred_beside(2)}, "blurred") == [0, 1]


def test_where_nothing_else_says_so_packets_do() -> None:
    frames = analyses([SPARSE, FULL, FULL])
    assert other_pictures(frames, {0: blurred_beside(1)}, "blurred") == []
    frames[0] = replace(frames[0], is_still=True)
    assert other_pictures(frames, {0: blurred_beside(1)}, "blurred") == [0]


def test_a_blurred_copy_stays_dropped() -> None:
    frames = analyses([softened(FULL), softened(FULL), FULL, FULL], step_s=1.0)
    dropped = bad_frames(frames, None)
    assert dropped[0].rule == dropped[1].rule == "blurred"
    assert other_pictures(frames, dropped, "blurred") == []
    assert other_pictures(frames, {0: blurred_beside(2), 1: blurred_beside(2)}, "blurred") == [], "it stands still, but shows the same"


@pytest.mark.parametrize("sigma", [4.0, 8.0, 16.0])
def test_a_copy_so_far_out_of_focus_that_its_cells_differ_stays_dropped(sigma: float) -> None:
    """It stands still and differs from the sharp one, but not from that one blurred."""
    out_of_focus = np.asarray(cv2.GaussianBlur(FULL, (0, 0), sigma), np.uint8)
    frames = analyses([out_of_focus, out_of_focus, FULL, FULL], step_s=1.0)
    dropped = bad_frames(frames, None)
    assert {index: decision.rule for index, decision in dropped.items()} == {0: "blurred", 1: "blurred"}
    copies = {0: blurred_beside(2), 1: blurred_beside(2)}
    assert other_pictures(frames, copies, "blurred") == []
    other = analyses([np.roll(out_of_focus, 150, axis=1)] * 2, step_s=1.0)
    assert other_pictures([*other, *frames[2:]], copies, "blurred") == [0, 1], "another picture, as soft"


def test_only_what_was_dropped_as_a_copy_of_a_neighbour_is_taken_back() -> None:
    frames = analyses([SPARSE, SPARSE, FULL, FULL])
    copy = blurred_beside(2)
    for other in (replaced(copy, rule="in_transition"), replaced(copy, rule="dark"), replaced(copy, neighbours=())):
        assert other_pictures(frames, {0: other, 1: copy}, "blurred") == [1]


def faded(image: Image, share: float, level: int) -> Image:
    """A picture on its way to black, grey or white."""
    return np.asarray(np.round(share * image + (1 - share) * level), np.uint8)


def test_a_slide_with_fewer_words_than_the_next_is_no_pale_copy_of_it() -> None:
    frames = analyses([slide(*LINES[:2]), slide(*LINES[:2]), slide(*OTHERS, *LINES), slide(*OTHERS, *LINES)])
    copies = {0: replaced(blurred_beside(2), rule="faded"), 1: replaced(blurred_beside(2), rule="faded")}
    assert other_pictures(frames, copies, "faded") == [0, 1]
    assert other_pictures(frames, copies, "blurred") == []
    assert other_pictures([*frames[1:3], frames[3]], {0: replaced(copies[0], neighbours=(1,))}, "faded") == [], "it does not last"


@pytest.mark.parametrize("level", [0, 128, 255])
@pytest.mark.parametrize("share", [0.3, 0.6])
@pytest.mark.parametrize("full", [FULL, slide(*LINES)])
def test_a_pale_copy_stays_dropped_though_it_stands_still(full: Image, share: float, level: int) -> None:
    pale = faded(full, share, level)
    frames = analyses([pale, pale, full, full])
    copies = {0: replaced(blurred_beside(2), rule="faded"), 1: replaced(blurred_beside(2), rule="faded")}
    assert other_pictures(frames, copies, "faded") == []
    other = analyses([np.roll(pale, 150, axis=1)] * 2)
    assert other_pictures([*other, *frames[2:]], copies, "faded") == [0, 1], "another picture, as pale"


@pytest.mark.parametrize(("few", "many"), [(picture(0), with_detail(picture(0))), (slide(*LINES), slide(*LINES, *OTHERS))])
def test_they_are_no_bad_frames(few: Image, many: Image) -> None:
    assert bad_frames(analyses([few, few, many, many]), None) == {}


def test_such_frames_are_kept_whatever_is_asked_for() -> None:
    frames = analyses([SPARSE, SPARSE, FULL, FULL])
    for keyframes, kept in ((None, 2), (2, 2)):
        decisions = select_from(
            frames,
            embeddings_of(frames, EMBEDDER),
            pruner=Algorithm1(None),
            keyframes=keyframes,
            redundant=0.88,
            min_sharpness=None,
        ).decisions
        assert sum(decision.kept for decision in decisions) == kept
