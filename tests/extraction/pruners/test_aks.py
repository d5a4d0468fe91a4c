"""The pruner `aks`: relevant frames, spread over the video where none stand out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.extraction.pruning import at_angles
from vip.errors import BackendError, UsageError
from vip.extraction.pruners import aks
from vip.extraction.pruners.aks import AdaptiveKeyframeSampling
from vip.extraction.pruners.algorithm1 import Algorithm1
from vip.protocols import Prunable
from vip.records import Embeddings, Vectors


def film(relevance: Sequence[float], *, times_s: Sequence[float] | None = None) -> Prunable:
    frames = at_angles([20.0 * number for number in range(len(relevance))])
    return replace(frames, relevance=list(relevance), times_s=list(times_s or [float(number) for number in range(len(relevance))]))


def kept(frames: Prunable, keep: int | None) -> list[int]:
    dropped = {drop.index for drop in AdaptiveKeyframeSampling(None).prune(frames, keep=keep, redundant=0.9).drops}
    return [row for row in range(len(frames)) if row not in dropped]


def test_frames_that_stand_out_are_taken_wherever_they_lie() -> None:
    relevance = [0.10, 0.10, 0.10, 0.35, 0.35, 0.10, 0.10, 0.10, 0.10, 0.10, 0.10, 0.10, 0.10, 0.10, 0.10, 0.10]
    assert kept(film(relevance), 2) == [3, 4]


def test_frames_are_spread_where_none_stand_out() -> None:
    relevance = [0.20, 0.21, 0.22, 0.23, 0.24, 0.25, 0.26, 0.27]
    assert kept(film(relevance), 4) == [1, 3, 5, 7], "the best of each quarter"
    assert kept(film([0.2] * 8), 4) == [0, 2, 4, 6], "of equal ones the earliest"


def test_a_stretch_is_halved_five_times_at_most() -> None:
    assert kept(film([0.2] * 128), 64) == [row for row in range(128) if row % 4 < 2], "the first two of each 32nd"


def test_a_stretch_is_halved_in_time_and_not_in_number() -> None:
    relevance = [0.20, 0.21, 0.22, 0.23, 0.24, 0.25, 0.26, 0.10]
    times_s = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 100.0]
    assert kept(film(relevance, times_s=times_s), 2) == [6, 7], "the second half holds a single frame, and that is kept"


def test_the_odd_frame_goes_to_the_half_with_the_most_relevant_one() -> None:
    first, second = [0.2, 0.3, 0.25, 0.2], [0.2, 0.22, 0.2, 0.2]
    assert len([row for row in kept(film([*first, *second]), 3) if row < 4]) == 2
    assert len([row for row in kept(film([*second, *first]), 3) if row < 4]) == 1


@pytest.mark.slow
@given(st.lists(st.floats(-1, 1, allow_nan=False), min_size=1, max_size=40), st.integers(1, 50), st.randoms(use_true_random=False))
def test_as_many_as_asked_the_most_relevant_one_among_them(relevance: list[float], keep: int, random: object) -> None:
    chosen = kept(film(relevance), keep)
    assert len(chosen) == min(keep, len(relevance))
    assert max(relevance[row] for row in chosen) == max(relevance)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=40), st.integers(1, 20))
def test_the_log_has_every_relevance_and_the_stretch_of_each_keyframe(levels: list[int], keep: int) -> None:
    frames = film([level / 10 for level in levels])
    thinned = AdaptiveKeyframeSampling(None).prune(frames, keep=keep, redundant=0.9)
    assert frames.relevance is not None
    for drop in thinned.drops:
        assert drop.score == frames.relevance[drop.index]
        assert f"relevance {drop.score:.3f}" in drop.reason
    for row, reason in thinned.reasons.items():
        assert re.fullmatch(rf"kept: relevance {frames.relevance[row]:.3f}, among the highest from [\d:.]+ to [\d:.]+", reason)
    assert set(thinned.reasons) == set(range(len(frames))) - {drop.index for drop in thinned.drops}


def test_without_a_number_as_many_as_algorithm_1_would_leave() -> None:
    frames = replace(at_angles([0, 1, 2, 60, 61, 120]), relevance=[0.1, 0.2, 0.3, 0.1, 0.2, 0.1])
    plain = Algorithm1(None).prune(frames, keep=None, redundant=0.9)
    assert len(kept(frames, None)) == len(frames) - len(plain.drops) == 4


def test_no_question_is_refused() -> None:
    with pytest.raises(UsageError, match="Add --query 'a dog catches a frisbee'"):
        AdaptiveKeyframeSampling(None).prune(replace(at_angles([0, 90]), relevance=None), keep=1, redundant=0.9)
    with pytest.raises(BackendError, match="takes no detail"):
        AdaptiveKeyframeSampling("a dog")


@pytest.mark.parametrize(
    ("relevance", "scaled"),
    [([1.0, 2.0, 3.0], [0.0, 0.5, 1.0]), ([-0.2, 0.6], [0.0, 1.0]), ([0.3, 0.3], [0.0, 0.0]), ([5.0], [0.0])],
)
def test_relevance_goes_from_none_to_all(relevance: list[float], scaled: list[float]) -> None:
    assert aks._scaled(relevance) == pytest.approx(scaled)


def test_frames_stand_out_by_more_than_four_fifths_of_the_whole_range() -> None:
    """The two best lie 0.75, and 0.875, above the mean of their stretch."""
    assert kept(film([0.0, 0.0, 0.8, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]), 2) == [3, 5]
    assert kept(film([0.0] * 3 + [1.0, 1.0] + [0.0] * 11), 2) == [3, 4]


def test_whether_frames_stand_out_is_judged_in_their_own_stretch() -> None:
    """In the first half all are relevant: none of them stands out there, though they do from the other half."""
    relevance = [1.0, 0.99, 0.98, 0.97, 0.96, 0.9, 0.9, 0.9] + [0.0] * 72
    times_s = [*map(float, range(8)), *(8 + number / 10 for number in range(71)), 15.1]
    assert [row for row in kept(film(relevance, times_s=times_s), 10) if row < 8] == [0, 1, 2, 4, 6]


def test_a_frame_in_the_very_middle_belongs_to_the_second_half() -> None:
    assert kept(film([0.2, 0.2, 0.3, 0.2, 0.2]), 2) == [0, 2]


def test_of_halves_with_equally_relevant_frames_the_first_gets_the_odd_one() -> None:
    assert kept(film([0.2, 0.3, 0.2, 0.2, 0.3, 0.2]), 3) == [1, 2, 4]


def test_the_least_relevant_frame_goes_first_and_names_the_keyframes_on_either_side() -> None:
    drops = AdaptiveKeyframeSampling(None).prune(film([0.1, 0.9, 0.3, 0.8, 0.2]), keep=2, redundant=0.9).drops
    assert [(drop.step, drop.index, drop.neighbours) for drop in drops] == [(1, 0, (1,)), (2, 4, (3,)), (3, 2, (1, 3))]
    assert drops[2].reason.endswith("the keyframes beside it, at 0:01.00 and 0:03.00, are more relevant or better spread")


def test_relevance_is_the_cosine_of_each_picture_and_the_question() -> None:
    class Asked:
        name = "asked"

        def embed_texts(self, texts: Sequence[str]) -> Vectors:
            assert list(texts) == ["a dog"]
            return np.array([[0.6, 0.8]], np.float32)

    pictures = Embeddings(np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32), np.zeros((3, 1), np.float32), "asked")
    embedder: Any = Asked()
    assert aks.relevance_of(pictures, "a dog", embedder) == pytest.approx([0.6, 0.8, 1.0])
    assert aks.relevance_of(pictures, None, embedder) is None


def test_a_stretch_of_which_every_frame_is_taken_is_not_halved() -> None:
    reasons = AdaptiveKeyframeSampling(None).prune(film([0.2, 0.3, 0.2, 0.4]), keep=4, redundant=0.9).reasons
    assert [reason.partition("highest ")[2] for reason in reasons.values()] == ["from 0:00.00 to 0:03.00"] * 4


def test_of_no_frames_none_is_dropped() -> None:
    assert list(AdaptiveKeyframeSampling(None).prune(film([]), keep=3, redundant=0.9).drops) == []


def test_what_a_half_has_too_few_frames_for_the_other_gets() -> None:
    times_s = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 100.0]
    first = kept(film([0.2] * 8, times_s=times_s), 4)
    second = kept(film([0.2] * 8, times_s=[100 - time_s for time_s in reversed(times_s)]), 4)
    assert [len(first), len(second)] == [4, 4]
    assert 7 in first
    assert 0 in second
