"""Where in a long video to look for a question: a few frames of every clip, then more of the clips that promise most.

In the manner of FOCUS (arXiv 2510.27280): clips are the arms of a bandit, a look at one frame is a pull, its reward is the relevance of
the frame. A clip is worth its mean relevance and a confidence radius by its variance (as in the bound of Bernstein), so that clips that are
uncertain are looked at too. The best frames of what was looked at are chosen, spread over clips.

    coarse: two looks a clip, for at most 60 % of the budget       fine: the clips with the highest upper bounds, a look at a time

Ours: the term 3 b ln(t) / n of the bound is left out, since at two looks a clip it is larger than all differences between clips; the
variance of a clip is drawn towards that of all clips instead. A look costs what has to be decoded for it. Nothing here decodes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, log, sqrt

COARSE_SHARE = 0.6
FIRST_LOOKS = 2  # of each clip
PRIOR_LOOKS = 2  # how many looks the variance of all clips counts for in that of one
AT_ONCE = 8  # looks between two decisions: models embed several pictures at once
MOST_OF_REST = 0.25  # of the budget that is left, for one look
LEAST_GAP_S = 2.0  # between two chosen frames

Relevance = Callable[[Sequence[int]], Mapping[int, float]]
"""Look at some places, and return their relevance; a place that shows nothing is left out."""


@dataclass(frozen=True, slots=True)
class Places:
    """The frames that may be looked at, in time order."""

    times_s: Sequence[float]
    costs: Sequence[int]
    """How many frames have to be decoded for each, itself included."""

    def __post_init__(self) -> None:
        if len(self.times_s) != len(self.costs):
            raise ValueError(f"expected a cost for each of {len(self.times_s)} times, got {len(self.costs)}")


@dataclass(slots=True)
class ClipSearch:
    """A search through the clips of one video."""

    places: Places
    budget: int
    """Frames that may be decoded."""
    relevance: dict[int, float] = field(default_factory=dict)
    """Of each place that was looked at and shows something."""
    spent: int = 0
    looked: set[int] = field(default_factory=set)
    _starts: list[int] = field(default_factory=list)
    """The first place of each clip."""

    def run(self, look: Relevance) -> None:
        """Look at as many frames as the budget allows."""
        coarse = self._coarse()
        self._starts = [0, *((coarse[place - 1] + coarse[place] + 1) // 2 for place in range(FIRST_LOOKS, len(coarse) - 1, FIRST_LOOKS))]
        for start in range(0, len(coarse), AT_ONCE):
            self._look(coarse[start : start + AT_ONCE], look)
        while some := self._fine():
            self._look(some, look)

    @property
    def clips(self) -> int:
        return len(self._starts)

    def clip_of(self, place: int) -> int:
        """Return the number of the clip in which a place lies."""
        return bisect_right(self._starts, place) - 1

    def best(self, count: int) -> list[int]:
        """Return the most relevant places in time order, apart from each other; at most half are in one clip, if there are others."""
        order = sorted(self.relevance, key=lambda place: (-self.relevance[place], place))
        chosen: list[int] = []
        for most, gap_s in ((ceil(count / 2), LEAST_GAP_S), (count, LEAST_GAP_S), (count, 0.0)):
            in_clip = Counter(map(self.clip_of, chosen))
            for place in order:
                clip, times = self.clip_of(place), self.places.times_s
                is_apart = all(abs(times[place] - times[other]) >= gap_s for other in chosen)
                if len(chosen) < count and place not in chosen and in_clip[clip] < most and is_apart:
                    chosen.append(place)
                    in_clip[clip] += 1
        return sorted(chosen)

    def _look(self, some: Sequence[int], look: Relevance) -> None:
        self.looked.update(some)
        self.spent += sum(self.places.costs[place] for place in some)
        self.relevance.update(look(sorted(some)))

    def _coarse(self) -> list[int]:
        """Return the first looks: places that cost least, at even distances."""
        least = min(self.places.costs)
        cheap = [place for place, cost in enumerate(self.places.costs) if cost == least]
        count = min(len(cheap), max(1, int(self.budget * COARSE_SHARE) // least))
        return [cheap[(2 * number + 1) * len(cheap) // (2 * count)] for number in range(count)]

    def _fine(self) -> list[int]:
        """Return the next looks: one in each of the clips with the highest upper bounds; none where the budget is spent."""
        found: list[int] = []
        left = self.budget - self.spent
        bounds = self._upper_bounds()
        for clip in sorted(bounds, key=lambda clip: (-bounds[clip], clip)):
            place = self._next_in(clip, max(1, int(left * MOST_OF_REST)))
            if place is not None and self.places.costs[place] <= left:
                found.append(place)
                left -= self.places.costs[place]
            if len(found) == AT_ONCE or not left:
                break
        return found

    def _upper_bounds(self) -> dict[int, float]:
        values: dict[int, list[float]] = {clip: [] for clip in range(self.clips)}
        for place, value in self.relevance.items():
            values[self.clip_of(place)].append(value)
        every = list(self.relevance.values()) or [0.0]
        mean = sum(every) / len(every)
        variance = sum((value - mean) ** 2 for value in every) / len(every)
        return {clip: _upper_bound(some, mean, variance, len(self.looked)) for clip, some in values.items()}

    def _next_in(self, clip: int, most: int) -> int | None:
        """Return the place of a clip that is farthest from all that were looked at, for at most this cost; None where there is none."""
        end = self._starts[clip + 1] if clip + 1 < self.clips else len(self.places.times_s)
        seen = [self.places.times_s[place] for place in range(self._starts[clip], end) if place in self.looked]
        free = [place for place in range(self._starts[clip], end) if place not in self.looked and self.places.costs[place] <= most]
        times = self.places.times_s
        return max(free, key=lambda place: (min((abs(times[place] - one) for one in seen), default=0.0), -place), default=None)


def _upper_bound(values: Sequence[float], mean: float, variance: float, looks: int) -> float:
    """Return the mean of a clip and its confidence radius; a clip that shows nothing has that of all clips."""
    count = len(values)
    own = sum(values) / count if count else mean
    spread = (sum((value - own) ** 2 for value in values) + PRIOR_LOOKS * variance) / (count + PRIOR_LOOKS)
    return own + sqrt(2 * spread * log(max(2, looks)) / max(1, count))
