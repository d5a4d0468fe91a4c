"""Recall of videos and of moments in them, for text queries (Li et al. 2021, section 3.1; Lei et al. 2020).

Three tasks share their form: find the moment in a corpus (VCMR), in the right video (SVMR), or only the video (VR). A prediction is correct
if its video is the right one and, for moments, its tIoU with the right moment reaches a threshold. Times and tIoU are kept in float32, as
in the published scores: with float64, the last figures differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from vip.metrics.metric import Pair, Result, score_mean

RetrievalKind = Literal["vcmr", "svmr", "vr"]
KS = (1, 5, 10, 100)
TIOUS = (0.5, 0.7)
MOST_PREDICTIONS = 100
"""Only so many of a query count."""
MANY_SPANS, SPANS_TO_MEET = 4, 2
"""A query that several people marked, at least 4 spans, is met where 2 of them are (DiDeMo)."""


@dataclass(frozen=True, slots=True)
class RankedMoments:
    """Moments, best first, as columns."""

    videos: tuple[str, ...]
    starts_s: tuple[float, ...]
    ends_s: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """The video that a query describes, and the spans of the moment in it; none where only the video is asked."""

    video: str
    spans_s: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Ranking:
    """What was found for a query, best first; None for tasks that were not done."""

    vcmr: RankedMoments | None = None
    svmr: RankedMoments | None = None
    vr: tuple[str, ...] | None = None
    _known: dict[tuple[RetrievalKind, float | None, Target], int] = field(default_factory=dict, compare=False, repr=False)

    def place_of_first(self, kind: RetrievalKind, tiou: float | None, target: Target) -> int:
        """Return the place of the first correct prediction, from 0 on; MOST_PREDICTIONS where there is none.

        Recalls at all k ask for it, so it is kept.
        """
        key = kind, tiou, target
        if key not in self._known:
            self._known[key] = self._find_first(kind, tiou, target)
        return self._known[key]

    def _find_first(self, kind: RetrievalKind, tiou: float | None, target: Target) -> int:
        if kind == "vr":
            videos = (self.vr or ())[:MOST_PREDICTIONS]
            return videos.index(target.video) if target.video in videos else MOST_PREDICTIONS
        moments = self.vcmr if kind == "vcmr" else self.svmr
        if moments is None or target.video not in moments.videos:
            return MOST_PREDICTIONS
        correct = is_correct(moments, target, tiou or 0.0)
        if kind == "svmr":  # of other videos nothing was asked: they take no place, as in the published scores
            correct = correct[[video == target.video for video in moments.videos[:MOST_PREDICTIONS]]]
        return int(correct.argmax()) if correct.any() else MOST_PREDICTIONS


class Recall:
    """The share of queries with a correct prediction among the first k.

    Args:
        kind: which of the three tasks.
        k: how many predictions count.
        tiou: the smallest tIoU of a correct one; None for `vr`.
    """

    needs: tuple[str, ...] = ()

    def __init__(self, kind: RetrievalKind, k: int, tiou: float | None = None) -> None:
        if (tiou is None) != (kind == "vr"):
            raise ValueError("moments have a threshold of the tIoU, videos have none")
        self.kind, self.k, self.tiou = kind, k, tiou
        self.name = f"{kind}-r{k}" if tiou is None else f"{kind}-{tiou:g}-r{k}"

    @property
    def signature(self) -> str:
        threshold = "" if self.tiou is None else f"|tiou>={self.tiou:g} float32"
        return f"recall|v:1|{self.kind}|k:{self.k}{threshold}|most:{MOST_PREDICTIONS}"

    def check(self) -> None:
        """Nothing is needed."""

    def score(self, pairs: Sequence[Pair[Ranking, Target]]) -> Result:
        """Return the result; if no query has predictions of this kind, the value is None: what was not done is missing, not 0."""
        if all(pair.prediction is None or getattr(pair.prediction, self.kind) is None for pair in pairs):
            pairs = ()
        return score_mean(pairs, lambda both: [float(self._is_met(*one)) for one in both], self.signature)

    def _is_met(self, ranking: Ranking, target: Target) -> bool:
        return ranking.place_of_first(self.kind, self.tiou, target) < min(self.k, MOST_PREDICTIONS)


class AverageRecall:
    """AveR, the target metric of VALUE: the mean of the recalls at 1, 5 and 10, each rounded to two digits of a percentage as published.

    Args:
        kind: `vcmr`, whose recalls are those at a tIoU of 0.7, or `vr`.
    """

    name = "aver"
    needs: tuple[str, ...] = ()

    def __init__(self, kind: RetrievalKind) -> None:
        self.kind = kind
        self.recalls = [Recall(kind, k, None if kind == "vr" else 0.7) for k in KS[:3]]

    @property
    def signature(self) -> str:
        return f"aver|v:1|rounded mean of rounded|{self.recalls[0].signature.replace('k:1|', 'k:1,5,10|')}"

    def check(self) -> None:
        """Nothing is needed."""

    def score(self, pairs: Sequence[Pair[Ranking, Target]]) -> Result:
        parts = {f"r{recall.k}": recall.score(pairs) for recall in self.recalls}
        first = parts["r1"]
        columns = [part.per_sample for part in parts.values() if part.per_sample is not None]
        return Result(
            value=average_recall([part.value for part in parts.values()]),
            value_answered=average_recall([part.value_answered for part in parts.values()]),
            per_sample=tuple(
                None if row[0] is None else sum(float(one or 0) for one in row) / len(row) for row in zip(*columns, strict=True)
            ),
            n=first.n,
            unscored=first.unscored,
            signature=self.signature,
            parts=parts,
        )


def average_recall(recalls: Sequence[float | None]) -> float | None:
    """Return the mean of the recalls, as fractions, with the published rounding; None where one is unknown."""
    known = [round(recall * 100, 2) for recall in recalls if recall is not None]
    return round(sum(known) / len(known), 2) / 100 if known and len(known) == len(recalls) else None


def is_correct(moments: RankedMoments, target: Target, tiou: float) -> npt.NDArray[np.bool_]:
    """Return which moments that count are correct. (K,)"""
    most = MOST_PREDICTIONS
    right = np.fromiter(map(target.video.__eq__, moments.videos[:most]), bool)
    starts, ends = np.array(moments.starts_s[:most], np.float32), np.array(moments.ends_s[:most], np.float32)
    met = np.array([compute_tiou(starts, ends, span) >= np.float32(tiou) for span in target.spans_s])  # (S, K)
    needed = SPANS_TO_MEET if len(target.spans_s) >= MANY_SPANS else 1
    return np.asarray(right & (met.sum(axis=0) >= needed), bool)


def compute_tiou(
    starts_s: npt.NDArray[np.float32], ends_s: npt.NDArray[np.float32], span_s: tuple[float, float]
) -> npt.NDArray[np.float32]:
    """Return the share that each moment and a span have in common of all that they cover, in float32; 0 where they do not meet. (K,)"""
    first, last = np.float32(span_s[0]), np.float32(span_s[1])
    shared = np.maximum(np.float32(0), np.minimum(ends_s, last) - np.maximum(starts_s, first))
    covered = np.maximum(ends_s, last) - np.minimum(starts_s, first)  # of two that meet; else the share is 0 anyway
    return np.asarray(np.divide(shared, covered, out=np.zeros_like(shared), where=covered != 0), np.float32)
