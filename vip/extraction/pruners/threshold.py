"""Pruning by a threshold: a frame is kept if its picture is less like the last one kept. The recipe of ShareGPT4Video (0.93 there).

`threshold:0.93` with `-n auto` is that recipe alone. A number is an upper bound: the threshold goes down until at most that
many remain. Pictures are compared, not texts, as in the recipe.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from vip.errors import BackendError
from vip.protocols import REDUNDANT_COSINE, Prunable, PrunedFrame, PrunerCapabilities, PruningResult
from vip.records import Vectors
from vip.timecode import timecode
from vip.wording import option

FINEST = 1e-4  # thresholds that differ by less choose alike
CURVE_POINTS, CURVE_WORK = 24, 200_000  # thresholds tried for the curve; fewer where there are very many frames


class Threshold:
    """The pruner `threshold`, `threshold:0.93`."""

    capabilities = PrunerCapabilities()

    def __init__(self, detail: str | None) -> None:
        self.name = f"threshold:{detail}" if detail else "threshold"
        self.threshold = _cosine(detail) if detail else REDUNDANT_COSINE

    def prune(self, frames: Prunable, *, keep: int | None, redundant: float) -> PruningResult:
        """Go through the frames in time order; the bound of the embedder plays no part."""
        vectors, threshold = frames.embeddings.image, self.threshold
        if keep is not None and len(_pass(vectors, threshold)) > keep:
            threshold = _highest_that_leaves(vectors, keep, threshold)
        kept = _pass(vectors, threshold)
        lowered = f"{threshold:.3f}, the highest threshold that leaves at most {keep}"
        rule = lowered if threshold < self.threshold else f"{threshold:g}"
        return PruningResult(
            _drops(frames, kept),
            f"kept: likeness to the keyframe before it below {rule}",
            self.threshold,
            curve=_curve(vectors, threshold),
        )


def _cosine(detail: str) -> float:
    try:
        value = float(detail)
    except ValueError:
        value = math.nan
    if not -1 < value <= 1:
        raise BackendError(
            f'The pruner "threshold" needs a cosine between -1 and 1, but got "{detail}". Write {option("pruner", "threshold:0.93")}.'
        )
    return value


def _pass(vectors: Vectors, threshold: float) -> list[int]:
    """Return the rows that are kept: the first, and each whose cosine to the last one kept is below the threshold."""
    kept: list[int] = []
    for row, vector in enumerate(vectors):
        if not kept or float(vector @ vectors[kept[-1]]) < threshold:
            kept.append(row)
    return kept


def _highest_that_leaves(vectors: Vectors, keep: int, threshold: float) -> float:
    """Return a threshold below the given one that leaves at most `keep` rows where one higher by `FINEST` leaves more."""
    low, high = -1.0, threshold  # no cosine is below -1, so that leaves one
    while high - low > FINEST:
        middle = (low + high) / 2
        low, high = (middle, high) if len(_pass(vectors, middle)) <= keep else (low, middle)
    return low


def _drops(frames: Prunable, kept: Sequence[int]) -> list[PrunedFrame]:
    drops: list[PrunedFrame] = []
    for last, following in pairwise([*kept, len(frames)]):
        for row in range(last + 1, following):
            score = float(frames.embeddings.image[row] @ frames.embeddings.image[last])
            reason = f"dropped: likeness {score:.3f} to the keyframe before it at {timecode(frames.times_s[last])}"
            drops.append(PrunedFrame(row, len(drops) + 1, score, (last,), reason))
    return drops


def _curve(vectors: Vectors, chosen: float) -> list[tuple[int, float]]:
    """Return each number of keyframes with the highest threshold tried that leaves it; the chosen threshold is among those tried."""
    if len(vectors) < 2:
        return []
    points = max(4, min(CURVE_POINTS, CURVE_WORK // len(vectors)))
    cosines = np.einsum("nd,nd->n", vectors[:-1], vectors[1:], dtype=np.float64)
    where_it_counts = np.quantile(cosines, np.linspace(0, 1, points))
    in_between = np.linspace(cosines.min(), 1, points)
    below = np.linspace(-1, cosines.min(), points // 4)  # frames far apart can be less alike than any two in a row
    tried = sorted({*where_it_counts.tolist(), *in_between.tolist(), *below.tolist(), chosen})
    return sorted({len(_pass(vectors, threshold)): threshold for threshold in tried}.items())
