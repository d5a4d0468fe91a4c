"""How well shot boundaries are found: precision, recall and F1 of transitions matched one to one with those of people.

All frames are counted from 0 in the order in which they are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

TOLERANCE_FRAMES = 2  # of TransNetV2, AutoShot and those whom they compare with
SHORT_GRADUAL_FRAMES = 5  # TRECVID takes a gradual transition of at most this length for a cut


@dataclass(frozen=True, order=True)
class Transition:
    """The change from one shot to the next."""

    last: int
    """Last frame of the shot before."""
    first: int
    """First frame of the shot behind."""

    def __post_init__(self) -> None:
        if not 0 <= self.last < self.first:
            raise ValueError(f"A transition leads from a frame to a later one, not from {self.last} to {self.first}.")

    @property
    def length(self) -> int:
        """Frames that belong to neither shot: 0 at a cut."""
        return self.first - self.last - 1

    @property
    def is_gradual(self) -> bool:
        return self.length > SHORT_GRADUAL_FRAMES


@dataclass(frozen=True)
class Counts:
    """Transitions found and not found; the shares are None where there is nothing to divide by."""

    hits: int = 0
    false_alarms: int = 0
    """Predicted, but matched with no true one."""
    missed: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.hits + other.hits, self.false_alarms + other.false_alarms, self.missed + other.missed)

    @property
    def precision(self) -> float | None:
        """hits / (hits + false alarms)"""
        return _share(self.hits, self.hits + self.false_alarms)

    @property
    def recall(self) -> float | None:
        """hits / (hits + missed)"""
        return _share(self.hits, self.hits + self.missed)

    @property
    def f1(self) -> float | None:
        """2 PR / (P + R) = 2 hits / (2 hits + false alarms + missed)"""
        return _share(2 * self.hits, 2 * self.hits + self.false_alarms + self.missed)


def match(truth: Sequence[Transition], predicted: Sequence[Transition], tolerance: int) -> Counts:
    """Match transitions one to one where their windows meet, from the earliest on.

    The window of a transition is [last + (1 - tolerance) / 2, first - (1 - tolerance) / 2]. Two cuts meet where they are at most
    `tolerance` frames apart. A cut meets a gradual transition that it lies in, or lies at most `tolerance` frames beside.
    With tolerance 0 cuts must agree exactly.

    Source: `evaluate_scenes` of TransNetV2 (arXiv:2008.04838, github.com/soCzech/TransNetV2), which took it from the evaluation of
    RAI and BBC by Baraldi et al.; the published F1 of TransNetV2 and AutoShot are of this matching, with tolerance 2.

    Args:
        truth: in time order, as `predicted`.
    """
    hits = i = j = 0
    while i < len(truth) and j < len(predicted):
        true, found = (_window(transition, tolerance) for transition in (truth[i], predicted[j]))
        if found[1] < true[0]:
            j += 1
        elif found[0] > true[1]:
            i += 1
        else:
            hits, i, j = hits + 1, i + 1, j + 1
    return _counts(hits, truth, predicted)


def _window(transition: Transition, tolerance: int) -> tuple[int, int]:
    """Return the window in halves of frames."""
    return 2 * transition.last + 1 - tolerance, 2 * transition.first - 1 + tolerance


def match_by_overlap(truth: Sequence[Transition], predicted: Sequence[Transition]) -> Counts:
    """Match gradual transitions one to one, each true one with the predicted one that shares most of its frames.

    One shared frame is enough. From the earliest true transition to the latest: of the predicted ones that are still free, the one
    with the largest overlap; of equal ones that with the highest frame precision (overlap / its length); of equal ones the earliest.

    Source: NIST, "Shot Boundary (SB) Measures", TREC-2002 video track (www-nlpir.nist.gov/projects/t2002v/sbmeasures.html).
    """
    free = sorted(predicted)
    hits = 0
    for true in sorted(truth):
        overlaps = [_overlap(true, found) for found in free]
        best = max(range(len(free)), key=lambda i: (overlaps[i], overlaps[i] / max(1, free[i].length), -i), default=None)
        if best is not None and overlaps[best] > 0:
            del free[best]
            hits += 1
    return _counts(hits, truth, predicted)


def _overlap(one: Transition, other: Transition) -> int:
    """Return how many frames lie in both transitions."""
    return max(0, min(one.first, other.first) - max(one.last, other.last) - 1)


def measures(tolerance: int = TOLERANCE_FRAMES) -> dict[str, Callable[[Sequence[Transition], Sequence[Transition]], Counts]]:
    """Return what is measured, by the name in the table.

    `all` takes every transition for one kind, so that a detector that knows only cuts finds a dissolve by a cut inside it. The other
    rows are TRECVID's: cuts match only cuts and gradual transitions only gradual ones, by people as by a detector, and a transition
    of up to 5 frames counts as a cut. `exact` is tolerance 0.
    """
    return {
        f"all, ±{tolerance} frames": lambda truth, predicted: match(truth, predicted, tolerance),
        "all, exact": lambda truth, predicted: match(truth, predicted, 0),
        f"cuts, ±{tolerance} frames": lambda truth, predicted: match(_cuts(truth), _cuts(predicted), tolerance),
        "cuts, exact": lambda truth, predicted: match(_cuts(truth), _cuts(predicted), 0),
        "gradual, by overlap": lambda truth, predicted: match_by_overlap(_gradual(truth), _gradual(predicted)),
    }


def _cuts(transitions: Sequence[Transition]) -> list[Transition]:
    return [transition for transition in transitions if not transition.is_gradual]


def _gradual(transitions: Sequence[Transition]) -> list[Transition]:
    return [transition for transition in transitions if transition.is_gradual]


def _counts(hits: int, truth: Sequence[Transition], predicted: Sequence[Transition]) -> Counts:
    return Counts(hits, len(predicted) - hits, len(truth) - hits)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
