"""Student's t distribution with any number of degrees of freedom, by the incomplete beta function. numpy has neither."""

from __future__ import annotations

import math
from functools import lru_cache

SMALLEST = 1e-300  # instead of 0 in a denominator
MOST_TERMS = 1000  # at 1e6 degrees of freedom it takes fewer than 700


def two_sided_p(t: float, degrees_of_freedom: float) -> float:
    """Return the probability of a value at least as far from 0 as `t`: I_x(df / 2, 1 / 2) with x = df / (df + t²), DLMF 8.17."""
    if math.isinf(t):
        return 0.0
    whole = degrees_of_freedom + t * t
    return _incomplete_beta(degrees_of_freedom / 2, 0.5, degrees_of_freedom / whole, t * t / whole)


@lru_cache(maxsize=1024)
def quantile(probability: float, degrees_of_freedom: float) -> float:
    """Return the value that a t variable lies below with this probability, by bisection.

    Args:
        probability: above 0 and below 1.
        degrees_of_freedom: above 0, not only whole numbers.
    """
    if not 0 < probability < 1 or not degrees_of_freedom > 0:
        raise ValueError(f"expected a probability inside (0, 1) and degrees of freedom above 0, got {probability}, {degrees_of_freedom}")
    if probability < 0.5:
        return -quantile(1 - probability, degrees_of_freedom)
    tails, low, high = 2 * (1 - probability), 0.0, 1.0
    while two_sided_p(high, degrees_of_freedom) > tails:
        low, high = high, 2 * high
    while (middle := (low + high) / 2) not in {low, high}:
        low, high = (middle, high) if two_sided_p(middle, degrees_of_freedom) > tails else (low, middle)
    return high


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """Return I_x(a, b), where `rest` is 1 - x without its rounding, by the continued fraction DLMF 8.17.22."""
    if x <= 0 or rest <= 0:
        return float(rest <= 0)
    if x > (a + 1) / (a + b + 2):  # there the fraction of the other tail converges faster
        return 1.0 - _incomplete_beta(b, a, rest, x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    return math.exp(log_front) / (a * _continued_fraction(a, b, x))


def _continued_fraction(a: float, b: float, x: float) -> float:
    """Return 1 + d1 / (1 + d2 / (1 + …)) by the method of Lentz, as Thompson and Barnett (1986) modify it.

    d(2m) = m (b - m) x / ((a + 2m - 1)(a + 2m)); d(2m + 1) = -(a + m)(a + b + m) x / ((a + 2m)(a + 2m + 1)).
    """
    value = upper = 1.0
    lower = 0.0
    for term in range(1, MOST_TERMS):
        m, odd = divmod(term, 2)
        factor = -(a + m) * (a + b + m) / ((a + 2 * m) * (a + 2 * m + 1)) if odd else m * (b - m) / ((a + 2 * m - 1) * (a + 2 * m))
        lower = 1 / (1 + factor * x * lower or SMALLEST)
        upper = 1 + factor * x / upper or SMALLEST
        value *= upper * lower
        if abs(upper * lower - 1) < 1e-15:
            break
    return value
