"""Of two keyframes in a row that show nearly the same, one gives way to a frame that is far more unlike those beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.extraction.pruning import at_angles, prunable
from vip.extraction.doubles import replace_doubles
from vip.protocols import Prunable
from vip.records import Embeddings


def film(degrees: Sequence[float], **columns: Sequence[bool] | Sequence[float]) -> Prunable:
    return replace(at_angles(degrees), **columns)


def test_one_of_two_that_are_alike_gives_way_to_a_frame_unlike_those_beside_it() -> None:
    assert replace_doubles(film([0, 50, 60, 95, 130]), [0, 1, 2, 4]) == [0, 2, 3, 4]


@pytest.mark.parametrize(
    ("degrees", "kept", "left"),
    [([0, 50, 60, 115, 170], [0, 1, 2, 4], [0, 2, 3, 4]), ([0, 55, 110, 120, 170], [0, 2, 3, 4], [0, 1, 2, 4])],
)
def test_the_one_more_like_its_other_neighbour_goes(degrees: list[float], kept: list[int], left: list[int]) -> None:
    """50 degrees are between it and that neighbour, and 110 between the other and its own."""
    assert replace_doubles(film(degrees), kept) == left


def test_ends_stay() -> None:
    assert replace_doubles(film([0, 5, 60, 120]), [0, 1, 3]) == [0, 2, 3]
    assert replace_doubles(film([0, 60, 115, 120]), [0, 2, 3]) == [0, 1, 3]


def test_where_only_one_shows_people_that_one_stays() -> None:
    degrees = [0, 45, 60, 110, 160]
    kept = [0, 1, 2, 4]
    for people, stays in (([0, 1, 0, 0, 0], 1), ([0, 0, 1, 0, 0], 2)):
        frames = film(degrees, has_people=[bool(flag) for flag in people])
        assert replace_doubles(frames, kept) == sorted([0, stays, 3, 4])


def test_a_person_gives_way_to_nobody_who_would_stand_between_it_and_the_other_person() -> None:
    degrees, kept = [0, 60, 10, 120, 180], [0, 2, 3, 4]
    cutaway = film(degrees)
    assert replace_doubles(cutaway, kept) == [0, 1, 3, 4]
    assert replace_doubles(replace(cutaway, has_people=[True, False, True, False, False]), kept) == kept


@pytest.mark.parametrize(("apart", "is_replaced"), [(36.0, True), (37.5, False)])
def test_only_keyframes_that_are_alike_by_four_fifths_give_way(apart: float, is_replaced: bool) -> None:
    """cos(36.9°) = 0.8."""
    degrees = [0, 80, 80 + apart, 80 + apart + 89, 80 + apart + 178]
    assert (3 in replace_doubles(film(degrees), [0, 1, 2, 4])) is is_replaced


@pytest.mark.parametrize(("unlike", "is_replaced"), [(26.4, False), (26.7, True)])
def test_a_frame_is_one_and_three_quarter_times_as_unlike(unlike: float, is_replaced: bool) -> None:
    """1 - cos(20°) = 0.0603, and 1.75 times that is 1 - cos(26.55°)."""
    degrees = [0, 60, 80, 80 + unlike, 80 + 2 * unlike]
    assert (3 in replace_doubles(film(degrees), [0, 1, 2, 4])) is is_replaced


@pytest.mark.parametrize(("unlike", "is_replaced"), [(13.9, False), (14.2, True)])
def test_a_frame_that_shows_nothing_new_takes_nobody_s_place(unlike: float, is_replaced: bool) -> None:
    """cos(14.07°) = 0.97."""
    degrees = [0, 60, 60, 60 + unlike, 60 + 2 * unlike]
    assert (3 in replace_doubles(film(degrees), [0, 1, 2, 4])) is is_replaced


def test_a_restless_or_a_soft_frame_takes_nobody_s_place() -> None:
    degrees, kept = [0, 50, 60, 95, 130], [0, 1, 2, 4]
    assert replace_doubles(film(degrees, in_transition=[False, False, False, True, False]), kept) == kept
    assert replace_doubles(film(degrees, sharpness=[100.0, 100.0, 100.0, 49.0, 100.0]), kept) == kept
    assert replace_doubles(film(degrees, sharpness=[100.0, 100.0, 100.0, 50.0, 100.0]), kept) != kept


def test_a_frame_that_is_like_one_of_the_keyframes_beside_it_is_none() -> None:
    kept = [0, 1, 2, 4]
    assert replace_doubles(film([0, 50, 60, 65, 130]), kept) == kept
    assert replace_doubles(film([0, 50, 60, 125, 130]), kept) == kept


def test_where_none_are_alike_all_stay() -> None:
    assert replace_doubles(film([0, 40, 80, 120, 160]), [0, 1, 3, 4]) == [0, 1, 3, 4]


def test_without_keyframes_or_others_there_is_nothing_to_replace() -> None:
    assert replace_doubles(film([0, 1, 2]), []) == []
    assert replace_doubles(film([0, 1, 2]), [1]) == [1]
    assert replace_doubles(film([0, 1, 2]), [2, 0, 1]) == [0, 1, 2]


def test_several_doubles_are_replaced_the_most_alike_first() -> None:
    frames = film([0, 2, 40, 45, 90, 130, 180])
    assert replace_doubles(frames, [0, 1, 2, 3, 6]) == [0, 3, 4, 5, 6]


def by_the_book(frames: Prunable, kept: Sequence[int]) -> list[int]:
    """The rule with everything looked at anew in each round."""
    image, rows, joined = frames.embeddings.image.astype(np.float64), sorted(kept), set[int]()
    usual = float(np.median(frames.sharpness))
    while len(rows) > 1:
        a, b = max(pairwise(rows), key=lambda pair: image[pair[0]] @ image[pair[1]])
        likeness, place = image[a] @ image[b], rows.index(a)
        others = {}
        for row in set(range(len(frames))) - set(rows):
            beside = [other for other in rows if other < row][-1:] + [other for other in rows if other > row][:1]
            if not frames.in_transition[row] and frames.sharpness[row] >= usual / 2:
                others[row] = max(image[row] @ image[other] for other in beside)
        if not others or likeness < 0.8 or min(others.values()) > 0.97:
            break
        other = min(others, key=lambda row: (others[row], row))
        before = image[rows[place - 1]] @ image[a] if place else -1
        after = image[b] @ image[rows[place + 2]] if place + 2 < len(rows) else -1
        spare = a if before > after else b
        if frames.has_people[a] != frames.has_people[b]:
            spare = a if frames.has_people[b] else b
        if frames.has_people[spare] and a < other < b:
            break
        if spare in joined or 1 - others[other] < 1.75 * (1 - likeness):
            break
        rows = sorted({*rows, other} - {spare})
        joined.add(other)
    return rows


@given(st.data())
def test_the_rule_is_kept_to_whatever_the_frames(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 24))
    seed = data.draw(st.integers(0, 10_000))
    made = np.random.default_rng(seed).normal(size=(count, 4)) + data.draw(st.sampled_from([0.0, 1.0, 3.0]))
    vectors = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
    flags = st.lists(st.booleans(), min_size=count, max_size=count)
    sharpness = data.draw(st.lists(st.sampled_from([30.0, 60.0, 100.0]), min_size=count, max_size=count))
    frames = prunable(
        Embeddings(vectors, np.ones((count, 1), np.float32), "test"),
        people=data.draw(flags),
        in_transition=data.draw(flags),
        sharpness=sharpness,
    )
    kept = data.draw(st.lists(st.integers(0, count - 1), unique=True, min_size=1))
    found = replace_doubles(frames, kept)
    assert found == by_the_book(frames, kept)
    assert len(found) == len(kept)
