"""Matching of shot boundaries against examples that its authors published, and figures counted by hand."""

from __future__ import annotations

import pytest
from shot_scores import Counts, Transition, match, match_by_overlap, measures

CUT = Transition(5, 6)


def cuts(*firsts: int) -> list[Transition]:
    return [Transition(first - 1, first) for first in firsts]


@pytest.mark.parametrize(
    ("tolerance", "true", "hit"),
    # the examples in the docstring of TransNetV2's `evaluate_scenes`, for a predicted cut between frames 5 and 6
    [
        *((0, 5, True), (0, 4, False)),
        *((1, 5, True), (1, 4, True), (1, 3, False)),
        *((2, 5, True), (2, 4, True), (2, 3, True), (2, 2, False)),
    ],
)
def test_cuts_match_as_in_the_published_examples(tolerance: int, true: int, hit: bool) -> None:
    assert match([Transition(true, true + 1)], [CUT], tolerance).hits == hit


def test_shares_are_those_counted_by_hand() -> None:
    # 100 and 202 match; 203 is the second at one cut; 300 is missed; 390 lies nowhere
    counts = match(cuts(100, 201, 300), cuts(100, 202, 203, 390), tolerance=2)
    assert counts == Counts(hits=2, false_alarms=2, missed=1)
    assert (counts.precision, counts.recall, counts.f1) == (0.5, pytest.approx(2 / 3), pytest.approx(4 / 7))


def test_what_cannot_be_divided_is_unknown_and_not_zero() -> None:
    assert (Counts().precision, Counts().recall, Counts().f1) == (None, None, None)
    missed = match(cuts(7), [], tolerance=2)
    assert (missed.precision, missed.recall, missed.f1) == (None, 0.0, 0.0)


def test_counts_of_videos_add_up_before_they_are_divided() -> None:
    both = Counts(1, 0, 0) + Counts(1, 6, 2)
    assert (both.precision, both.recall) == (0.25, 0.5)


def test_a_cut_inside_a_dissolve_finds_it_once() -> None:
    dissolve = [Transition(10, 30)]
    assert match(dissolve, cuts(15, 25), tolerance=0) == Counts(hits=1, false_alarms=1)
    assert [match(dissolve, cuts(first), tolerance=0).hits for first in (10, 11, 30, 31)] == [0, 1, 1, 0]


def test_each_true_gradual_transition_takes_what_it_shares_most_frames_with() -> None:
    # the true one has frames 11 to 29; the predicted ones share 4 and 15 of them
    assert match_by_overlap([Transition(10, 30)], [Transition(0, 15), Transition(14, 40)]) == Counts(1, 1, 0)
    # frame 30 belongs to both shots' ends, not to the transitions: nothing is shared
    assert match_by_overlap([Transition(10, 30)], [Transition(29, 50)]) == Counts(0, 1, 1)
    assert match_by_overlap([Transition(10, 30)], [Transition(28, 50)]) == Counts(1, 0, 0)


def test_of_equal_overlaps_the_more_precise_one_is_taken() -> None:
    # both predictions share 9 frames with the first true one, which takes the shorter; the longer is left for the second
    truth = [Transition(10, 40), Transition(45, 60)]
    assert match_by_overlap(truth, [Transition(5, 20), Transition(30, 50)]) == Counts(2, 0, 0)
    # taken greedily, as NIST says: the first true one takes the only prediction that the second could have had
    assert match_by_overlap([Transition(10, 30), Transition(32, 40)], [Transition(0, 12), Transition(20, 38)]) == Counts(1, 1, 1)


def test_of_equal_and_equally_precise_overlaps_the_earliest_is_taken() -> None:
    # both predictions have 9 frames and share 4 with the first true one; the second true one shares frames with the later alone
    assert match_by_overlap([Transition(10, 30), Transition(31, 45)], [Transition(5, 15), Transition(25, 35)]) == Counts(2, 0, 0)


def test_cuts_match_only_cuts_and_up_to_five_frames_are_a_cut() -> None:
    truth = [Transition(10, 16), Transition(100, 107), *cuts(200)]  # 5 frames, 6 frames, 0 frames
    predicted = [*cuts(12), *cuts(103), Transition(195, 204)]
    found = {name: measure(truth, predicted) for name, measure in measures().items()}
    assert found == {
        "all, ±2 frames": Counts(3, 0, 0),
        "all, exact": Counts(3, 0, 0),
        "cuts, ±2 frames": Counts(1, 1, 1),
        "cuts, exact": Counts(1, 1, 1),
        "gradual, by overlap": Counts(0, 1, 1),
    }
    assert next(iter(measures(tolerance=1))) == "all, ±1 frames"


@pytest.mark.parametrize(("last", "first"), [(5, 5), (6, 5), (-1, 5)])
def test_a_transition_leads_forward(last: int, first: int) -> None:
    with pytest.raises(ValueError, match=f"not from {last} to {first}"):
        Transition(last, first)
