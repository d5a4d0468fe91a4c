"""Error bars: means and differences of samples that come in clusters, such as many keyframes of one video.

Samples of one video are alike, so that their number overstates what is known. The standard error is that of the jackknife over clusters,
the interval uses Student's t. In: one value and one cluster a sample. Out: `IntervalEstimate`, `DifferenceTest`. Where the sample says
nothing about its own spread, there is no interval, and a sentence says why.

More: Cameron and Miller 2015, "A practitioner's guide to cluster-robust inference"; Miller 2024, "Adding error bars to evals".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from vip.errors import InputError
from vip.metrics.student_t import quantile, two_sided_p

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
ROUNDING = 1e-12
"""A standard error below this share of the largest value is rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalEstimate:
    """A value of a sample, with what is known about the value of the population."""

    value: float
    standard_error: float | None
    low: float | None
    """The lower end of the interval; None where there is none."""
    high: float | None
    n: int
    """Samples."""
    clusters: int
    degrees_of_freedom: float | None
    """Of Student's t; None for the bootstrap."""
    level: float = 0.95
    method: Literal["t", "bootstrap"] = "t"
    no_interval: str | None = None
    """Why there is no interval, as a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceTest:
    """The difference of two lists of values of the same samples."""

    difference: IntervalEstimate
    """Second less first."""
    p_value: float | None
    """Of the paired t test that there is no difference, two-sided; None where there is no interval."""
    smallest_detectable: float | None
    """The difference that this test at 5 % finds in 80 % of such samples."""


def estimate_mean(values: Sequence[float] | Floats, clusters: Sequence[str], *, level: float = 0.95) -> IntervalEstimate:
    """Return the mean over the samples, its clustered standard error and its t interval.

    With G clusters, the mean m over all N samples, and m_g the mean over those outside cluster g, of which there are n_g inside:

        variance = (G - 1) / G Σ (m_g - m)²
        degrees of freedom = N² / (Σ n_g² + Σ_(g≠k) u_g u_k), u_g = n_g² / (N - n_g)

    The variance is that of the jackknife over clusters, CR3 (Bell and McCaffrey 2002; MacKinnon, Nielsen and Webb 2023); the degrees of
    freedom are Satterthwaite's for a mean of independent samples (Bell and McCaffrey 2002; Imbens and Kolesár 2016). For clusters of equal
    size they are the common CR1, G / (G - 1) Σ S_g² / N² with S_g the sum of the residuals of cluster g, and G - 1. Where sizes differ
    much, intervals by CR1 are too narrow: in simulations with 20 to 40 clusters of log-normal sizes (σ = 1) they held 90 to 94 % of the
    means, and these 94.5 to 96 %. For a dozen very unequal clusters or fewer these are too wide, up to 97 %.

    Args:
        clusters: the cluster of each value: its video.
        level: how often such intervals hold the mean of the population.

    Raises:
        InputError: there is no value.
    """
    sample, codes, names = _check_sample(values, clusters)
    total, value = len(sample), math.fsum(sample) / len(sample)
    if len(names) == 1:
        return _without_interval(value, total, 1, level, _one_cluster(total, names[0]))
    sizes = np.bincount(codes).astype(np.float64)
    shifts = np.bincount(codes, weights=sample - value) / (total - sizes)  # of the mean, by leaving each cluster out
    standard_error = math.sqrt((len(names) - 1) / len(names) * math.fsum(shifts**2))
    if standard_error <= ROUNDING * float(np.abs(sample).max()):
        same = "All samples have the same value" if np.ptp(sample) <= ROUNDING * np.abs(sample).max() else "All clusters have the same mean"
        return _without_interval(value, total, len(names), level, f"{same}, so there is no interval. Add samples.")
    degrees = _degrees_of_freedom(sizes)
    margin = quantile((1 + level) / 2, degrees) * standard_error
    return IntervalEstimate(
        value=value,
        standard_error=standard_error,
        low=value - margin,
        high=value + margin,
        n=total,
        clusters=len(names),
        degrees_of_freedom=degrees,
        level=level,
    )


def bootstrap(
    score: Callable[[Indices], float], clusters: Sequence[str], *, seed: int, draws: int = 1000, level: float = 0.95
) -> IntervalEstimate:
    """Return a value that is no mean, such as CIDEr, with the percentile interval of the cluster bootstrap (Davison and Hinkley 1997, 3.8).

    Each draw takes as many clusters as there are, with replacement and whole. With fewer than some 30 clusters the interval is too narrow.

    Args:
        score: returns the value of the samples with these indices, which may repeat.
        clusters: the cluster of each sample: its video.
        seed: the same seed draws the same clusters, in whatever order the samples stand.

    Raises:
        InputError: there is no sample.
    """
    _, codes, names = _check_sample(np.zeros(len(clusters)), clusters)
    value = float(score(np.arange(len(codes), dtype=np.intp)))
    order, sizes = np.argsort(codes, kind="stable"), np.bincount(codes)
    drawn = _draw_clusters(len(names), seed, draws)
    return _bootstrap_estimate(value, (score(_members(order, sizes, row)) for row in drawn), codes, names, level)


def bootstrap_weighted(
    score: Callable[[Floats], float], clusters: Sequence[str], *, seed: int, draws: int = 1000, level: float = 0.95
) -> IntervalEstimate:
    """Return what `bootstrap` returns, of a value that can be computed from how often each sample was drawn: many times faster.

    Args:
        score: returns the value of the samples with these weights, float64 (N,).
    """
    _, codes, names = _check_sample(np.zeros(len(clusters)), clusters)
    value = float(score(np.ones(len(codes))))
    counts = (np.bincount(row, minlength=len(names)).astype(np.float64) for row in _draw_clusters(len(names), seed, draws))
    return _bootstrap_estimate(value, (score(times[codes]) for times in counts), codes, names, level)


def _draw_clusters(clusters: int, seed: int, draws: int) -> Iterator[Indices]:
    """Yield the clusters of each draw, one draw in memory at a time."""
    random = np.random.default_rng(seed)
    for _ in range(draws):
        yield random.integers(clusters, size=clusters)


def _bootstrap_estimate(value: float, drawn: Iterator[float], codes: Indices, names: Sequence[str], level: float) -> IntervalEstimate:
    if len(names) == 1:
        return _without_interval(value, len(codes), 1, level, _one_cluster(len(codes), names[0]), "bootstrap")
    values = np.fromiter(drawn, np.float64)
    if np.ptp(values) == 0:
        why = "Every draw of clusters has the same value, so there is no interval. Add samples."
        return _without_interval(value, len(codes), len(names), level, why, "bootstrap")
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return IntervalEstimate(
        value=value,
        standard_error=float(values.std(ddof=1)),
        low=float(low),
        high=float(high),
        n=len(codes),
        clusters=len(names),
        degrees_of_freedom=None,
        level=level,
        method="bootstrap",
    )


def _members(order: Indices, sizes: Indices, clusters: Indices) -> Indices:
    """Return the samples of clusters, one cluster after the other.

    Args:
        order: the samples, sorted by cluster.
        sizes: the number of samples in each cluster.
    """
    lengths, starts = sizes[clusters], (np.cumsum(sizes) - sizes)[clusters]
    shifts = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    return np.asarray(order[shifts + np.arange(len(shifts))], np.intp)


def compare(
    first: Sequence[float] | Floats, second: Sequence[float] | Floats, clusters: Sequence[str], *, level: float = 0.95
) -> DifferenceTest:
    """Return the mean difference of two lists of values of the same samples, with the paired and clustered t test.

    Raises:
        InputError: there is no value.
    """
    before, after = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if before.shape != after.shape:
        raise ValueError(f"expected two lists of the same samples, got {before.shape} and {after.shape}")
    difference = estimate_mean(after - before, clusters, level=level)
    error, degrees = difference.standard_error, difference.degrees_of_freedom
    if error is None or degrees is None:
        return DifferenceTest(difference=difference, p_value=None, smallest_detectable=None)
    p_value = two_sided_p(difference.value / error, degrees)
    return DifferenceTest(difference=difference, p_value=p_value, smallest_detectable=smallest_detectable_difference(error, degrees))


def compare_groups(
    values: Sequence[float] | Floats, clusters: Sequence[str], in_first: Sequence[bool], in_second: Sequence[bool], *, level: float = 0.95
) -> DifferenceTest:
    """Return the difference of the means of two groups of samples, second less first, with Welch's t test on clustered errors.

    The standard error is that of the jackknife over clusters, which both means leave out together, as a video may have samples in both
    groups. The degrees of freedom are Welch's, from those of the two means (Welch 1947; see `estimate_mean`).

    Args:
        in_first: whether each sample is in the first group; one that is in both or in neither counts in both or in neither.

    Raises:
        InputError: a group has no sample.
    """
    sample, codes, names = _check_sample(values, clusters)
    masks = [np.asarray(group, dtype=np.bool_) for group in (in_first, in_second)]
    of_groups = [estimate_mean(sample[mask], [clusters[index] for index in np.flatnonzero(mask).tolist()], level=level) for mask in masks]
    first, second = of_groups
    value, total = second.value - first.value, len(sample)
    errors = [one.standard_error for one in of_groups]
    degrees = [one.degrees_of_freedom for one in of_groups]
    if errors[0] is None or errors[1] is None or degrees[0] is None or degrees[1] is None:
        why = next(one.no_interval for one in of_groups if one.no_interval) or ""
        return DifferenceTest(difference=_without_interval(value, total, len(names), level, why), p_value=None, smallest_detectable=None)
    error = _jackknife_difference(sample, codes, len(names), masks)
    squares = errors[0] ** 2, errors[1] ** 2
    freedom = sum(squares) ** 2 / (squares[0] ** 2 / degrees[0] + squares[1] ** 2 / degrees[1])
    margin = quantile((1 + level) / 2, freedom) * error
    difference = IntervalEstimate(
        value=value,
        standard_error=error,
        low=value - margin,
        high=value + margin,
        n=total,
        clusters=len(names),
        degrees_of_freedom=freedom,
        level=level,
    )
    p_value = two_sided_p(value / error, freedom) if error > 0 else None
    return DifferenceTest(difference=difference, p_value=p_value, smallest_detectable=smallest_detectable_difference(error, freedom))


def _jackknife_difference(sample: Floats, codes: Indices, clusters: int, masks: Sequence[npt.NDArray[np.bool_]]) -> float:
    """Return the standard error of the difference of two means; where no cluster is in both, the squares of theirs add up."""
    shifts = np.zeros((2, clusters))
    for row, mask in enumerate(masks):
        residuals = np.bincount(codes[mask], weights=sample[mask] - math.fsum(sample[mask]) / mask.sum(), minlength=clusters)
        sizes = np.bincount(codes[mask], minlength=clusters)
        number = int(np.count_nonzero(sizes))
        shifts[row] = residuals / (mask.sum() - sizes) * math.sqrt((number - 1) / number)
    return math.sqrt(math.fsum((shifts[1] - shifts[0]) ** 2))


def smallest_detectable_difference(
    standard_error: float, degrees_of_freedom: float, *, significance: float = 0.05, power: float = 0.8
) -> float:
    """Return the true difference that a two-sided t test finds with this power (Bloom 1995, "Minimum detectable effects").

    Args:
        significance: of the test; for the smallest p value of a table of m after Holm, 0.05 / m.
    """
    return standard_error * (quantile(1 - significance / 2, degrees_of_freedom) + quantile(power, degrees_of_freedom))


def correct_holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return the p values of a table corrected for their number, in the same order (Holm 1979). None is no test and stays None.

    The i-th smallest of m is multiplied by m - i + 1; none becomes smaller than one before it, or larger than 1.
    """
    order = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, index) in enumerate(order):
        largest = max(largest, min(1.0, p * (len(order) - rank)))
        corrected[index] = largest
    return corrected


def _check_sample(values: Sequence[float] | Floats, clusters: Sequence[str]) -> tuple[Floats, Indices, list[str]]:
    """Return the values, the number of each one's cluster, and the names of the clusters in alphabetical order."""
    sample = np.asarray(values, dtype=np.float64)
    if sample.shape != (len(clusters),):
        raise ValueError(f"expected one value for each of {len(clusters)} clusters, got the shape {sample.shape}")
    if not len(sample):
        raise InputError("There is no sample with a value, so there is no mean. Score predictions that have answers.")
    if not np.isfinite(sample).all():
        raise ValueError(f"expected finite values, got {sample[~np.isfinite(sample)][0]}")
    names, codes = np.unique(np.asarray(clusters, dtype=np.str_), return_inverse=True)
    return sample, codes.astype(np.intp, copy=False), names.tolist()


def _degrees_of_freedom(sizes: Floats) -> float:
    """Return Satterthwaite's degrees of freedom; see `estimate_mean`."""
    total = float(sizes.sum())
    weights = sizes**2 / (total - sizes)
    between = float(weights.sum()) ** 2 - float((weights**2).sum())
    return max(1.0, total**2 / (float((sizes**2).sum()) + between))


def _one_cluster(samples: int, name: str) -> str:
    return f'All {samples} samples are of one cluster ("{name}"), so there is no interval. Add samples of other videos.'


def _without_interval(
    value: float, n: int, clusters: int, level: float, why: str, method: Literal["t", "bootstrap"] = "t"
) -> IntervalEstimate:
    return IntervalEstimate(
        value=value,
        standard_error=None,
        low=None,
        high=None,
        n=n,
        clusters=clusters,
        degrees_of_freedom=None,
        level=level,
        method=method,
        no_interval=why,
    )
