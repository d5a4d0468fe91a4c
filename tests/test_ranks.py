"""Median and quantile against numpy's own, whatever the numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vip.ranks import interpolated_quantile, median, quantile

whole = st.integers(-(2**40), 2**40).map(float)
broken = st.floats(-1e12, 1e12, allow_nan=False, allow_subnormal=False)
numbers = st.lists(st.one_of(whole, broken, st.sampled_from([0.0, 1.0])), min_size=1, max_size=60)


@given(numbers)
def test_the_median_is_that_of_numpy(values: list[float]) -> None:
    assert median(values) == np.median(values)


@given(numbers, st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.25, 0.5, 0.75, 0.995, 1.0])))
def test_the_quantile_is_that_of_numpy(values: list[float], share: float) -> None:
    assert quantile(values, share) == np.quantile(values, share, method="inverted_cdf")


@given(numbers, st.floats(0, 1))
def test_the_quantile_is_one_of_the_numbers_and_no_less_than_the_share_of_them(values: list[float], share: float) -> None:
    found = quantile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-9
    assert sum(value < found for value in values) <= share * len(values)


@given(numbers, st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.3, 0.5, 1.0])))
def test_the_interpolated_quantile_is_that_of_numpy_to_the_last_digits(values: list[float], share: float) -> None:
    found, greatest = interpolated_quantile(values, share), max(map(abs, values))
    assert found == pytest.approx(float(np.quantile(values, share)), rel=1e-12, abs=1e-12 * greatest)
    assert interpolated_quantile(values[::-1], share) == found


def test_arrays_of_any_kind_and_shape_are_taken_and_not_changed() -> None:
    sizes = np.array([[9, 1, 5], [7, 3, 2]], np.int32)
    before = sizes.copy()
    assert (median(sizes), quantile(sizes, 0.5), quantile(sizes, 0.51)) == (4.0, 3.0, 5.0)
    assert np.array_equal(sizes, before)
    assert median(np.array([1.5], np.float32)) == quantile(np.array([1.5], np.float32), 0.0) == 1.5


def test_of_nothing_there_is_neither() -> None:
    for rank in (median, lambda values: quantile(values, 0.5)):
        with pytest.raises((IndexError, ValueError)):
            rank([])
