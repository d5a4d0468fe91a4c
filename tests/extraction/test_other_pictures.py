"""Still frames that seem to be blurred copies of a neighbour are taken back; blurred copies are not."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np

from tests.extraction.analyses import picture
from tests.extraction.test_distinct import EMBEDDER, analyses
from tests.extraction.test_local_change import LINES, OTHERS, slide
from vip.extraction.bad_frames import bad_frames
from vip.extraction.embeddings import embeddings_of
from vip.extraction.other_pictures import other_pictures
from vip.extraction.pruners.algorithm1 import Algorithm1
from vip.extraction.select import select_from
from vip.records import Image


def softened(image: Image) -> Image:
    return np.asarray(cv2.GaussianBlur(image, (0, 0), 1.5), np.uint8)


def with_detail(view: Image) -> Image:
    """The view with an insert that is full of detail."""
    shown = view.copy()
    shown[60:170, 380:560] = cv2.resize(slide(*LINES, *OTHERS), (180, 110), interpolation=cv2.INTER_AREA)
    return shown


SPARSE = picture(3)
FULL = with_detail(SPARSE)


def test_a_view_beside_the_same_with_a_detailed_insert_is_taken_back() -> None:
    frames = analyses([SPARSE, SPARSE, FULL, FULL])
    dropped = bad_frames(frames, None)
    assert [dropped[index].rule for index in (0, 1)] == ["blurred", "blurred"]
    assert other_pictures(frames, dropped) == [0, 1]


def test_where_nothing_else_says_so_packets_do() -> None:
    frames = analyses([SPARSE, FULL, FULL])
    assert other_pictures(frames, bad_frames(frames, None)) == []
    frames[0] = replace(frames[0], is_still=True)
    assert other_pictures(frames, bad_frames(frames, None)) == [0]


def test_a_blurred_copy_stays_dropped() -> None:
    frames = analyses([softened(FULL), softened(FULL), FULL, FULL])
    dropped = bad_frames(frames, None)
    assert dropped[0].rule == dropped[1].rule == "blurred"
    assert other_pictures(frames, dropped) == []


def test_only_auto_takes_frames_back() -> None:
    frames = analyses([SPARSE, SPARSE, FULL, FULL])
    for keyframes, kept in ((None, 2), (2, 1)):
        decisions = select_from(
            frames,
            embeddings_of(frames, EMBEDDER),
            pruner=Algorithm1(None),
            keyframes=keyframes,
            redundant=0.88,
            min_sharpness=None,
        ).decisions
        assert sum(decision.kept for decision in decisions) == kept
