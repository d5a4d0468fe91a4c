from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.report.runs import candidates, manifest
from vip.html.axes import NARROW_INTERVALS, WIDE_INTERVALS, AxisSpan, evenly_spaced, round_ticks, span_of, spread, time_ticks


def test_the_span_reaches_from_the_first_frame_to_the_end_of_the_last() -> None:
    video = manifest(candidates()).video.model_copy(update={"start_time_s": 1.4, "end_time_s": 11.36})
    span = span_of(video, [2.0, 5.0])
    assert span is not None
    assert (span.start_s, span.end_s) == (1.4, pytest.approx(11.4))
    assert span.place(6.4) == pytest.approx(50)


def test_without_a_video_the_span_starts_at_zero() -> None:
    assert span_of(None, [3.0, 8.0]) == AxisSpan(0.0, 8.0)
    assert span_of(None, [0.0]) == AxisSpan(0.0, 1.0)
    assert span_of(None, []) is None


def test_a_span_of_no_length_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected end after start, got 2\.0 to 2\.0"):
        AxisSpan(2.0, 2.0)


@pytest.mark.parametrize(
    ("end_s", "expected"),
    [(2.4, [0, 0.5, 1, 1.5, 2]), (24, [0, 5, 10, 15, 20]), (140, list(range(0, 140, 15))), (5400, list(range(0, 5401, 600)))],
)
def test_times_on_the_axis_are_round(end_s: float, expected: list[float]) -> None:
    assert [time_s for time_s, _ in time_ticks(AxisSpan(0.0, end_s))] == pytest.approx(expected)


@pytest.mark.slow
@given(st.floats(-100, 1e5), st.floats(0.05, 1e6))
def test_times_on_the_axis_are_few_and_within(start_s: float, length_s: float) -> None:
    ticks = time_ticks(AxisSpan(start_s, start_s + length_s))
    assert all(start_s - 1e-6 * length_s - 1e-6 <= time_s <= start_s + length_s * (1 + 1e-6) + 1e-6 for time_s, _ in ticks)
    assert len(ticks) <= WIDE_INTERVALS + 1
    assert sum(narrow for _, narrow in ticks) <= NARROW_INTERVALS + 1


@given(st.floats(-1e4, 1e4), st.floats(0, 1e4))
def test_values_on_the_axis_enclose_the_data(low: float, length: float) -> None:
    ticks = round_ticks(low, low + length)
    assert ticks[0] <= low + 1e-6 * (1 + abs(low))
    assert ticks[-1] >= low + length - 1e-6 * (1 + abs(low + length))
    assert 2 <= len(ticks) <= 8


ANY = st.one_of(st.floats(-1e300, 1e300), st.sampled_from([5e-324, 1e-320, 1e15, 1e17, 1e17 + 64, 1e300, -1e300]))


@given(ANY, ANY)
def test_ticks_differ_and_enclose_the_data_however_large_or_close_it_is(one: float, other: float) -> None:
    low, high = sorted((one, other))
    ticks = round_ticks(low, high)
    assert all(before < after for before, after in pairwise(ticks))
    spare = 1e-6 + 1e-9 * max(abs(low), abs(high))
    assert ticks[0] <= low + spare
    assert ticks[-1] >= high - spare
    assert 2 <= len(ticks) <= 9


@pytest.mark.parametrize("value", [float("inf"), 1e308, -1e308])
def test_an_axis_without_end_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="expected numbers up to 1e\\+300"):
        round_ticks(min(0.0, value), max(0.0, value))


def test_values_on_the_axis_are_round() -> None:
    assert round_ticks(0, 231) == [0, 100, 200, 300]
    assert round_ticks(0.83, 1.0) == pytest.approx([0.8, 0.85, 0.9, 0.95, 1.0])


def test_places_that_are_apart_stay() -> None:
    assert spread([10.0, 30.0, 90.0], gap=8, low=4, high=96) == [10, 30, 90]


@pytest.mark.slow
@given(st.lists(st.floats(0, 100), min_size=1, max_size=8), st.floats(1, 10))
def test_spread_keeps_order_distance_and_borders(places: list[float], gap: float) -> None:
    places.sort()
    found = spread(places, gap=gap, low=gap / 2, high=100 - gap / 2)
    assert all(b - a >= gap - 1e-9 for a, b in pairwise(found))
    assert gap / 2 - 1e-9 <= found[0]
    assert found[-1] <= 100 - gap / 2 + 1e-9


def test_spread_moves_as_little_as_possible() -> None:
    places, gap = np.array([3.0, 4.0, 5.0, 40.0, 43.0, 99.0]), 8.0
    found = np.array(spread(places.tolist(), gap=gap, low=4, high=96))
    moved = ((found - places) ** 2).sum()
    # Around the best of a convex problem nothing that is allowed is better: all small steps of all six at once.
    steps = np.array(np.meshgrid(*[[-0.1, 0, 0.1]] * 6)).reshape(6, -1).T
    others = found + steps
    allowed = (others[:, 0] >= 4) & (others[:, -1] <= 96) & (np.diff(others, axis=1) >= gap - 1e-9).all(1)
    assert allowed.sum() > 20
    assert ((others[allowed] - places) ** 2).sum(1).min() >= moved - 1e-9


@pytest.mark.slow
@given(st.integers(0, 500), st.integers(1, 50))
def test_evenly_takes_distinct_indices_with_both_ends(count: int, limit: int) -> None:
    found = evenly_spaced(count, limit)
    assert len(found) == len(set(found)) == min(count, limit)
    assert found == sorted(found)
    assume(count and limit > 1)
    assert (found[0], found[-1]) == (0, count - 1)
