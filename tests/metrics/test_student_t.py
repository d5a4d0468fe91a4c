"""Quantiles and tail probabilities of Student's t against printed tables and closed forms."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vip.metrics.student_t import quantile, two_sided_p

TABLE = [  # as textbooks print it: degrees of freedom, 0.90, 0.975, 0.999
    (1, 3.078, 12.706, 318.309),
    (5, 1.476, 2.571, 5.893),
    (10, 1.372, 2.228, 4.144),
    (30, 1.310, 2.042, 3.385),
    (100, 1.290, 1.984, 3.174),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]} degrees")
def test_quantiles_are_those_of_the_printed_table(row: tuple[int, float, float, float]) -> None:
    degrees, *expected = row
    assert [quantile(probability, degrees) for probability in (0.9, 0.975, 0.999)] == pytest.approx(expected, abs=6e-4)


def test_many_degrees_of_freedom_are_the_normal_distribution() -> None:
    assert quantile(0.975, 1e7) == pytest.approx(1.959964, abs=1e-6)
    assert two_sided_p(1.0, 1e7) == pytest.approx(math.erfc(math.sqrt(0.5)), abs=1e-6)


@given(st.floats(0, 1e6))
def test_tails_with_one_and_two_degrees_have_closed_forms(t: float) -> None:
    assert two_sided_p(t, 1) == pytest.approx(2 / math.pi * math.atan2(1, t), rel=1e-11)
    root = math.sqrt(2 + t * t)
    assert two_sided_p(-t, 2) == pytest.approx(2 / (root * (root + t)), rel=1e-9)  # 1 - t / root without its rounding


@given(st.floats(0.001, 0.999), st.floats(1, 500))
def test_a_quantile_has_its_probability_below_it(probability: float, degrees: float) -> None:
    t = quantile(probability, degrees)
    below = 1 - two_sided_p(t, degrees) / 2 if t > 0 else two_sided_p(t, degrees) / 2
    assert below == pytest.approx(probability, abs=1e-9)
    assert quantile(1 - probability, degrees) == pytest.approx(-t, rel=1e-9, abs=1e-9)


def test_the_ends() -> None:
    assert (two_sided_p(0.0, 3), two_sided_p(math.inf, 3), quantile(0.5, 3)) == (1.0, 0.0, pytest.approx(0, abs=1e-9))
    for probability, degrees in ((0.0, 3.0), (1.0, 3.0), (0.9, 0.0)):
        with pytest.raises(ValueError, match="expected a probability inside"):
            quantile(probability, degrees)
