"""Score saved predictions: metrics over whole lists, error bars clustered by video, groups, and one result a file.

In: samples and predictions, joined on the id. Out: `ScoredFile`, whose `result` is written as result.json. No model and no network is
needed. The same files give the same bytes on any machine: sums are exact, values are rounded to six digits, and nothing names a path or
a time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from vip import __version__
from vip.errors import BackendError, InputError, UsageError, did_you_mean
from vip.metrics import Result, Status
from vip.metrics.statistics import Floats, Indices, IntervalEstimate, bootstrap, bootstrap_weighted, compare_groups, estimate_mean
from vip.protocols import Observer, SilentObserver
from vip.tasks.pairs import JoinedFile, Pairs, SampleKey
from vip.tasks.records import Contrast, FrameBudget, JudgeCalibration, Score, TaskResult
from vip.tasks.task import EncoderMetric, Task, TaskMetric
from vip.untrusted import printable, shorten
from vip.wording import SaidOnce, counted

BOOTSTRAP_SEED = 0
BOOTSTRAP_DRAWS = 1000
MOST_RESCORED = 2_000_000
"""Pairs that are scored again, all draws together, for the interval of a metric that is no mean and cannot draw by itself."""
ROUNDED_BY = 1e-4
"""A value that is further from the mean of its samples is no mean; published recalls are rounded to two digits."""
MOST_IDS = 20
MOST_ENGINES, MOST_LETTERS = 20, 300  # that a result names, and of each
MOST_DIGITS = 9  # of the pixels that predictions name
MOST_RESCORED_GROUPS = 200
"""Groups that are scored again, where the value of a metric is no mean: samples of somebody else may name any number."""


@runtime_checkable
class ResamplingMetric(Protocol):
    """A metric that is no mean over samples, and computes its value over a draw of them fast."""

    def resampler(self, pairs: Pairs) -> Callable[[Floats], float]:
        """Return a function from how often each pair was drawn, float64 (N,), to the value as a fraction."""


@runtime_checkable
class CalibratedMetric(Protocol):
    """A judge, which may be held against people."""

    def calibrate(self, ids: Sequence[str], verdicts: Sequence[float | None], score: Score) -> JudgeCalibration | None:
        """Return how well it fits people; None where they judged nothing.

        Args:
            verdicts: 1 or 0 for each sample; None where there is none.
        """


@dataclass(frozen=True, slots=True)
class ScoredFile:
    """One file of predictions with its result and the values of its samples."""

    joined: JoinedFile
    result: TaskResult
    values: dict[str, tuple[float, ...]] = field(repr=False)
    """Metric -> one value a sample as a fraction, 0 where there is no answer; metrics without such values are not in it."""
    statuses: tuple[Status, ...] = field(repr=False)
    """One a sample."""


def score(
    joined: JoinedFile,
    task: Task,
    metrics: Sequence[TaskMetric],
    *,
    observer: Observer | None = None,
) -> ScoredFile:
    """Score one file of predictions.

    Args:
        metrics: those of the task that are wanted, in this order; and a judge.

    Raises:
        InputError: the samples are of another version of the task, or none is left.
        BackendError: a metric lacks a library, weights or data.
    """
    check_version(joined, task)
    if not len(joined.pairs):
        raise InputError(f"{joined.name} answers none of the samples, so there is no score.")
    observer, pairs = observer or SilentObserver(), joined.pairs
    keys, statuses = pairs.keys, joined.statuses
    scores: dict[str, Score] = {}
    values: dict[str, tuple[float, ...]] = {}
    with observer.track("Scoring", len(metrics)) as advance:
        for metric in metrics:
            scored = metric.score(pairs)
            scores[metric.name] = _score_with_groups(scored, metric, pairs)
            without = sum(scored.unscored.values()) - sum(status != "ok" for status in statuses)
            scores[metric.name] = scores[metric.name].model_copy(update={"without_value": max(0, without)})
            scores[metric.name] = _calibrated(scores[metric.name], metric, [key.id for key in keys], scored)
            if scored.per_sample:  # a metric without a single answer has none
                values[metric.name] = scored.per_sample_or_zero
            advance()
    unscored = Counter(status for status in statuses if status != "ok")
    result = TaskResult(
        task=joined.task,
        task_version=joined.task_version,
        name=printable(joined.name),
        engine=_named(joined.engines),
        parameters=joined.parameters,
        budget=frame_budget(joined),
        n=len(pairs),
        left_out=joined.left_out,
        unscored=dict(sorted(unscored.items())),
        unscored_ids=tuple(printable(key.id) for key, status in zip(keys, statuses, strict=True) if status != "ok")[:MOST_IDS],
        metrics=scores,
        samples_sha256=joined.samples_sha256,
        predictions_sha256=joined.predictions_sha256,
        versions={"vip-keyframes": __version__},
    )
    return ScoredFile(joined, result, values, statuses)


def _named(engines: Sequence[str]) -> str | None:
    """Return the names of engines; of many the first, since a file may be of somebody else."""
    names = [shorten(name, MOST_LETTERS) for name in engines[:MOST_ENGINES]]
    return ", ".join([*names, *["…"] * (len(engines) > MOST_ENGINES)]) or None


def _calibrated(found: Score, metric: object, ids: Sequence[str], result: Result) -> Score:
    if not isinstance(metric, CalibratedMetric):
        return found
    return found.model_copy(update={"calibration": metric.calibrate(ids, result.per_sample or (), found)})


def check_version(joined: JoinedFile, task: Task) -> None:
    """Refuse samples of another version of their task.

    Raises:
        InputError: the versions differ.
    """
    if joined.task_version != task.version:
        raise InputError(
            f"The samples of {joined.name} were made for version {joined.task_version} of {joined.task}, and this vip has version"
            f" {task.version}: scores of the two cannot be compared. Make samples and predictions again, or use the vip that made them."
        )


def choose_metrics(task: Task, wanted: Sequence[str], note: Callable[[str], None]) -> list[TaskMetric]:
    """Return the metrics to score by: those that are asked for, else all of the task that work here.

    Args:
        wanted: names of metrics, as `NAME:ENCODER` with another encoder, or `all`; empty: those that lack nothing; a note names the others.

    Raises:
        UsageError: the task has no such metric.
        BackendError: one that is asked for, or all of them, lacks something.
    """
    known = {metric.name: metric for metric in task.metrics}
    if wanted:
        chosen_by_name: dict[str, TaskMetric] = {}
        for word in wanted:
            for name in known if word == "all" else [word]:
                found = _find_metric(name, known, task)
                chosen_by_name[found.name] = found
        chosen = list(chosen_by_name.values())
        for metric in chosen:
            metric.check()
        return chosen
    usable: list[TaskMetric] = []
    lacking: list[tuple[str, BackendError]] = []
    for metric in known.values():
        try:
            metric.check()
        except BackendError as exc:
            lacking.append((metric.name, exc))
        else:
            usable.append(metric)
    if not usable and lacking:
        raise lacking[0][1]
    for name, reason in lacking:
        note(SaidOnce(f"Left out {name}: {reason}"))
    return usable


def _find_metric(wanted: str, known: Mapping[str, TaskMetric], task: Task) -> TaskMetric:
    """Return the metric of this name, or of `NAME:ENCODER`.

    Raises:
        UsageError: there is none, or it takes no encoder.
    """
    name, _, encoder = wanted.partition(":")
    if name not in known:
        raise UsageError(f'The task {task.name} has no metric "{wanted}".{did_you_mean(name, known)}')
    if not encoder:
        return known[name]
    metric: object = known[name]
    if not isinstance(metric, EncoderMetric):
        raise UsageError(f"{name} has no encoder. Leave :{encoder} out.")
    return metric.with_encoder(encoder)


def frame_budget(joined: JoinedFile) -> FrameBudget | None:
    """Return what a model saw of each sample, as far as the samples say; None where they show nothing, as published files do."""
    (fewest, most), (least, largest) = joined.pictures, joined.described
    described = _range(least, largest, "described keyframe") if largest else None
    if most and not described and joined.engines and all(name.startswith("baseline:") for name in joined.engines):
        return FrameBudget(frames=None)  # it saw no picture
    if most:
        parts = [" or ".join(joined.frames_chosen) or described, f"{fewest} at least" if fewest < most else None]
        side = joined.parameters.get("longest_side_px")
        return FrameBudget(
            frames=most,
            chosen=", ".join(filter(None, parts)) or None,
            longest_side_px=int(side) if isinstance(side, str) and side.isascii() and side.isdigit() and len(side) <= MOST_DIGITS else None,
        )
    return FrameBudget(frames=None, chosen=described) if described else None


def _range(least: int, most: int, noun: str) -> str:
    return counted(most, noun) if least == most else f"{least} to {counted(most, noun)}"


# ---------------------------------------------------------------- values with error bars and groups


def _score_with_groups(result: Result, metric: TaskMetric, pairs: Pairs) -> Score:
    """Return the score of a metric over all pairs, and over each group of them."""
    groups: dict[str, dict[str, Score]] = {}
    is_a_mean, by_grouping, number = is_mean(result), group_members(pairs), 0
    for grouping, members in by_grouping.items():
        groups[grouping] = {}
        for name, indices in sorted(members.items()):
            number += 1
            some = pairs.take(indices)
            if is_a_mean:
                groups[grouping][name] = make_score(_restrict(result, indices), some, metric)
            elif number <= MOST_RESCORED_GROUPS:
                groups[grouping][name] = make_score(metric.score(list(some)), some, metric)
            else:
                groups[grouping][name] = _unscored_group(result, len(some))
    two = {grouping: members for grouping, members in by_grouping.items() if len(members) == 2 and is_a_mean and result.per_sample}
    values, keys = result.per_sample_or_zero if two else (), pairs.keys
    contrasts = tuple(_contrast(values, grouping, members, keys) for grouping, members in two.items())
    update = {"groups": groups, "contrasts": contrasts}
    return make_score(result, pairs, metric).model_copy(update=update)


def _unscored_group(result: Result, n: int) -> Score:
    why = f"The value is no mean over samples, and is scored again for the first {MOST_RESCORED_GROUPS:,} groups alone."
    return Score(value=None, value_answered=None, n=n, no_interval=why, signature=result.signature)


def _contrast(values: Sequence[float], grouping: str, members: Mapping[str, Sequence[int]], keys: Sequence[SampleKey]) -> Contrast:
    """Return the difference of the two groups of a grouping; samples in neither change nothing."""
    first, second = sorted(members)
    inside = [set(members[name]) for name in (first, second)]
    either = sorted(inside[0] | inside[1])
    masks = [[index in group for index in either] for group in inside]
    test = compare_groups([values[index] for index in either], [keys[index].video for index in either], *masks)
    return Contrast(
        grouping=grouping,
        first=first,
        second=second,
        difference=_times_100(test.difference.value) or 0.0,
        standard_error=_times_100(test.difference.standard_error),
        low=_times_100(test.difference.low),
        high=_times_100(test.difference.high),
        p_value=None if test.p_value is None else round(test.p_value, 6),
    )


def group_members(pairs: Pairs) -> dict[str, dict[str, list[int]]]:
    """Return the numbers of the pairs in each group of each grouping; a pair may be in several."""
    members: dict[str, dict[str, list[int]]] = {}
    for index, key in enumerate(pairs.keys):
        for grouping, names in key.groups:
            for name in dict.fromkeys(names):
                members.setdefault(grouping, {}).setdefault(name, []).append(index)
    return dict(sorted(members.items()))


def is_mean(result: Result) -> bool:
    """Return whether the value is the mean of the values of its samples, up to the rounding of published figures."""
    if result.value is None or result.per_sample is None:
        return result.per_sample is not None
    values = result.per_sample_or_zero
    return bool(values) and abs(math.fsum(values) / len(values) - result.value) <= ROUNDED_BY


def _restrict(result: Result, indices: Sequence[int]) -> Result:
    """Return a result that is a mean, over some of its samples; parts without values of samples are left out."""
    assert result.per_sample is not None
    values = [result.per_sample[index] for index in indices] if result.per_sample else []  # without an answer at all it has none
    known = [value for value in values if value is not None]
    return Result(
        value=math.fsum(known) / len(values) if values else None,
        value_answered=math.fsum(known) / len(known) if known else None,
        per_sample=tuple(values),
        n=len(known),
        unscored={},
        signature=result.signature,
        parts={name: _restrict(part, indices) for name, part in result.parts.items() if part.per_sample is not None},
    )


def make_score(result: Result, pairs: Pairs, metric: TaskMetric | None = None) -> Score:
    """Return a result × 100 with its clustered standard error and its 95 % interval.

    Args:
        pairs: what was scored; the videos are the clusters.
        metric: scores draws of pairs where the value is no mean; None for parts, which then have no interval.
    """
    clusters = [key.video for key in pairs.keys]
    estimate = _estimate(result, pairs, clusters, metric)
    answered = result.value_answered
    return Score(
        value=_times_100(result.value),
        value_answered=_times_100(answered),
        n=len(pairs),
        standard_error=_times_100(estimate.standard_error) if estimate else None,
        low=_times_100(estimate.low) if estimate else None,
        high=_times_100(estimate.high) if estimate else None,
        no_interval=_no_interval(result, estimate),
        signature=result.signature,
        parts={name: make_score(part, pairs) for name, part in result.parts.items()},
        notes=result.notes,
    )


def _estimate(result: Result, pairs: Pairs, clusters: Sequence[str], metric: TaskMetric | None) -> IntervalEstimate | None:
    if result.value is None:
        return None
    if is_mean(result):
        return estimate_mean(result.per_sample_or_zero, clusters)
    resampling: object = metric
    if isinstance(resampling, ResamplingMetric):
        return bootstrap_weighted(resampling.resampler(pairs), clusters, seed=BOOTSTRAP_SEED, draws=BOOTSTRAP_DRAWS)
    if metric is None or len(pairs) * BOOTSTRAP_DRAWS > MOST_RESCORED:
        return None
    of, loaded = metric, list(pairs)

    def value_of(indices: Indices) -> float:
        return of.score([loaded[index] for index in indices.tolist()]).value or 0.0

    return bootstrap(value_of, clusters, seed=BOOTSTRAP_SEED, draws=BOOTSTRAP_DRAWS)


def _no_interval(result: Result, estimate: IntervalEstimate | None) -> str | None:
    if estimate is not None:
        return estimate.no_interval and printable(estimate.no_interval)
    if result.value is None:
        return "There is no value."
    return "The value is no mean over samples, and drawing so many again would take too long."


def _times_100(value: float | None) -> float | None:
    """Return percent, rounded so that every machine writes the same digits; without a negative zero."""
    return None if value is None else round(100 * value, 6) + 0.0
