"""Metrics of VALUE between samples and predictions: recall of moments and videos, accuracy, and scores of captions at three levels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vip.errors import InputError
from vip.metrics import Metric, Pair, Result
from vip.metrics.accuracy import Accuracy
from vip.metrics.bleu import Bleu
from vip.metrics.caption_corpus import CaptionTokenizer, Floats
from vip.metrics.caption_rouge_l import CaptionRougeL
from vip.metrics.cider import CiderD
from vip.metrics.meteor import Meteor
from vip.metrics.retrieval import KS, TIOUS, AverageRecall, RankedMoments, Ranking, Recall, RetrievalKind, Target
from vip.tasks.records import Found, FoundMoments, Moment, Prediction, Sample
from vip.tasks.value.datasets import Dataset
from vip.untrusted import one_line

Scored = Sequence[tuple[Sample, Prediction]]


@dataclass(frozen=True)
class ValueMetric:
    """A metric of vip over samples and predictions of one kind."""

    metric: Metric[Any, Any]
    pair: Callable[[Scored], Sequence[Pair[Any, Any]]]
    """Returns what the metric compares."""
    suffix: str = ""
    """Of the name: the level, where it is not that of clips."""

    @property
    def name(self) -> str:
        return self.metric.name + self.suffix

    @property
    def signature(self) -> str:
        return self._name(self.metric.signature)

    @property
    def needs(self) -> tuple[str, ...]:
        return self.metric.needs

    def check(self) -> None:
        self.metric.check()

    def score(self, pairs: Scored) -> Result:
        result = self.metric.score(self.pair(pairs))
        if self.suffix == PARAGRAPH:  # its values are those of paragraphs, not of samples
            result = replace(result, per_sample=None)
        return replace(result, signature=self._name(result.signature))

    def resampler(self, pairs: Scored) -> Callable[[Floats], float]:
        """Return a function from the weights of the pairs to the value. A paragraph counts by the share of its clips."""
        units = self.pair(pairs)
        numbers: dict[str, int] = {}
        paragraph_of = np.array([numbers.setdefault(sample.video, len(numbers)) for sample, _ in pairs])
        unit_of = paragraph_of if self.suffix == PARAGRAPH else np.arange(len(units))
        sizes = np.bincount(unit_of, minlength=len(units))
        value = self.metric.weighted(units) if isinstance(self.metric, Bleu | Meteor) else _weighted_mean(self.metric.score(units))
        return lambda weights: value(np.bincount(unit_of, weights, len(units)) / sizes)

    def _name(self, signature: str) -> str:
        return f"{self.name}|{signature.partition('|')[2]}"


def _weighted_mean(result: Result) -> Callable[[Floats], float]:
    values = np.array(result.per_sample_or_zero)
    return lambda weights: float(np.einsum("i,i->", values, weights) / weights.sum())  # one thread, the same digits everywhere


PARAGRAPH, VIDEO_MEAN = "-paragraph", "-video-mean"


class VideoMean:
    """A metric of captions averaged first over the clips of a video, then over videos: another number than that of clips.

    Args:
        metric: gives one value a clip.
    """

    def __init__(self, metric: ValueMetric) -> None:
        self.metric = metric
        self.name, self.needs = metric.name + VIDEO_MEAN, metric.needs

    @property
    def signature(self) -> str:
        return f"{self.name}|mean over videos of clips|{self.metric.signature}"

    def check(self) -> None:
        self.metric.check()

    def score(self, pairs: Scored) -> Result:
        result = self.metric.score(pairs)
        videos = [sample.video for sample, _ in pairs]
        return replace(
            result,
            value=_video_mean(videos, result.per_sample_or_zero),
            value_answered=_video_mean(videos, result.per_sample or ()),
            per_sample=None,
            signature=self.signature,
        )

    def resampler(self, pairs: Scored) -> Callable[[Floats], float]:
        """Return a function from the weights of the pairs to the value."""
        values = np.array(self.metric.score(pairs).per_sample_or_zero)
        numbers: dict[str, int] = {}
        videos = np.array([numbers.setdefault(sample.video, len(numbers)) for sample, _ in pairs])
        shares = 1 / np.bincount(videos)[videos]
        return lambda weights: float(np.einsum("i,i,i->", values, weights, shares) / np.einsum("i,i->", weights, shares))


def _video_mean(videos: Sequence[str], values: Sequence[float | None]) -> float | None:
    of_video: dict[str, list[float]] = {}
    for video, value in zip(videos, values, strict=True):
        if value is not None:
            of_video.setdefault(video, []).append(value)
    means = [sum(group) / len(group) for group in of_video.values()]
    return sum(means) / len(means) if means else None


def value_metrics(dataset: Dataset) -> tuple[ValueMetric | VideoMean, ...]:
    """Return the metrics of a task, the target first."""
    if dataset.category == "qa":
        return (ValueMetric(Accuracy(), choice_pairs),)
    if dataset.category == "retrieval":
        kinds: tuple[RetrievalKind, ...] = ("vcmr", "svmr") if dataset.kind == "vcmr" else ()
        recalls = [Recall(kind, k, tiou) for kind in kinds for tiou in TIOUS for k in KS]
        target: RetrievalKind = "vcmr" if kinds else "vr"
        every: tuple[Metric[Any, Any], ...] = (AverageRecall(target), *recalls, *(Recall("vr", k) for k in KS))
        kept = KeptPairs(retrieval_pairs)
        return tuple(ValueMetric(metric, kept) for metric in every)
    return _caption_metrics()


def _caption_metrics() -> tuple[ValueMetric | VideoMean, ...]:
    shared = CaptionTokenizer()
    metrics: list[Metric[Any, Any]] = [
        CiderD(tokenizer=shared),
        *(Bleu(n, tokenizer=shared) for n in (1, 2, 3, 4)),
        CaptionRougeL(tokenizer=shared),
    ]
    of_clips, of_paragraphs = KeptPairs(caption_pairs), KeptPairs(paragraph_pairs)
    clips = [ValueMetric(metric, of_clips) for metric in (*metrics, Meteor(tokenizer=shared))]
    paragraphs: list[Metric[Any, Any]] = [
        CiderD(tokenizer=shared),
        Bleu(4, tokenizer=shared),
        CaptionRougeL(tokenizer=shared),
    ]
    return (*clips, VideoMean(clips[0]), *(ValueMetric(metric, of_paragraphs, PARAGRAPH) for metric in paragraphs))


# ---------------------------------------------------------------- what is compared


def choice_pairs(pairs: Scored) -> list[Pair[int, int]]:
    """Return indices of options."""
    return [Pair(_value(prediction, int), _reference(sample, int), prediction.status) for sample, prediction in pairs]


class KeptPairs:
    """What a function makes of the last list of samples and predictions, which many metrics score."""

    def __init__(self, make: Callable[[Scored], list[Pair[Any, Any]]]) -> None:
        self._make = make
        self._last: tuple[Scored, list[Pair[Any, Any]]] | None = None

    def __call__(self, pairs: Scored) -> list[Pair[Any, Any]]:
        if self._last is None or self._last[0] is not pairs:
            self._last = None  # one list in memory
            self._last = pairs, self._make(pairs)
        return self._last[1]


def retrieval_pairs(pairs: Scored) -> list[Pair[Ranking, Target]]:
    """Return what was found for each query, and what should have been."""
    found = ((_ranking(_value(prediction, Found)), _target(sample), prediction.status) for sample, prediction in pairs)
    return [Pair(*one) for one in found]


def _ranking(found: Found | None) -> Ranking | None:
    return None if found is None else Ranking(_moments(found.vcmr), _moments(found.svmr), found.vr)


def _moments(found: FoundMoments | None) -> RankedMoments | None:
    return None if found is None else RankedMoments(found.videos, found.starts_s, found.ends_s)


def _target(sample: Sample) -> Target:
    values = _reference(sample, tuple)
    if values and isinstance(values[0], Moment):
        return Target(values[0].video, tuple((moment.start_s, moment.end_s) for moment in values))
    return Target(str(values[0]))


def caption_pairs(pairs: Scored) -> list[Pair[str, tuple[str, ...]]]:
    """Return captions and all their references."""
    return [Pair(_value(prediction, str), _references(sample), prediction.status) for sample, prediction in pairs]


def paragraph_pairs(pairs: Scored) -> list[Pair[str, tuple[str, ...]]]:
    """Return the captions of each video as one text, clips in order of time, else of the file; so with the first, second … references.

    A paragraph with a caption that is missing is made of the others; one without any has no answer.
    """
    of_video: dict[str, list[tuple[Sample, Prediction]]] = {}
    for sample, prediction in pairs:
        of_video.setdefault(sample.video, []).append((sample, prediction))
    paragraphs = []
    for group in of_video.values():
        ordered = sorted(group, key=lambda one: one[0].start_s or 0.0)
        answered = [text for _, prediction in ordered if (text := _value(prediction, str)) is not None]
        references = [_references(sample) for sample, _ in ordered]
        joined = tuple(" ".join(some[place % len(some)] for some in references) for place in range(max(map(len, references))))
        paragraphs.append(Pair(" ".join(answered) if answered else None, joined, "ok" if answered else ordered[0][1].status))
    return paragraphs


def _references(sample: Sample) -> tuple[str, ...]:
    _reference(sample, str)
    return tuple(str(value) for value in sample.reference.values) if sample.reference else ()


def _value(prediction: Prediction, kind: type[Any]) -> Any:
    if prediction.value is not None and not isinstance(prediction.value, kind):
        raise InputError(f'The prediction of "{one_line(prediction.sample_id)[:80]}" is of another kind of task. Predict it again.')
    return prediction.value


def _reference(sample: Sample, kind: type[Any]) -> Any:
    value = sample.reference.values[0] if sample.reference else None
    if not isinstance(value, kind):
        raise InputError(f'The sample "{one_line(sample.id)[:80]}" has no answer of this kind: it is hidden, or of another task.')
    return value
