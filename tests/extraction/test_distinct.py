"""How many pictures frames show: slides, people and inserts counted as a person does, and nothing that sways or passes by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import cv2
import numpy as np
import pytest

from tests.extraction.analyses import TIME_BASE, picture
from tests.test_local_change import LINES, OTHERS, moved, noisy, slide, with_insert, with_person
from vip.extraction.analyze import FrameAnalysis, FrameAnalyzer
from vip.extraction.distinct import DistinctPicture, _Comparison, distinct_pictures, passing
from vip.local_change import NOTHING_GONE, change_of_thumbnails
from vip.models.classic import ClassicEmbedder
from vip.models.opencv import OpenCVDetector
from vip.records import Frame, Image

BOUND = 0.88
EMBEDDER = ClassicEmbedder(None)
ANALYZER = FrameAnalyzer(EMBEDDER, EMBEDDER, OpenCVDetector(None))


def analyses(images: Sequence[Image], *, step_s: float = 2.0) -> list[FrameAnalysis]:
    """One every so many seconds; the packets say nothing."""
    return [ANALYZER(Frame(round(1000 * step_s * number), TIME_BASE, image)) for number, image in enumerate(images)]


def count(images: Sequence[Image], *, step_s: float = 2.0) -> tuple[DistinctPicture, ...]:
    frames = analyses(images, step_s=step_s)
    return distinct_pictures(frames, lambda a, b: float(frames[a].view @ frames[b].view), BOUND)[0]


def rows(images: Sequence[Image], *, step_s: float = 2.0) -> list[tuple[int, ...]]:
    return [found.rows for found in count(images, step_s=step_s)]


def test_slides_that_the_embedder_calls_alike_are_counted() -> None:
    one, other = slide(*LINES), slide(*OTHERS)
    frames = analyses([one, other])
    assert float(frames[0].view @ frames[1].view) > BOUND
    assert rows([one, one, other, other, noisy(other, 1)]) == [(0, 1), (2, 3, 4)]


def test_a_slide_that_is_built_up_is_one_and_its_last_state_the_fullest() -> None:
    found = count([slide(LINES[0]), slide(*LINES[:2]), slide(*LINES), slide(*LINES), slide(*OTHERS), slide(*OTHERS)])
    assert [(one.rows, one.fullest) for one in found] == [((0, 1, 2, 3), 3), ((4, 5), None)]
    gone = count([slide(*LINES[:2]), slide(*LINES), slide(*LINES[:2])])
    assert [(one.rows, one.fullest) for one in gone] == [((0, 1, 2), 1)], "its last lines went again"


@pytest.mark.parametrize("moving", [{"is_still": False}, {"in_transition": True}])
def test_a_frame_in_which_the_next_picture_comes_is_not_the_fullest_one(moving: dict[str, bool]) -> None:
    pages = [slide(*LINES[:2]), slide(*LINES), slide(*LINES), slide(*LINES, "and one more")]
    still = [replace(frame, is_still=True) for frame in analyses([*pages, slide(*OTHERS)])]
    found = distinct_pictures([*still[:3], replace(still[3], **moving), still[4]], lambda a, b: 0.95, BOUND)[0]
    assert [(one.rows, one.fullest) for one in found] == [((0, 1, 2, 3), 2), ((4,), None)]
    restless = [replace(frame, is_still=False) for frame in still]
    assert distinct_pictures(restless, lambda a, b: 0.95, BOUND)[0][0].fullest == 3, "where none stands still, the last"


def test_a_slide_that_comes_back_before_all_its_lines_had_joined_is_shown_with_all() -> None:
    pages = [slide(*LINES[:2]), slide(*LINES), slide(*OTHERS), slide(*LINES[:2])]
    still = [replace(frame, is_still=True) for frame in analyses(pages)]
    found = distinct_pictures(still, lambda a, b: 0.95, BOUND)[0]
    assert [(one.rows, one.fullest) for one in found] == [((0, 1, 3), 1), ((2,), None)]


@pytest.mark.parametrize(("share", "came_back"), [(NOTHING_GONE * 0.9, True), (NOTHING_GONE * 1.1, False)])
def test_a_slide_with_few_words_has_not_come_back_as_one_with_more(monkeypatch: pytest.MonkeyPatch, share: float, came_back: bool) -> None:
    """Neighbours may lose more while lines join: an edge of a letter, a line that is drawn anew."""
    few, many = slide(*LINES[:1]), slide(*LINES)
    progress = replace(change_of_thumbnails(*(frame.thumbnail for frame in analyses([few, many]))), gone=share)
    assert progress.is_progress
    frames = [replace(frame, is_still=True) for frame in analyses([many, picture(5), few])]
    change = _Comparison.change
    monkeypatch.setattr(_Comparison, "change", lambda self, a, b: progress if (a, b) == (2, 0) else change(self, a, b))
    found = distinct_pictures(frames, lambda a, b: 0.0, BOUND)[0]
    assert [one.rows for one in found] == ([(0, 2), (1,)] if came_back else [(0,), (1,), (2,)])


def test_a_still_picture_that_comes_back_is_the_same_again() -> None:
    empty = picture(3)
    person = with_person(empty)
    assert rows([empty, noisy(empty, 1), person, person, empty, noisy(empty, 2)]) == [(0, 1, 4, 5), (2, 3)]


@pytest.mark.parametrize(("lines", "is_back"), [(1, False), (16, True)])
def test_a_full_page_of_which_little_more_than_the_title_comes_back_is_not_that_page(lines: int, is_back: bool) -> None:
    """Where most of its lines are back, it is shown before all had joined."""
    page = [f"line {number} of very many words that fill the page" for number in range(20)]
    full, other, again = slide(*page), picture(5), slide(*page[:lines])
    assert rows([full, full, other, other, again, again]) == ([(0, 1, 4, 5), (2, 3)] if is_back else [(0, 1), (2, 3), (4, 5)])


def rows_of_alike(images: Sequence[Image], blurred_s: float = 0.0, *, step_s: float = 0.4) -> list[tuple[int, ...]]:
    """Count frames, one every 0.4 s, that an embedder takes for the same; the fifth is seen, blurred, so much earlier and later too."""
    frames = analyses(images, step_s=step_s)
    shown_s = [(frame.time_s - (number == 4) * blurred_s, frame.time_s + (number == 4) * blurred_s) for number, frame in enumerate(frames)]
    return [found.rows for found in distinct_pictures(frames, lambda a, b: 0.95, BOUND, shown_s=shown_s)[0]]


def swaying(image: Image) -> list[Image]:
    return [moved(image, 2 * (number % 2), 0) for number in range(4)]


def test_a_shot_of_half_a_second_between_two_cuts_counts() -> None:
    before, shot, behind = picture(3), picture(5), picture(8)
    cut = [*swaying(before), *swaying(shot)[:2], *swaying(behind)]
    assert rows_of_alike(cut) == [(0, 1, 2, 3), (4, 5), (6, 7, 8, 9)]
    assert rows_of_alike([*cut[:6], *cut[:4]]) == [tuple(range(10))]  # what was before it goes on: somebody walked by


def restless(image: Image, frames: int) -> list[Image]:
    """In no two frames in a row the same: in pieces too short to be seen."""
    return [with_person(image) if number % 2 else with_insert(image) for number in range(frames)]


@pytest.mark.parametrize(("frames", "counts"), [(3, False), (4, True), (5, True)])
def test_a_shot_of_a_second_counts_however_restless_it_is(frames: int, counts: bool) -> None:
    found = rows_of_alike([*swaying(picture(3)), *restless(picture(5), frames), *swaying(picture(8))])
    shot = tuple(range(4, 4 + frames))
    assert found[0] == ((0, 1, 2, 3) if counts else (0, 1, 2, 3, *shot))
    assert (shot in found) == counts


@pytest.mark.parametrize(
    ("first", "counts"), [(swaying(picture(8))[:3], True), (restless(picture(8), 3), False), (swaying(picture(8))[:1], False)]
)
def test_a_short_shot_at_the_end_of_a_video_counts_if_it_is_alike_in_itself(first: list[Image], counts: bool) -> None:
    images = [*first, *restless(picture(5), 2), *swaying(picture(5)), *swaying(picture(3))]
    assert (tuple(range(len(first))) in rows_of_alike(images)) == counts
    backwards = rows_of_alike(images[::-1])
    assert (tuple(range(len(images) - len(first), len(images))) in backwards) == counts


@pytest.mark.parametrize(("angle", "is_cut"), [(0.4, True), (0.3, False)])  # cosines of 0.92 and 0.96
def test_a_pan_in_which_all_of_the_picture_changes_is_no_cut(angle: float, is_cut: bool) -> None:
    frames = analyses([*swaying(picture(3)), *restless(picture(5), 5), *swaying(picture(8))], step_s=0.4)
    views = [np.array([np.cos(angle * shot), np.sin(angle * shot)], np.float32) for shot in [0] * 4 + [1] * 5 + [2] * 4]
    panned = [replace(frame, view=view) for frame, view in zip(frames, views, strict=True)]
    found = [one.rows for one in distinct_pictures(panned, lambda a, b: 0.95, BOUND)[0]]
    assert ((4, 5, 6, 7, 8) in found) == is_cut


@pytest.mark.parametrize(("step_s", "counts"), [(0.32, True), (0.28, False), (0.12, False)])
def test_a_shot_of_less_than_a_third_of_a_second_does_not_count(step_s: float, counts: bool) -> None:
    """Two frames of it: a flash between two cuts."""
    cut = [*swaying(picture(3)) * 3, *swaying(picture(5))[:2], *swaying(picture(8)) * 3]
    found = rows_of_alike(cut, step_s=step_s)
    assert ((12, 13) in found) == counts, found


@pytest.mark.parametrize("are_cuts", [True, False])
@pytest.mark.parametrize(("blurred_s", "counts"), [(0.2, True), (0.1, False)])
def test_a_short_shot_lasts_as_long_as_blurred_frames_of_it_are_seen(blurred_s: float, counts: bool, are_cuts: bool) -> None:
    """Also where its view is so like those beside it that what changes there may be a pan."""
    frames = analyses([*swaying(picture(3)) * 3, *swaying(picture(5))[:2], *swaying(picture(8)) * 3], step_s=0.12)
    seen = frames if are_cuts else [replace(frame, view=frames[0].view) for frame in frames]
    shown_s = [(frame.time_s - blurred_s * (number == 12), frame.time_s) for number, frame in enumerate(seen)]
    found = [one.rows for one in distinct_pictures(seen, lambda a, b: 0.95, BOUND, shown_s=shown_s)[0]]
    assert ((12, 13) in found) == counts, found


def test_a_picture_that_only_passing_frames_show_is_shown_whole_by_all_of_them_and_fullest_by_none() -> None:
    """Two flashes that an embedder takes for one; neither is there long enough to be seen."""
    flashes = [*swaying(picture(5))[:2], *swaying(picture(8))[:2]]
    frames = analyses([*swaying(picture(3)) * 2, *flashes, *swaying(picture(3)) * 2], step_s=0.15)

    def cosine(a: int, b: int) -> float:
        return 0.95 if (8 <= a < 12) == (8 <= b < 12) else 0.5

    found = distinct_pictures(frames, cosine, BOUND)[0]
    assert [one.rows for one in found if 8 in one.rows] == [(8, 9, 10, 11)]
    assert [(one.whole, one.fullest) for one in found] == [(one.rows, None) for one in found]


def test_a_picture_is_shown_as_long_as_blurred_frames_of_it_are() -> None:
    frames = [*swaying(picture(3)), *swaying(picture(5))[:2], *swaying(picture(3))]
    assert rows_of_alike(frames) == [tuple(range(10))]
    assert rows_of_alike(frames, blurred_s=0.7) == [(0, 1, 2, 3, 6, 7, 8, 9), (4, 5)]


def test_an_insert_counts_and_the_view_behind_it_once() -> None:
    view = picture(5)
    laid = with_insert(view)
    assert rows([view, view, laid, laid, view, view]) == [(0, 1, 4, 5), (2, 3)]


def test_cuts_count_by_the_cosine() -> None:
    assert rows([picture(1), picture(1), picture(2), picture(2), picture(7), picture(7)]) == [(0, 1), (2, 3), (4, 5)]


def test_one_who_passes_by_is_no_picture_but_one_who_stays_is() -> None:
    empty = picture(3)
    person = with_person(empty)
    assert len(rows([empty, empty, person, empty, empty])) == 1
    assert len(rows([empty, empty, person, person, empty, empty])) == 2
    assert len(rows([empty] * 5 + [person, person] + [empty] * 5, step_s=0.5)) == 1  # for half a second


def test_what_moves_all_the_time_is_one_picture() -> None:
    view = picture(5)
    sways = [with_person(moved(view, 0, 0)) if number % 2 else moved(with_person(view), 40, 0) for number in range(12)]
    assert len(rows(sways)) == 1


def test_passing_frames_are_those_to_look_at_more_closely() -> None:
    empty = picture(3)
    assert passing(analyses([empty, empty, with_person(empty), empty, empty])) == [2]
    assert passing(analyses([empty, empty, with_person(empty), with_person(empty), empty, empty])) == []
    assert passing(analyses([empty])) == [0]  # nobody knows yet whether it stays


def test_the_curve_says_how_alike_the_next_two_are_and_crosses_the_bound_at_the_count() -> None:
    frames = analyses([slide(*LINES), slide(*LINES), slide(*OTHERS), slide(*OTHERS), picture(1), picture(1), slide(*LINES)])
    found, curve = distinct_pictures(frames, lambda a, b: float(frames[a].view @ frames[b].view), BOUND)
    assert len(found) == 3
    assert [number for number, _ in curve] == [2, 3, 4, 5, 6, 7]
    assert {number for number, likeness in curve if likeness >= BOUND} == {4, 5, 6, 7}


@pytest.mark.parametrize(
    ("cosines", "found"),
    [
        ([0.93, 0.92, 0.91, 0.90], [(0, 1, 2, 3, 4)]),
        ([0.90, 0.91, 0.92, 0.93], [(0, 1, 2, 3, 4)]),
        ([0.89, 0.93, 0.91, 0.92], [(0, 1, 2, 3, 4)]),
        ([0.91, 0.92, 0.60, 0.93], [(0, 1, 2), (3, 4)]),
        ([0.60, 0.91, 0.92, 0.93], [(0,), (1, 2, 3, 4)]),
        ([0.93, 0.92, 0.91, 0.60], [(0, 1, 2, 3), (4,)]),
    ],
)
def test_in_whatever_order_neighbours_are_alike_those_that_are_become_one(cosines: list[float], found: list[tuple[int, ...]]) -> None:
    """A view that moves all the time: each row has this cosine to the next, and the smallest between them to those behind."""
    frames = analyses([moved(picture(3), 40 * (number % 2), 0) for number in range(5)])

    def cosine(a: int, b: int) -> float:
        return min(cosines[min(a, b) : max(a, b)])

    pictures, curve = distinct_pictures(frames, cosine, BOUND)
    assert [one.rows for one in pictures] == found
    assert [number for number, _ in curve] == [2, 3, 4, 5]
    assert [likeness for _, likeness in curve] == sorted(cosines), "the most alike are joined first"


def test_one_frame_and_frames_without_thumbnails_are_counted() -> None:
    assert rows([picture(1)]) == [(0,)]
    blank = [ANALYZER(Frame(0, TIME_BASE, np.asarray(cv2.resize(picture(1), (64, 1)), np.uint8)))]
    assert [found.rows for found in distinct_pictures(blank, lambda a, b: 1.0, BOUND)[0]] == [(0,)]
