"""Algorithm 1 (section 3.1): drop, one at a time, the frame that is most like its neighbours in time.

    while more than f remain:
        score[j] = mean(cos_text(j, neighbours), cos_image(j, neighbours))
        remove argmax(score)

A frame with people may go only if a neighbour shows people too ("an additional check only to prune keyframes containing
people if either of the surrounding frames also includes people"). End frames have one neighbour. Of equal scores the earliest
frame goes. The rule always leaves a frame to drop: of two neighbours one shows nobody, or both may go.

Ours: frames that are held (`vip.extraction.held_frames`) go only when no other is left at all.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np
import numpy.typing as npt

from vip.errors import BackendError
from vip.extraction.held_frames import HeldFrames, held_frames
from vip.extraction.spread import NO_GAP
from vip.protocols import TEXT_WEIGHT, DistinctPictures, Prunable, PrunedFrame, PrunerCapabilities, PruningResult
from vip.records import Embeddings, Vectors
from vip.timecode import timecode
from vip.wording import option

PLAIN = "plain"
OWN_PICTURE = "kept: a picture of its own"
FREE, PEOPLE, HELD = range(3)  # in this order frames go


class Algorithm1:
    """The pruners `algorithm1` and `algorithm1:plain`; the latter holds no frame, as in the paper."""

    capabilities = PrunerCapabilities()

    def __init__(self, detail: str | None) -> None:
        if detail not in (None, PLAIN):
            known = f"{option('pruner', 'algorithm1')} or {option('pruner', f'algorithm1:{PLAIN}')}"
            raise BackendError(f'The pruner "algorithm1" takes no detail but {PLAIN}, but got "{detail}". Write {known}.')
        self.name = f"algorithm1:{detail}" if detail else "algorithm1"

    def prune(self, frames: Prunable, *, keep: int | None, redundant: float) -> PruningResult:
        """Run Algorithm 1 down to `keep`, the frames that stand for a scene each held; the curve is that of the paper, without holding any.

        Without `keep` one frame of each picture remains; where nobody counted the pictures, as many as plain Algorithm 1 leaves where it
        meets `redundant`.
        """
        if len(frames) == 0:
            return PruningResult([], "kept", redundant)
        if keep is None and frames.pictures is not None:
            return _one_of_each(frames, frames.pictures, redundant)
        plain = _to_the_last(frames)
        left = min(keep, len(frames)) if keep else _left_at(plain, redundant)
        is_plain = self.name == f"algorithm1:{PLAIN}"
        gaps_s, scenes = HeldFrames({}, {}) if is_plain else held_frames(frames, left, redundant=redundant)
        held = [row in gaps_s for row in range(len(frames))]
        done = prune(frames.embeddings, frames.has_people, keep=left, held=held, text_weight=frames.text_weight)
        clocks = [timecode(time_s) for time_s in frames.times_s]
        own = frozenset(frames.pictures.stand_for) if frames.pictures else frozenset[int]()
        return PruningResult(
            drops=[_drop(removal, clocks) for removal in done],
            kept="kept",
            reasons={row: _reason(scenes.get(row), gap_s, clocks, is_own=row in own) for row, gap_s in gaps_s.items()},
            bound=redundant,
            curve=[(len(frames) - removal.step + 1, removal.score) for removal in reversed(plain)],
        )


def _one_of_each(frames: Prunable, pictures: DistinctPictures, redundant: float) -> PruningResult:
    """Algorithm 1 down to one frame of each picture, the one that stands for it."""
    held = [row in set(pictures.stand_for) for row in range(len(frames))]
    done = prune(frames.embeddings, frames.has_people, keep=len(pictures), held=held, text_weight=frames.text_weight)
    clocks = [timecode(time_s) for time_s in frames.times_s]
    drops = []
    for removal in done:
        drop, shown = _drop(removal, clocks), clocks[pictures.stand_for[pictures.number[removal.index]]]
        drops.append(replace(drop, reason=f"{drop.reason}; {shown} shows this picture"))
    return PruningResult(drops, OWN_PICTURE, redundant, curve=pictures.curve)


def plainly_left(frames: Prunable, redundant: float) -> int:
    """Return how many of N > 0 frames Algorithm 1 leaves where it meets a likeness below `redundant`."""
    return _left_at(_to_the_last(frames), redundant)


def _to_the_last(frames: Prunable) -> list[Removal]:
    return prune(frames.embeddings, frames.has_people, keep=1, text_weight=frames.text_weight)


def _left_at(removals: Sequence[Removal], redundant: float) -> int:
    return len(removals) + 1 - sum(1 for _ in takewhile(lambda removal: removal.score >= redundant, removals))


def _reason(scene: range | None, gap_s: tuple[float, float], clocks: Sequence[str], *, is_own: bool) -> str:
    if scene is None and gap_s != NO_GAP:
        return f"kept: nothing else shows the changes from {timecode(gap_s[0])} to {timecode(gap_s[1])}"
    if scene is None or len(scene) == 1:
        return OWN_PICTURE if is_own else "kept: unlike those beside it"
    return f"kept: stands for the scene from {clocks[scene[0]]} to {clocks[scene[-1]]}"


def _drop(removal: Removal, clocks: Sequence[str]) -> PrunedFrame:
    times = " and ".join([clocks[row] for row in removal.neighbours])
    reason = f"dropped in round {removal.step} of pruning: likeness {removal.score:.3f} to its neighbours at {times}"
    return PrunedFrame(removal.index, removal.step, removal.score, removal.neighbours, reason)


@dataclass(frozen=True, slots=True)
class Removal:
    """One round of Algorithm 1. Indices are rows of the embeddings."""

    step: int
    """From 1."""
    index: int
    score: float
    """Mean of the image and text cosine to the neighbours."""
    neighbours: tuple[int, ...]


def prune(
    embeddings: Embeddings, has_people: Sequence[bool], *, keep: int, held: Sequence[bool] | None = None, text_weight: float = TEXT_WEIGHT
) -> list[Removal]:
    """Return the frames to drop so that `keep` remain, in the order in which Algorithm 1 drops them.

    O(n log n): a removal changes the scores of its two neighbours only, so a heap holds the scores and outdated
    entries are skipped.

    Args:
        embeddings: rows in time order.
        has_people: one flag a row.
        keep: the f of Algorithm 1, at least 1.
        held: frames that are dropped last; none by default, as in the paper.
        text_weight: share of the text cosine in the score.
    """
    count = len(embeddings)
    held = [False] * count if held is None else held
    if len(has_people) != count or len(held) != count or keep < 1:
        raise ValueError(f"{count} vectors, {len(has_people)} and {len(held)} flags, keep={keep}")
    chain = _Chain(embeddings, has_people, held, text_weight)
    removals: list[Removal] = []
    while count - len(removals) > keep:
        removals.append(chain.remove_most_alike(step=len(removals) + 1))
    return removals


def cosine(embeddings: Embeddings, a: int, b: int, text_weight: float) -> float:
    """Return the weighted mean of the image and the text cosine of two rows."""
    image = float(embeddings.image[a] @ embeddings.image[b])
    text = float(embeddings.text[a] @ embeddings.text[b])
    return (1 - text_weight) * image + text_weight * text


def _links(embeddings: Embeddings, text_weight: float) -> list[float]:
    """Return `cosine` of each row and the next, to the last bit: a product of stacks of single rows is the same dot product, row by row."""

    def of(vectors: Vectors) -> npt.NDArray[np.float64]:
        return np.asarray(np.matmul(vectors[:-1, None, :], vectors[1:, :, None])[:, 0, 0], np.float64)

    links: list[float] = ((1 - text_weight) * of(embeddings.image) + text_weight * of(embeddings.text)).tolist()
    return links


class _Chain:
    """The frames that remain, linked in time, with their scores in heaps: free to go, kept by the people rule, held."""

    def __init__(self, embeddings: Embeddings, has_people: Sequence[bool], held: Sequence[bool], text_weight: float) -> None:
        count = len(embeddings)
        self.embeddings, self.has_people, self.held, self.text_weight = embeddings, has_people, held, text_weight
        self.before = list(range(-1, count - 1))
        self.after = [*range(1, count), -1]
        self.version = [0] * count
        self.link = _links(embeddings, text_weight)  # to the next remaining frame
        self.heaps: tuple[list[tuple[float, int, int]], ...] = ([], [], [])
        for j in range(count):
            self.heaps[self._rank(j)].append((-self._score(j), j, 0))
        for heap in self.heaps:
            heapq.heapify(heap)

    def neighbours(self, j: int) -> tuple[int, ...]:
        before, after = self.before[j], self.after[j]
        if before >= 0 and after >= 0:
            return before, after
        return (before,) if before >= 0 else (after,) if after >= 0 else ()

    def _score(self, j: int) -> float:
        before, after = self.before[j], self.after[j]
        if before >= 0 and after >= 0:
            return (self.link[before] + self.link[j]) / 2
        return self.link[before] if before >= 0 else self.link[j] if after >= 0 else 0.0

    def _rank(self, j: int) -> int:
        if self.held[j]:
            return HELD
        if not self.has_people[j]:
            return FREE
        before, after = self.before[j], self.after[j]
        return FREE if (before >= 0 and self.has_people[before]) or (after >= 0 and self.has_people[after]) else PEOPLE

    def _push(self, j: int) -> None:
        heapq.heappush(self.heaps[self._rank(j)], (-self._score(j), j, self.version[j]))

    def _pop(self, heap: list[tuple[float, int, int]]) -> tuple[float, int] | None:
        while heap:
            score, j, version = heapq.heappop(heap)
            if version == self.version[j]:
                return -score, j
        return None

    def remove_most_alike(self, *, step: int) -> Removal:
        score, j = next(best for heap in self.heaps if (best := self._pop(heap)))
        neighbours = self.neighbours(j)
        before, after = self.before[j], self.after[j]
        self.version[j] = -1
        if before >= 0:
            self.after[before] = after
        if after >= 0:
            self.before[after] = before
        if before >= 0 and after >= 0:
            self.link[before] = cosine(self.embeddings, before, after, self.text_weight)
        for k in neighbours:
            self.version[k] += 1
            self._push(k)
        return Removal(step, j, score, neighbours)
