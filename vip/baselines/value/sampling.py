"""Which task each step trains, and which of its examples are in each batch (C data/loader.py, MetaLoader; P, appendix D.4).

Before each step a task is drawn, with a probability in proportion to its ratio; all batches of a step are its own. Its examples come in an
order that is drawn anew for each pass over them. What step n trains follows from the seed and n: a training that was stopped and goes on
trains what one that was not would have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import torch


@dataclass(frozen=True, slots=True)
class Drawn:
    """A batch: the task, and the places of its examples."""

    task: str
    places: tuple[int, ...]


class BatchPlan:
    """The batches of a training.

    Args:
        units: of each task, groups of places that stay together: single examples, or those of one video.
        ratios, batches: of each task; a batch counts groups.
        accumulate: batches a step.
        rank, world: the number of this device, and how many there are; each has groups of its own.
    """

    def __init__(
        self,
        units: Mapping[str, Sequence[Sequence[int]]],
        ratios: Mapping[str, int],
        batches: Mapping[str, int],
        *,
        accumulate: int = 1,
        seed: int = 77,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        # fewer groups than devices: all have all
        self._units = {task: groups[rank::world] if len(groups) >= world else groups for task, groups in units.items()}
        self._ratios, self._batches, self._accumulate = dict(ratios), dict(batches), accumulate
        self._seed, self._rank = seed, rank
        self._orders: dict[str, tuple[int, list[int]]] = {}

    def tasks_of(self, first: int, count: int) -> list[str]:
        """Return the tasks of the steps from number `first` on; they are the same on all devices."""
        tasks = list(self._units)
        weights = torch.tensor([self._ratios[task] for task in tasks], dtype=torch.float64)
        bounds = (weights.cumsum(0) / weights.sum()).tolist()
        drawn = (self._uniform(step) for step in range(first, first + count))
        return [next(task for task, bound in zip(tasks, bounds, strict=True) if value < bound) for value in drawn]

    def batches_of(self, first: int, count: int) -> Iterator[Drawn]:
        """Yield the batches of the steps from number `first` on."""
        done = Counter(self.tasks_of(0, first))
        places = {task: done[task] * self._accumulate for task in self._units}
        for task in self.tasks_of(first, count):
            for _ in range(self._accumulate):
                yield Drawn(task, self._batch(task, places[task]))
                places[task] += 1

    def _batch(self, task: str, number: int) -> tuple[int, ...]:
        groups, size = self._units[task], self._batches[task]
        a_pass = -(-len(groups) // size)
        turn, place = divmod(number, a_pass)
        if self._orders.get(task, (-1, []))[0] != turn:
            generator = torch.Generator().manual_seed(self._number(task, turn, self._rank))
            self._orders[task] = turn, torch.randperm(len(groups), generator=generator).tolist()
        order = self._orders[task][1]
        return tuple(one for row in order[place * size : (place + 1) * size] for one in groups[row])

    def _uniform(self, step: int) -> float:
        return self._number("task of a step", step) / 2**63

    def _number(self, *parts: object) -> int:
        digest = blake2b(repr((self._seed, *parts)).encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") % 2**63


def groups_by_video(videos: Sequence[str]) -> list[list[int]]:
    """Return the places of each video's examples, videos in the order in which they first come."""
    groups: dict[str, list[int]] = {}
    for place, video in enumerate(videos):
        groups.setdefault(video, []).append(place)
    return list(groups.values())
