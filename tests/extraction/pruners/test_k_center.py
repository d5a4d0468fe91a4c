"""`k-center` against farthest-first read from the book, and its words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.extraction.pruning import at_angles, kept
from vip.extraction.pruners.k_center import KCenter
from vip.protocols import DistinctPictures

angles = st.lists(st.integers(0, 11), min_size=1, max_size=20).map(lambda steps: [15.0 * step for step in steps])


def centers(degrees: list[float], keep: int) -> list[int]:
    frames = at_angles(degrees)
    return kept(frames, [drop.index for drop in KCenter(None).prune(frames, keep=keep, redundant=0.9).drops])


def test_a_view_that_comes_back_is_kept_once() -> None:
    assert centers([0, 90, 0, 90, 0, 180], 3) == [0, 1, 5]


def test_the_first_keyframe_is_what_the_video_mostly_shows() -> None:
    assert centers([90, 0, 0, 1, 0], 1) == [3]


@given(angles, st.integers(1, 22))
@settings(deadline=None, max_examples=100)
def test_each_keyframe_is_the_frame_least_like_those_before(degrees: list[float], keep: int) -> None:
    frames = at_angles(degrees)
    rows = np.concatenate([frames.embeddings.image, frames.embeddings.text], axis=1)
    likeness = rows @ rows.T / 2
    chosen = set(centers(degrees, keep))
    assert len(chosen) == min(keep, len(degrees))
    if len(chosen) < len(degrees):
        spread = max(likeness[a, b] for a in chosen for b in chosen if a != b) if len(chosen) > 1 else -1
        farthest = min(max(likeness[row, center] for center in chosen) for row in range(len(degrees)) if row not in chosen)
        assert farthest >= spread - 1e-6  # nothing left is less like the keyframes than they are like each other


@given(angles)
@settings(deadline=None, max_examples=50)
def test_auto_stops_where_every_other_frame_is_as_like_a_keyframe_as_the_bound(degrees: list[float]) -> None:
    frames = at_angles(degrees)
    thinned = KCenter(None).prune(frames, keep=None, redundant=0.9)
    assert all(drop.score >= 0.9 for drop in thinned.drops)
    stay = kept(frames, [drop.index for drop in thinned.drops])
    assert stay
    if len(stay) > 1:
        fewer = KCenter(None).prune(frames, keep=len(stay) - 1, redundant=0.9)
        assert min(drop.score for drop in fewer.drops) < 0.9


def test_each_drop_names_the_keyframe_it_is_most_like() -> None:
    thinned = KCenter(None).prune(at_angles([0, 90, 10, 80]), keep=2, redundant=0.9)
    said = {drop.index: (drop.neighbours, drop.reason) for drop in thinned.drops}
    assert len(said) == 2
    for index, (neighbours, reason) in said.items():
        (center,) = neighbours
        assert center not in said
        assert abs(center - index) == 2
        assert reason == f"dropped: likeness {0.5 + np.cos(np.radians(10)) / 2:.3f} to the keyframe at 0:0{center}.00"
    assert [drop.step for drop in thinned.drops] == [1, 2]
    assert thinned.kept == "kept: one of the 2 that are least like each other"


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_those_most_like_a_keyframe_are_dropped_first_and_of_equal_ones_the_earliest(keep: int) -> None:
    drops = KCenter(None).prune(at_angles([0, 40, 10, 90, 70, 20, 40, 120]), keep=keep, redundant=0.9).drops
    order = [(-drop.score, drop.index) for drop in drops]
    assert len({score for score, _ in order}) > 1
    assert order == sorted(order)


def test_the_curve_goes_on_beyond_the_chosen_number_and_rises() -> None:
    curve = dict(KCenter(None).prune(at_angles(np.linspace(0, 170, 30).tolist()), keep=5, redundant=0.9).curve)
    assert sorted(curve) == list(range(2, 11))
    assert list(curve.values()) == sorted(curve.values())


@pytest.mark.parametrize(("text_weight", "stay"), [(0.0, [0, 2]), (1.0, [0, 3])])
def test_the_text_has_the_share_that_is_asked(text_weight: float, stay: list[int]) -> None:
    frames = at_angles([0, 0, 90, 0], texts=[0, 0, 0, 90], text_weight=text_weight)
    assert kept(frames, [drop.index for drop in KCenter(None).prune(frames, keep=2, redundant=0.9).drops]) == stay


def test_no_frames_and_one_frame_drop_nothing() -> None:
    for degrees in ([], [10.0]):
        assert list(KCenter(None).prune(at_angles(degrees), keep=3, redundant=0.9).drops) == []


def test_people_are_no_exception() -> None:
    people = at_angles([0, 0, 0, 90], people=[False, True, False, False])
    assert KCenter(None).prune(people, keep=2, redundant=0.9) == KCenter(None).prune(at_angles([0, 0, 0, 90]), keep=2, redundant=0.9)


@pytest.mark.parametrize("keep", [1, 2, 5])
def test_the_same_frames_give_the_same_keyframes(keep: int) -> None:
    degrees = [40.0, 40.0, 10.0, 10.0, 70.0, 70.0]
    assert centers(degrees, keep) == centers(degrees, keep)


def test_auto_shows_each_picture_though_all_are_alike() -> None:
    frames = replace(at_angles([0, 1, 2, 3, 90, 91]), pictures=DistinctPictures([0, 0, 1, 1, 2, 2], [0, 3, 4]))
    stay = kept(frames, [drop.index for drop in KCenter(None).prune(frames, keep=None, redundant=0.9).drops])
    assert {frames.pictures.number[row] for row in stay} == {0, 1, 2}  # type: ignore[union-attr]
    assert len(stay) == 3


def test_a_picture_that_nothing_kept_shows_is_shown_by_the_row_that_stands_for_it() -> None:
    frames = replace(at_angles([0, 1, 2, 3]), pictures=DistinctPictures([0, 0, 0, 1], [1, 3]))
    assert 3 in kept(frames, [drop.index for drop in KCenter(None).prune(frames, keep=None, redundant=0.9).drops])


def test_a_number_that_is_asked_for_does_not_look_at_pictures() -> None:
    frames = replace(at_angles([0, 1, 2, 3]), pictures=DistinctPictures([0, 1, 2, 3], [0, 1, 2, 3]))
    assert len(kept(frames, [drop.index for drop in KCenter(None).prune(frames, keep=1, redundant=0.9).drops])) == 1
