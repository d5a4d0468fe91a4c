"""`threshold` against the recipe in one loop, and what a number does to it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.extraction.pruning import at_angles, kept
from vip.errors import BackendError
from vip.extraction.pruners.threshold import Threshold
from vip.protocols import Prunable

angles = st.lists(st.integers(0, 35), min_size=1, max_size=20).map(lambda steps: [5.0 * step for step in steps])


def stay(frames: Prunable, keep: int | None, detail: str | None = None) -> list[int]:
    return kept(frames, [drop.index for drop in Threshold(detail).prune(frames, keep=keep, redundant=0.5).drops])


def recipe(frames: Prunable, threshold: float) -> list[int]:
    """ShareGPT4Video's: keep what is less like the last one kept than the threshold."""
    found: list[int] = []
    for row, vector in enumerate(frames.embeddings.image):
        if not found or float(vector @ frames.embeddings.image[found[-1]]) < threshold:
            found.append(row)
    return found


@pytest.mark.slow
@given(angles, st.floats(-0.9, 1))
@settings(deadline=None)
def test_without_a_number_the_threshold_alone_rules(degrees: list[float], threshold: float) -> None:
    frames = at_angles(degrees)
    assert stay(frames, None, str(threshold)) == recipe(frames, threshold)


@pytest.mark.slow
@given(angles, st.integers(1, 22))
@settings(deadline=None)
def test_a_number_is_an_upper_bound_and_the_threshold_no_lower_than_needed(degrees: list[float], keep: int) -> None:
    frames = at_angles(degrees)
    alone, found = recipe(frames, 0.93), stay(frames, keep)
    assert 1 <= len(found) <= keep
    if len(alone) <= keep:
        assert found == alone
    else:
        links = [float(frames.embeddings.image[row] @ frames.embeddings.image[before]) for before, row in pairwise(found)]
        higher = np.linspace(max([-1.0, *links]), 0.93, 2000)
        assert any(len(recipe(frames, threshold)) > keep for threshold in higher)


def test_texts_play_no_part() -> None:
    degrees = [0.0, 30.0, 31.0, 70.0]
    assert stay(at_angles(degrees, texts=[0, 90, 0, 90]), None) == stay(at_angles(degrees), None) == [0, 1, 3]


def test_every_decision_says_by_which_likeness_and_threshold() -> None:
    frames = at_angles([0, 10, 60, 120])
    thinned = Threshold("0.9").prune(frames, keep=None, redundant=0.5)
    (drop,) = thinned.drops
    assert (drop.index, drop.step, drop.neighbours) == (1, 1, (0,))
    assert drop.reason == f"dropped: likeness {np.cos(np.radians(10)):.3f} to the keyframe before it at 0:00.00"
    assert thinned.kept == "kept: likeness to the keyframe before it below 0.9"
    assert thinned.bound == 0.9
    lowered = Threshold("0.9").prune(frames, keep=2, redundant=0.5)
    assert "the highest threshold that leaves at most 2" in lowered.kept
    enough = Threshold("0.9").prune(frames, keep=3, redundant=0.5)
    assert enough.kept == thinned.kept, "three are just as many as it leaves by itself"


def test_the_curve_says_at_which_threshold_each_number_remains() -> None:
    frames = at_angles(np.cumsum(np.linspace(0, 30, 12)).tolist())
    curve = Threshold(None).prune(frames, keep=None, redundant=0.5).curve
    assert len(curve) > 3
    assert all(len(recipe(frames, threshold)) == count for count, threshold in curve)


@pytest.mark.parametrize("degrees", [[], [10.0], [10.0, 10.0]])
def test_few_frames_keep_one(degrees: list[float]) -> None:
    assert len(stay(at_angles(degrees), 1)) == min(1, len(degrees))


@pytest.mark.parametrize("detail", ["1.5", "-1", "nan", "inf", "high", "0,93"])
def test_a_threshold_that_is_no_cosine_is_refused(detail: str) -> None:
    with pytest.raises(BackendError, match="needs a cosine between -1 and 1"):
        Threshold(detail)


def test_its_name_holds_the_threshold() -> None:
    assert Threshold("0.85").name == "threshold:0.85"
    assert Threshold(None).name == "threshold"


def test_a_frame_just_as_like_as_the_threshold_is_dropped_and_likeness_counts_to_the_last_one_kept() -> None:
    assert stay(at_angles([0, 0, 180, 0]), None, "1") == [0, 2, 3]
    assert stay(at_angles([0, 20, 40, 60, 80]), None, "0.8") == [0, 2, 4]
    drops = Threshold("0.7").prune(at_angles([0, 20, 40, 60]), keep=None, redundant=0.5).drops
    assert [drop.score for drop in drops] == pytest.approx([0.940, 0.766], abs=1e-3), "to the keyframe, not to the frame before"


def test_the_threshold_is_lowered_no_further_than_the_number_asks() -> None:
    lowered = Threshold(None).prune(at_angles([0, 24, 49, 74.5, 100.5]), keep=4, redundant=0.5)
    assert [drop.index for drop in lowered.drops] == [1]
    said = float(lowered.kept.removeprefix("kept: likeness to the keyframe before it below ").split(",")[0])
    assert said == pytest.approx(0.9135, abs=6e-4), "the cosine of 24 degrees"
    assert lowered.bound == 0.93, "what the user calls redundant"


def test_the_curve_has_the_chosen_threshold_and_the_highest_for_each_number() -> None:
    curve = dict(Threshold("0.86").prune(at_angles([0, 10, 30]), keep=None, redundant=0.5).curve)
    assert curve == {1: 0.86, 2: pytest.approx(np.cos(np.radians(10))), 3: 1.0}


def test_the_curve_goes_down_to_one_frame_where_only_frames_far_apart_are_so_unlike() -> None:
    assert [count for count, _ in Threshold("0.99").prune(at_angles([0, 60, 120]), keep=None, redundant=0.5).curve] == [1, 2, 3]
