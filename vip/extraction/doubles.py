"""Doubles: no two keyframes in a row show nearly the same while a frame elsewhere is like neither of those beside it.

The division into scenes may give two keyframes to one view that changes slowly. Where a frame differs from the keyframes on both sides
of it far more than two others in a row differ, one of these gives way to it.
"""

from __future__ import annotations

from bisect import bisect, insort
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from vip.protocols import Prunable
from vip.ranks import median

LEAST_LIKENESS = 0.8  # keyframes that are less alike both stay
TIMES_AS_UNLIKE = 1.75  # as the two are: a frame for which one of them goes
NOTHING_NEW = 0.97  # a frame that is more like a keyframe beside it takes nobody's place
SOFT_SHARE = 0.5  # of the usual sharpness


def replace_doubles(frames: Prunable, kept: Iterable[int]) -> list[int]:
    """Return the rows to keep, in order and as many as before.

    Args:
        kept: rows of the frames.
    """
    rows = sorted(kept)
    may_join = ~np.array(frames.in_transition, bool) & (np.asarray(frames.sharpness) >= SOFT_SHARE * median(list(frames.sharpness)))
    beside = np.full(len(frames), np.inf)  # how alike each other frame is to the more alike of the keyframes beside it
    for a, b in pairwise([-1, *rows, len(frames)] if rows else []):
        _measure(frames, beside, a, b)
    joined: set[int] = set()
    for _ in rows[1:]:
        likeness, place = max((frames.picture_cosine(a, b), -place) for place, (a, b) in enumerate(pairwise(rows)))
        spare, other = _spare(frames, rows, -place), int(np.where(may_join, beside, np.inf).argmin())
        if likeness < LEAST_LIKENESS or beside[other] > min(NOTHING_NEW, 1 - TIMES_AS_UNLIKE * (1 - likeness)):
            break
        parts_people = frames.has_people[spare] and rows[-place] < other < rows[-place + 1]
        if spare in joined or parts_people or not may_join[other]:
            break
        rows.remove(spare)
        insort(rows, other)
        joined.add(other)
        beside[other] = np.inf
        for row in (spare, other):
            at = bisect(rows, row)
            for a, b in pairwise([-1, *rows, len(frames)][max(0, at - 1) : at + 2]):
                _measure(frames, beside, a, b)
    return rows


def _measure(frames: Prunable, beside: npt.NDArray[np.float64], a: int, b: int) -> None:
    """Note how alike each frame between two keyframes, or an end, is to the more alike of them."""
    vectors, between = frames.embeddings.image, slice(a + 1, b)
    beside[between] = np.max([vectors[between] @ vectors[row] for row in (a, b) if 0 <= row < len(frames)], axis=0)


def _spare(frames: Prunable, rows: Sequence[int], place: int) -> int:
    """Return which of two keyframes in a row goes: the one without people, or else the one more like its other neighbour."""
    a, b = rows[place : place + 2]
    if frames.has_people[a] != frames.has_people[b]:
        return a if frames.has_people[b] else b
    before = frames.picture_cosine(rows[place - 1], a) if place > 0 else -1.0
    after = frames.picture_cosine(b, rows[place + 2]) if place + 2 < len(rows) else -1.0
    return a if before > after else b
