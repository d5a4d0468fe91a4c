"""The pictures of the frames that are left for a pruner: copies belong to the frame that stayed, and one frame stands for each."""

from __future__ import annotations

from tests.extraction.analyses import picture
from tests.extraction.test_distinct import BOUND, EMBEDDER, analyses
from tests.extraction.test_local_change import LINES, OTHERS, slide, with_person
from vip.extraction.copies import copies
from vip.extraction.embeddings import embeddings_of
from vip.extraction.picture_count import count_pictures
from vip.protocols import DistinctPictures
from vip.records import Image


def pictures(images: list[Image]) -> tuple[list[int], DistinctPictures]:
    frames = analyses(images)
    dropped = copies(frames, range(len(frames)))
    left = [index for index in range(len(frames)) if index not in dropped]
    return left, count_pictures(frames, embeddings_of(frames, EMBEDDER), left, dropped, text_weight=0.5, redundant=BOUND)


def test_a_picture_that_only_copies_confirm_is_one() -> None:
    left, found = pictures([slide(*LINES)] * 3 + [slide(*OTHERS)] * 3)
    assert len(left) == 2
    assert list(found.number) == [0, 1]
    assert list(found.stand_for) == [0, 1]


def test_the_fullest_state_stands_for_a_slide_that_is_built_up() -> None:
    left, found = pictures([slide(*LINES[:1]), slide(*LINES[:2]), slide(*LINES), slide(*LINES), slide(*OTHERS), slide(*OTHERS)])
    assert list(found.number) == [0, 0, 0, 1]
    assert next(left[row] for row in found.stand_for) in (2, 3)
    assert len(found) == 2


def test_a_picture_that_comes_back_keeps_its_number() -> None:
    empty = picture(3)
    left, found = pictures([empty, empty, with_person(empty), with_person(empty), empty, empty])
    assert len(left) == 3
    assert list(found.number) == [0, 1, 0]
    assert all(number <= len(left) for number, _ in found.curve)
