"""Metrics of `infilling` and `prediction`: a text metric between descriptions, averaged over the generated keyframes (section 5).

In: samples with a list of descriptions as their reference, and predictions with as many. Out: a `Result` with one value a sample. For
FAMOuS the value is the unweighted mean of the five components, which are its parts; for dense captions it is that of the captions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from vip.config import Representation
from vip.errors import InputError, UsageError
from vip.metrics import Metric, Pair, Result, Status
from vip.metrics.bert_score import BertScore
from vip.metrics.famous import COMPONENTS, FamousMean
from vip.metrics.rouge_l import RougeL
from vip.metrics.sentence_bert import SentenceBert
from vip.records import NOT_DETERMINED
from vip.tasks.records import DescribeKeyframes, DescriptionText, Prediction, Sample
from vip.untrusted import one_line
from vip.wording import option

SAMPLES_AT_ONCE = 500
"""Whose texts are in memory together."""
MOSTLY = 0.5
"""A component that more of the references leave open says little."""


class DescriptionMetric:
    """A text metric between the generated descriptions of keyframes and the true ones.

    Args:
        metric: compares two texts.
    """

    def __init__(self, metric: Metric[str, str]) -> None:
        self.metric = metric
        self.name = metric.name
        self.needs = metric.needs

    def with_encoder(self, encoder: str) -> DescriptionMetric:
        """Return the metric with another encoder: a folder, or a repository of the hub.

        Raises:
            UsageError: it has none.
        """
        if not isinstance(self.metric, BertScore | SentenceBert):
            raise UsageError(f"{self.name} has no encoder. Leave :{one_line(encoder)} out.")
        return DescriptionMetric(self.metric.with_encoder(encoder))

    @property
    def signature(self) -> str:
        return f"keyframes:mean|famous:{','.join(COMPONENTS)}|of:{self.metric.signature}"

    def check(self) -> None:
        self.metric.check()

    def score(self, pairs: Sequence[tuple[Sample, Prediction]]) -> Result:
        """Return the mean over the samples of the mean over their keyframes.

        Raises:
            InputError: the samples ask for both representations, or a prediction has another number of descriptions than was asked for.
        """
        self.check()
        kind: Representation | None = None
        done: list[Result] = []
        undetermined, count = Counter[str](), 0
        for start in range(0, len(pairs), SAMPLES_AT_ONCE):
            some = [pairs[index] for index in range(start, min(start + SAMPLES_AT_ONCE, len(pairs)))]
            kinds = {_ask(sample).representation for sample, _ in some} | ({kind} if kind else set())
            if len(kinds) > 1:
                raise InputError("The samples ask for both FAMOuS and dense captions. Score them apart: their values cannot be averaged.")
            (kind,) = kinds
            done.append(self._score_some(some, kind))
            for famous in (row.famous for sample, _ in some for row in _references(sample) if row.famous):
                count += 1
                undetermined.update(famous.undetermined)
        return replace(_joined(done, self.signature), notes=_undetermined_notes(undetermined, count) if kind == "famous" else ())

    def _score_some(self, pairs: Sequence[tuple[Sample, Prediction]], kind: Representation) -> Result:
        flat = [pair for sample, prediction in pairs for pair in _keyframe_pairs(sample, prediction, kind)]
        metric: Any = FamousMean(self.metric) if kind == "famous" else self.metric
        counts = [_ask(sample).count for sample, _ in pairs]
        return _by_sample(metric.score(flat), counts, [prediction.status for _, prediction in pairs])


def description_metrics() -> tuple[DescriptionMetric, ...]:
    """Return the three metrics of the paper; encoders are loaded when they score."""
    return DescriptionMetric(RougeL()), DescriptionMetric(BertScore()), DescriptionMetric(SentenceBert())


def _ask(sample: Sample) -> DescribeKeyframes:
    if not isinstance(sample.ask, DescribeKeyframes):
        raise InputError(f'The sample "{one_line(sample.id)}" does not ask for descriptions of keyframes, so these metrics do not fit it.')
    return sample.ask


def _keyframe_pairs(sample: Sample, prediction: Prediction, kind: Representation) -> Iterator[Pair[Any, Any]]:
    """Yield one pair a keyframe that was asked for."""
    count = _ask(sample).count
    truth = _texts(sample.reference.values[0] if sample.reference else None, count, kind, f'The reference of "{one_line(sample.id)}"')
    if prediction.status != "ok":
        yield from (Pair(None, reference, prediction.status) for reference in truth)
        return
    mine = _texts(prediction.value, count, kind, f'The prediction of "{one_line(sample.id)}"')
    yield from (Pair(text, reference) for text, reference in zip(mine, truth, strict=True))


def _references(sample: Sample) -> tuple[DescriptionText, ...]:
    value = sample.reference.values[0] if sample.reference else ()
    return tuple(row for row in value if isinstance(row, DescriptionText)) if isinstance(value, tuple) else ()


def _undetermined_notes(undetermined: Mapping[str, int], count: int) -> tuple[str, ...]:
    """Return what is to be said where references leave components open: an answer that leaves them open too scores 100."""
    open_ones = [name for name in COMPONENTS if undetermined.get(name, 0) > MOSTLY * count]
    if not open_ones:
        return ()
    return (
        f'Most references say "{NOT_DETERMINED}" of {", ".join(open_ones)}, and so do answers that score 100 there. Compare dense captions'
        f" ({option('representation', 'dense')}), or describe the keyframes by an engine that sees.",
    )


def _texts(value: object, count: int, kind: Representation, owner: str) -> list[Any]:
    """Return what metrics compare: scene descriptions or dense captions.

    Raises:
        InputError: the value does not have `count` of them.
    """
    rows = list(value) if isinstance(value, tuple) else []
    texts = [row.famous if kind == "famous" else row.dense_caption for row in rows if isinstance(row, DescriptionText)]
    if len(texts) != count or None in texts:
        what = "scene descriptions (famous)" if kind == "famous" else "dense captions (dense_caption)"
        raise InputError(f"{owner} is not a list of {count} {what}. Make it again, or write it as unparsed.")
    return texts


def _by_sample(result: Result, counts: Sequence[int], statuses: Sequence[Status]) -> Result:
    """Return a result over keyframes as one over samples: each sample is the mean over its keyframes."""
    values: list[float | None] = []
    start = 0
    for count in counts:
        some = (result.per_sample or ())[start : start + count]
        known = [value for value in some if value is not None]
        values.append(math.fsum(known) / count if len(known) == count else None)
        start += count
    parts = {name: _by_sample(part, counts, statuses) for name, part in result.parts.items()}
    return _result(values, statuses, result.signature, parts)


def _joined(results: Sequence[Result], signature: str) -> Result:
    """Return the results of consecutive samples as one."""
    names = results[0].parts if results else ()
    values = [value for result in results for value in result.per_sample or ()]
    unscored: dict[Status, int] = {}
    for result in results:
        for status, number in result.unscored.items():
            unscored[status] = unscored.get(status, 0) + number
    return Result(
        value=_mean([value or 0.0 for value in values]),
        value_answered=_mean([value for value in values if value is not None]),
        per_sample=tuple(values),
        n=sum(result.n for result in results),
        unscored=unscored,
        signature=signature,
        parts={name: _joined([result.parts[name] for result in results], results[0].parts[name].signature) for name in names},
    )


def _result(values: Sequence[float | None], statuses: Sequence[Status], signature: str, parts: dict[str, Result]) -> Result:
    unscored: dict[Status, int] = {}
    for status in statuses:
        if status != "ok":
            unscored[status] = unscored.get(status, 0) + 1
    return Result(
        value=_mean([value or 0.0 for value in values]),
        value_answered=_mean([value for value in values if value is not None]),
        per_sample=tuple(values),
        n=sum(value is not None for value in values),
        unscored=unscored,
        signature=signature,
        parts=parts,
    )


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
