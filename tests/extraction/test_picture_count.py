"""The pictures of the frames that are left for a pruner: copies belong to the frame that stayed, and one frame stands for each."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from tests.extraction.analyses import picture
from tests.extraction.test_distinct import BOUND, EMBEDDER, analyses
from tests.test_local_change import LINES, OTHERS, noisy, slide, with_person
from vip.extraction.analyze import FrameAnalysis
from vip.extraction.copies import copies
from vip.extraction.embeddings import embeddings_of
from vip.extraction.picture_count import _shown_s, count_pictures, likely_pictures
from vip.protocols import DistinctPictures
from vip.records import Decision, Image, Rule


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


@pytest.mark.parametrize("often", [1, 2])
def test_the_fullest_state_stands_for_its_slide_also_where_each_state_before_it_was_shown_longer(often: int) -> None:
    """Where it was shown twice, one of the two is dropped as a copy, and the other stands for the slide."""
    images = [*[slide(*LINES[:1])] * 4, *[slide(*LINES[:2])] * 4, *[slide(*LINES)] * often, slide(*OTHERS), slide(*OTHERS)]
    left, found = pictures(images)
    assert len(found) == 2
    assert 8 <= left[found.stand_for[0]] < 8 + often <= left[found.stand_for[1]]


def test_a_picture_that_comes_back_keeps_its_number() -> None:
    empty = picture(3)
    left, found = pictures([empty, empty, with_person(empty), with_person(empty), empty, empty])
    assert len(left) == 3
    assert list(found.number) == [0, 1, 0]
    assert all(number <= len(left) for number, _ in found.curve)


def test_a_frame_at_which_nothing_moves_stands_for_its_picture_before_a_sharper_one() -> None:
    frames = analyses([slide(*LINES), noisy(slide(*LINES), 1)])

    def stands() -> int:
        found = count_pictures(frames, embeddings_of(frames, EMBEDDER), [0, 1], {}, text_weight=0.5, redundant=BOUND)
        (row,) = found.stand_for
        return row

    moving = stands()
    frames[1 - moving] = replace(frames[1 - moving], is_still=True)
    assert stands() == 1 - moving


def test_a_frame_with_many_copies_stands_for_its_picture_before_a_sharper_one_in_which_somebody_comes_in() -> None:
    view = picture(3)
    coming = view.copy()
    coming[120:300, 628:] = np.random.default_rng(0).integers(0, 255, (180, 12, 3))
    left, found = pictures([view, view, view, coming])
    assert len(left) == 2
    assert list(found.number) == [0, 0]
    (row,) = found.stand_for
    assert left[row] != 3, "of the copies"


def test_a_picture_is_shown_from_its_first_to_its_last_frame_blurred_and_pale_ones_too() -> None:
    frames = analyses([picture(5)] * 4)

    def dropped(rule: Rule) -> Decision:
        return Decision(kept=False, rule=rule, reason="dropped", neighbours=(2,))

    assert _shown_s(frames, [2], {}) == [(4.0, 4.0)]
    assert _shown_s(frames, [2], {0: dropped("faded"), 3: dropped("blurred")}) == [(0.0, 6.0)]
    assert _shown_s(frames, [2], {1: dropped("faded"), 3: dropped("in_transition")}) == [(2.0, 4.0)]
    assert _shown_s(frames, [1, 2], {0: dropped("blurred"), 3: dropped("blurred")}) == [(2.0, 2.0), (4.0, 6.0)], "another was shown between"
    frames[2] = replace(frames[2], stands_in_for=frames[0].pts)
    assert _shown_s(frames, [2], {0: dropped("in_transition"), 3: dropped("in_transition")}) == [(0.0, 4.0)], "a settled one stands for it"


# ---------------------------------------------------------------- before any text is known


def likely(images: list[Image], min_sharpness: float | None = None) -> list[int]:
    """Numbers of the frames that would stand for a picture."""
    frames = analyses(images)
    return [frames.index(frame) for frame in likely_pictures(frames, min_sharpness, redundant=BOUND)]


def test_likely_pictures_are_those_that_are_counted_later() -> None:
    images = [slide(*LINES[:1]), slide(*LINES[:2]), slide(*LINES), slide(*LINES), slide(*OTHERS), slide(*OTHERS)]
    left, found = pictures(images)
    assert likely(images) == sorted(left[row] for row in found.stand_for)


def test_bad_frames_and_those_that_are_not_as_sharp_as_asked_stand_for_no_picture() -> None:
    soft = np.asarray(cv2.GaussianBlur(picture(5), (0, 0), 0.8), np.uint8)
    images = [np.zeros_like(picture(3)), picture(3), picture(3), soft, soft]
    assert len(likely(images)) == 2
    frames = analyses(images)
    between = (frames[1].measured.quality.sharpness + frames[3].measured.quality.sharpness) / 2
    assert {*likely(images, between)} < {1, 2}


def test_where_all_is_bad_or_there_is_nothing_no_picture_is_likely() -> None:
    assert likely([np.zeros_like(picture(3))] * 3) == []
    assert likely([picture(3), picture(5)], 1e9) == []
    assert likely_pictures([], None, redundant=BOUND) == []


def test_of_a_picture_that_stands_still_all_but_one_frame_are_spare() -> None:
    still = [replace(frame, is_still=True) for frame in analyses([picture(3), noisy(picture(3), 1), picture(5)])]

    def spare(frames: list[FrameAnalysis]) -> set[int]:
        found = count_pictures(frames, embeddings_of(frames, EMBEDDER), [0, 1, 2], {}, text_weight=0.5, redundant=BOUND)
        assert list(found.number) == [0, 0, 1]
        assert not found.spare & set(found.stand_for)
        return set(found.spare)

    assert len(spare(still)) == 1
    assert len(spare([replace(still[0], is_still=False), *still[1:]])) == 1, "of a still picture also those that move"
    assert spare([replace(frame, is_still=False) for frame in still]) == set()


def test_rows_are_calm_where_they_stand_still_or_move_no_more_than_usual() -> None:
    frames = [replace(frame, is_still=False, is_calm=False) for frame in analyses([slide(*LINES), slide(*OTHERS), slide(LINES[0])])]
    frames = [replace(frames[0], is_still=True), frames[1], replace(frames[2], is_calm=True)]
    found = count_pictures(frames, embeddings_of(frames, EMBEDDER), [0, 1, 2], {}, text_weight=0.5, redundant=BOUND)
    assert found.calm == {0, 2}


def test_a_picture_whose_copies_stand_still_does_so_too() -> None:
    """The frame that is left of a row may be the one at which the next picture begins to come."""
    images = [picture(3), noisy(picture(3), 1), picture(3), picture(5)]
    frames = [replace(frame, is_still=place == 2) for place, frame in enumerate(analyses(images))]
    dropped = {2: Decision(kept=False, rule="duplicate", reason="dropped", neighbours=(0,))}
    found = count_pictures(frames, embeddings_of(frames, EMBEDDER), [0, 1, 3], dropped, text_weight=0.5, redundant=BOUND)
    assert list(found.number) == [0, 0, 1]
    assert found.spare == {0, 1} - set(found.stand_for)
