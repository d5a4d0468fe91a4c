"""Keyframes for a question: the pruner `aks`, which `--query` chooses.

Adaptive keyframe sampling (Tang et al., CVPR 2025): of a stretch of time, take the frames most relevant to the question if
they stand out from the rest; where they do not, halve the stretch and give each half its share, so that keyframes stay
spread. Relevance is the cosine of picture and question, scaled to [0, 1] over the video.

    stands out: mean of the n most relevant - mean of all > 0.8;   at most 5 halvings

Ours: a stretch is judged by as many frames as it would get (in the authors' code by as many as the whole video gets) and halved
in time, not in number of candidates; a half that has too few leaves its share to the other.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vip.errors import BackendError, UsageError
from vip.extraction.pruners.algorithm1 import plainly_left
from vip.protocols import Embedder, Prunable, PrunedFrame, PrunerCapabilities, PruningResult
from vip.records import Embeddings
from vip.timecode import timecode
from vip.wording import option

STANDS_OUT = 0.8
MOST_HALVINGS = 5


def relevance_of(embeddings: Embeddings, query: str | None, embedder: Embedder) -> list[float] | None:
    """Return the cosine of each picture and the query, as the embedder with a joint space sees them; None without a query."""
    if query is None:
        return None
    return [float(value) for value in embeddings.image @ embedder.embed_texts([query])[0]]


class AdaptiveKeyframeSampling:
    """The pruner `aks`."""

    name = "aks"
    capabilities = PrunerCapabilities()

    def __init__(self, detail: str | None) -> None:
        if detail is not None:
            raise BackendError(f'The pruner "aks" takes no detail, but got "{detail}". Write {option("query", detail)}.')

    def prune(self, frames: Prunable, *, keep: int | None, redundant: float) -> PruningResult:
        """Return the most relevant frames of each stretch. Without `keep`, as many as there are pictures, or as plain Algorithm 1 leaves.

        Raises:
            UsageError: nothing is asked for.
        """
        if frames.relevance is None:
            raise UsageError(f"The pruner aks chooses by relevance to a question. Add {option('query', 'a dog catches a frisbee')}.")
        if len(frames) == 0:
            return PruningResult([], "kept", redundant)
        pictures = plainly_left(frames, redundant) if frames.pictures is None else len(frames.pictures)
        wanted = min(keep or pictures, len(frames))
        relevance = [float(value) for value in frames.relevance]
        kept: dict[int, _Stretch] = {}
        for stretch, count in _stretches(frames, _scaled(relevance), wanted):
            kept |= dict.fromkeys(stretch.best(relevance, count), stretch)
        order = sorted(set(range(len(frames))) - set(kept), key=lambda row: (relevance[row], row))
        return PruningResult(
            drops=[_drop(step, row, relevance, sorted(kept), frames.times_s) for step, row in enumerate(order, 1)],
            kept="kept",
            reasons={row: f"kept: relevance {relevance[row]:.3f}, among the highest {stretch}" for row, stretch in kept.items()},
            bound=redundant,
        )


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Neighbouring rows and the time they lie in."""

    rows: tuple[int, ...]
    start_s: float
    end_s: float

    def best(self, relevance: Sequence[float], count: int) -> list[int]:
        """Return the most relevant rows, of equal ones the earliest."""
        return sorted(self.rows, key=lambda row: (-relevance[row], row))[:count]

    def halves(self, times_s: Sequence[float]) -> tuple[_Stretch, _Stretch]:
        middle = (self.start_s + self.end_s) / 2
        first = tuple(row for row in self.rows if times_s[row] < middle)
        return _Stretch(first, self.start_s, middle), _Stretch(self.rows[len(first) :], middle, self.end_s)

    def __str__(self) -> str:
        return f"from {timecode(self.start_s)} to {timecode(self.end_s)}"


def _scaled(relevance: Sequence[float]) -> list[float]:
    values = np.asarray(relevance, np.float64)
    spread = float(values.max() - values.min())
    return ((values - values.min()) / spread).tolist() if spread > 0 else [0.0] * len(relevance)


def _stretches(frames: Prunable, scaled: Sequence[float], wanted: int) -> list[tuple[_Stretch, int]]:
    """Return the stretches that are not halved any more, in time order, and how many frames of each are taken: `wanted` in all."""
    done: list[tuple[_Stretch, int]] = []
    todo = [(_Stretch(tuple(range(len(frames))), frames.times_s[0], frames.times_s[-1]), wanted, 0)]
    while todo:
        stretch, count, halvings = todo.pop()
        if count < 2 or count >= len(stretch.rows) or halvings == MOST_HALVINGS or _stands_out(stretch, scaled, count):
            done.append((stretch, count))
            continue
        halves = stretch.halves(frames.times_s)
        todo += [(half, share, halvings + 1) for half, share in zip(halves, _shares(halves, scaled, count), strict=True)][::-1]
    return done


def _stands_out(stretch: _Stretch, scaled: Sequence[float], count: int) -> bool:
    best = [scaled[row] for row in stretch.best(scaled, count)]
    return float(np.mean(best) - np.mean([scaled[row] for row in stretch.rows])) > STANDS_OUT


def _shares(halves: tuple[_Stretch, _Stretch], scaled: Sequence[float], count: int) -> tuple[int, int]:
    """Give half of the frames to each; the odd one to the half with the most relevant frame, and no more than there are."""
    peaks = [max((scaled[row] for row in half.rows), default=-1.0) for half in halves]
    first = count // 2 + (count % 2 if peaks[0] >= peaks[1] else 0)
    first = min(max(first, count - len(halves[1].rows)), len(halves[0].rows))
    return first, count - first


def _drop(step: int, row: int, relevance: Sequence[float], kept: Sequence[int], times_s: Sequence[float]) -> PrunedFrame:
    place = bisect(kept, row)
    beside = tuple(kept[max(0, place - 1) : place + 1])
    times = " and ".join(timecode(times_s[other]) for other in beside)
    reason = f"dropped: relevance {relevance[row]:.3f}; the keyframes beside it, at {times}, are more relevant or better spread"
    return PrunedFrame(row, step, relevance[row], beside, reason)
