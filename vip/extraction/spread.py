"""Spread: no stretch in which the picture changes stays much longer without a keyframe than its share.

The division into scenes spends no keyframe on a long shot in which little moves, and several on a short one in which much does. Where the
gap between two keyframes is longer than two and a half times the mean and the picture changes in it, a frame of its middle takes the
place of the keyframe that is most like its neighbours, if that one is nearly redundant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from vip.protocols import Prunable

LONGEST_GAP = 2.5  # times the mean
CHANGED_LEVELS = 24  # of 255, in the cell of the signature that differs most: more than flicker and noise change there
SAME = 0.993  # likeness of two frames from which on a person takes them for the same picture, though something small moves
SOFT_SHARE = 0.25  # of the sharpest frame in the gap
NO_GAP = (0.0, 0.0)
NEARLY_REDUNDANT = 0.06  # below the cosine from which on two frames show the same


def spread(frames: Prunable, kept: Iterable[int], *, redundant: float) -> dict[int, tuple[float, float]]:
    """Return the rows to keep, as many as before; with those that joined, the gap that they fill, in seconds.

    Args:
        kept: rows of the frames.
        redundant: the likeness from which on two frames show the same.
    """
    rows = sorted(kept)
    if frames.signatures is None or not rows:
        return dict.fromkeys(rows, NO_GAP)
    longest_s = LONGEST_GAP * (frames.times_s[-1] - frames.times_s[0]) / len(rows)
    filled: dict[int, tuple[float, float]] = {}
    for _ in range(len(rows)):
        found = _frame_for_longest_gap(frames, rows, longest_s)
        spare = _spare(frames, rows, longest_s, least_likeness=redundant - NEARLY_REDUNDANT)
        if found is None or spare is None or spare in filled:
            break
        row, gap_s = found
        filled[row] = gap_s
        rows = sorted({*rows, row} - {spare})
    return {row: filled.get(row, NO_GAP) for row in rows}


def _frame_for_longest_gap(frames: Prunable, rows: Sequence[int], longest_s: float) -> tuple[int, tuple[float, float]] | None:
    """Return a frame of the longest gap that is too long and in which the picture changes, and the gap; None where there is none."""
    times = frames.times_s
    edges = pairwise([-1, *rows, len(frames)])
    gaps = [(times[max(a, 0)], times[min(b, len(frames) - 1)], a, b) for a, b in edges]
    for start_s, end_s, a, b in sorted(gaps, key=lambda gap: gap[0] - gap[1]):
        if end_s - start_s <= longest_s:
            return None
        beside = [row for row in (a, b) if 0 <= row < len(frames)]
        changed = [row for row in range(a + 1, b) if all(_changed(frames, row, other) for other in beside)]
        if changed:
            sharpest = max(frames.sharpness[row] for row in changed)
            sharp = [row for row in changed if frames.sharpness[row] >= SOFT_SHARE * sharpest]
            middle_s = (start_s + end_s) / 2
            return min(sharp, key=lambda row: (frames.in_transition[row], abs(times[row] - middle_s))), (start_s, end_s)
    return None


def _spare(frames: Prunable, rows: Sequence[int], longest_s: float, *, least_likeness: float) -> int | None:
    """Return the keyframe most like its neighbours that leaves no gap too long; None where all are too unlike."""
    spare, best = None, least_likeness
    for before, row, after in zip(rows, rows[1:], rows[2:], strict=False):
        likeness = max(frames.picture_cosine(row, before), frames.picture_cosine(row, after))
        if frames.times_s[after] - frames.times_s[before] <= longest_s and likeness >= best:
            spare, best = row, likeness
    return spare


def _changed(frames: Prunable, a: int, b: int) -> bool:
    """Return whether something changed that a person sees, and not just something small."""
    assert frames.signatures is not None, "spread has looked"
    levels = int(np.abs(frames.signatures[a].astype(np.int16) - frames.signatures[b]).max())
    return levels >= CHANGED_LEVELS and frames.picture_cosine(a, b) < SAME
