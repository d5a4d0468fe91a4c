"""Compare files of predictions of the same samples: paired by sample, clustered by video, corrected for the number of tests (Holm 1979).

Each file is held against the first one. In: scored files. Out: one `Difference` a file and metric.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vip.errors import InputError
from vip.metrics.statistics import DifferenceTest, compare, correct_holm, smallest_detectable_difference
from vip.tasks.score import ScoredFile
from vip.untrusted import one_line

SIGNIFICANCE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The difference of two files in one metric, second less first, in percentage points."""

    task: str
    metric: str
    first: str
    second: str
    value: float
    low: float | None
    high: float | None
    """Ends of the 95 % interval of this difference alone."""
    p_value: float | None
    p_corrected: float | None
    """After Holm, over all tests of the table."""
    smallest_detectable: float | None
    """What the test finds in 80 % of such samples, where it is the most significant of the table."""
    no_interval: str | None = None

    @property
    def is_significant(self) -> bool:
        return self.p_corrected is not None and self.p_corrected < SIGNIFICANCE


def compare_files(scored: Sequence[ScoredFile], labels: Sequence[str]) -> list[Difference]:
    """Return the differences of every file to the first one; arguments and errors as of `compare_sets`."""
    return compare_sets([(scored, labels)])


def compare_sets(sets: Sequence[tuple[Sequence[ScoredFile], Sequence[str]]]) -> list[Difference]:
    """Return the differences of every file to the first one of its set, in each metric that has values of samples.

    The p values are corrected for the number of all tests, since they stand in one table.

    Args:
        sets: files of the same samples, each with its name in the table.

    Raises:
        InputError: the files of a set are of different samples, or their metrics were computed in different ways.
    """
    tests = [test for scored, labels in sets for test in _tests(scored, labels)]
    corrected = correct_holm([test.p_value for _, _, test in tests])
    number = sum(test.p_value is not None for _, _, test in tests)
    return [
        Difference(
            task=task,
            metric=name,
            first=first,
            second=second,
            value=_points(test.difference.value) or 0.0,
            low=_points(test.difference.low),
            high=_points(test.difference.high),
            p_value=_rounded(test.p_value),
            p_corrected=_rounded(p),
            smallest_detectable=_detectable(test.difference.standard_error, test.difference.degrees_of_freedom, number),
            no_interval=test.difference.no_interval,
        )
        for ((task, first, second), name, test), p in zip(tests, corrected, strict=True)
    ]


def _tests(scored: Sequence[ScoredFile], labels: Sequence[str]) -> Iterator[tuple[tuple[str, str, str], str, DifferenceTest]]:
    """Yield the test of each file against the first, in each metric."""
    first = scored[0]
    for other, label in zip(scored[1:], labels[1:], strict=True):
        _check_same(first, other, labels[0], label)
    clusters = [key.video for key in first.joined.pairs.keys]
    task = first.result.label
    for name, values in first.values.items():
        for index, other in enumerate(scored[1:], 1):
            if name in other.values:
                yield (task, labels[0], labels[index]), name, compare(values, other.values[name], clusters)


def _check_same(first: ScoredFile, other: ScoredFile, name: str, other_name: str) -> None:
    mine, theirs = [key.id for key in first.joined.pairs.keys], [key.id for key in other.joined.pairs.keys]
    if mine != theirs:
        shared = len(set(mine) & set(theirs))
        raise InputError(
            f"{one_line(name)} and {one_line(other_name)} are of different samples ({len(mine):,} and {len(theirs):,},"
            f" {shared:,} in both), so they cannot be compared. Score them apart, or predict the same samples."
        )
    for metric, score in first.result.metrics.items():
        theirs_signature = other.result.metrics[metric].signature if metric in other.result.metrics else None
        if theirs_signature not in (None, score.signature):
            raise InputError(f"{metric} was computed in two ways ({score.signature}; {theirs_signature}). Score both files with one vip.")


def _detectable(error: float | None, degrees: float | None, tests: int) -> float | None:
    """Return the smallest difference that the strictest test of the table finds, in points."""
    if error is None or degrees is None:
        return None
    return _points(smallest_detectable_difference(error, degrees, significance=SIGNIFICANCE / max(1, tests)))


def _points(value: float | None) -> float | None:
    return None if value is None else round(100 * value, 6) + 0.0


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
