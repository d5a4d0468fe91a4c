"""Algorithm 1 (section 3.1): drop, one at a time, the frame that is most like its neighbours in time.

    while more than f remain:
        score[j] = mean(cos_text(j, neighbours), cos_image(j, neighbours))
        remove argmax(score)

A frame with people may go only if a neighbour shows people too ("an additional check only to prune keyframes containing
people if either of the surrounding frames also includes people"). End frames have one neighbour. When that rule leaves
nothing to drop while more than f remain, it is lifted for the step. Of equal scores the earliest frame goes.

Ours: frames that are held (each stands for a scene, `vip.extraction.scenes`) go only when no other is left at all.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from vip.records import Embeddings

FREE, PEOPLE, HELD = range(3)  # in this order frames go


@dataclass(frozen=True, slots=True)
class Removal:
    """One round of Algorithm 1. Indices are rows of the embeddings."""

    step: int
    """From 1."""
    index: int
    score: float
    """Mean of the image and text cosine to the neighbours."""
    neighbours: tuple[int, ...]
    lifted_people_rule: bool = False


def prune(
    embeddings: Embeddings, has_people: Sequence[bool], *, keep: int, held: Sequence[bool] | None = None, text_weight: float = 0.5
) -> list[Removal]:
    """The frames to drop so that `keep` remain, in the order in which Algorithm 1 drops them.

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
    """Weighted mean of the image and the text cosine of two rows."""
    image = float(embeddings.image[a] @ embeddings.image[b])
    text = float(embeddings.text[a] @ embeddings.text[b])
    return (1 - text_weight) * image + text_weight * text


class _Chain:
    """The frames that remain, linked in time, with their scores in heaps: free to go, kept by the people rule, held."""

    def __init__(self, embeddings: Embeddings, has_people: Sequence[bool], held: Sequence[bool], text_weight: float) -> None:
        count = len(embeddings)
        self.embeddings, self.has_people, self.held, self.text_weight = embeddings, has_people, held, text_weight
        self.before = list(range(-1, count - 1))
        self.after = [*range(1, count), -1]
        self.version = [0] * count
        self.link = [cosine(embeddings, j, j + 1, text_weight) for j in range(count - 1)]  # to the next remaining frame
        self.heaps: tuple[list[tuple[float, int, int]], ...] = ([], [], [])
        for j in range(count):
            self._push(j)

    def neighbours(self, j: int) -> tuple[int, ...]:
        return tuple(k for k in (self.before[j], self.after[j]) if k >= 0)

    def _score(self, j: int) -> float:
        links = [self.link[k] for k in (self.before[j], j) if k >= 0 and self.after[k] >= 0]
        return sum(links) / len(links) if links else 0.0

    def _push(self, j: int) -> None:
        only_people = self.has_people[j] and not any(self.has_people[k] for k in self.neighbours(j))
        heapq.heappush(self.heaps[HELD if self.held[j] else PEOPLE if only_people else FREE], (-self._score(j), j, self.version[j]))

    def _pop(self, heap: list[tuple[float, int, int]]) -> tuple[float, int] | None:
        while heap:
            score, j, version = heapq.heappop(heap)
            if version == self.version[j]:
                return -score, j
        return None

    def remove_most_alike(self, *, step: int) -> Removal:
        rank, (score, j) = next((rank, best) for rank, heap in enumerate(self.heaps) if (best := self._pop(heap)))
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
        return Removal(step, j, score, neighbours, lifted_people_rule=rank == PEOPLE)
