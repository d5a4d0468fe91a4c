"""Boundaries of scenes: each scene is shown before any is shown twice.

Algorithm 1 compares a frame with its two neighbours only. A single frame of a scene that looks a little like both its
neighbours then goes before the second of two frames of one scene, and short scenes are lost to long ones. So the
candidates are first divided into as many scenes as keyframes are wanted: the division whose scenes are most alike inside
(kernel temporal segmentation, Potapov et al., ECCV 2014, section 3.3), with each candidate weighted by the square root of
the time that it stands for, and sharpness, tones and black bars as parts of the likeness. Algorithm 1 then drops the frame that stands
for a scene last (`prune`, `held`).

    J = sum over scenes of ( sum_i w_i  -  sum_ij w_i w_j cos(i, j) / sum_i w_i )   is the least possible

Figures: docs/decisions/0006-scenes.md.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from vip.extraction.black_bars import bars_of
from vip.extraction.tones import tones_of
from vip.protocols import Prunable
from vip.records import Vectors

MOST_ATOMS = 300  # the division is exact up to here; of more candidates the most alike neighbours are joined first
MOST_JOINED = 5_000  # and of more than that, runs of equal length
SHARPNESS_SHARE = 0.08  # of 20 mixes 0.934 of the segments are shown with it, 0.923 without
TONES_SHARE = 0.15  # of 44 mixes 0.951 of the segments are shown with it, 0.932 without
BARS_SHARE = 0.15  # of 30 mixes 0.939 of the segments are shown with it, 0.935 without
SHARP_SHARE = 0.25  # of the sharpest frame of the scene
NEARLY_AS_TYPICAL = 0.03  # of the mean cosine to the scene: among such frames the sharpest stands for it

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]


def scenes(vectors: Vectors, times_s: Sequence[float], count: int) -> list[range]:
    """Return the rows of each scene, in order: `count` scenes, or one a row where there are no more rows.

    Args:
        vectors: float32 (N, D), rows of length 1, in time order.
        times_s: of the N rows, in seconds.
        count: how many scenes, at least 1.
    """
    if count < 1 or len(vectors) != len(times_s):
        raise ValueError(f"{len(vectors)} vectors, {len(times_s)} times, {count} scenes")
    if count >= len(vectors):
        return [range(row, row + 1) for row in range(len(vectors))]
    starts = np.arange(0, len(vectors), -(-len(vectors) // max(MOST_JOINED, 2 * count)))
    for merge, most in ((_joined, max(MOST_ATOMS, count)), (_best_division, count)):
        if len(starts) > most:
            starts = starts[merge(*_sums(vectors, _weights(times_s), starts), most)]
    return [range(a, b) for a, b in zip(starts.tolist(), [*starts[1:].tolist(), len(vectors)], strict=True)]


def representatives(frames: Prunable, count: int) -> dict[int, range]:
    """Return the rows that stand for a scene, and the rows of their scenes: `count` of them, or all where there are no more.

    The frame that is most like the whole scene stands for it, or the sharpest of those nearly as like; a calm one, and
    in a scene with people one with people (section 3.1: "people tend to be the primary subject of these videos").
    """
    weights, vectors = _weights(frames.times_s), frames.embeddings.image
    found = {}
    for scene in _divided(frames, count):
        rows = slice(scene.start, scene.stop)
        alike = np.asarray(vectors[rows] @ (weights[rows].astype(np.float32) @ vectors[rows]), np.float64) / weights[rows].sum()
        alike[~_preferred(frames, rows)] = -np.inf
        near = np.flatnonzero(alike >= alike.max() - NEARLY_AS_TYPICAL)
        found[scene[int(near[np.argmax(np.asarray(frames.sharpness[rows])[near])])]] = scene
    return found


def _divided(frames: Prunable, count: int) -> list[range]:
    """Return the rows of each scene; there is nothing to divide for a single one."""
    if count == 1:
        return [range(len(frames))]
    return scenes(with_source(frames.embeddings.image, frames.sharpness, frames.signatures), frames.times_s, count)


def with_source(vectors: Vectors, sharpness: Sequence[float], signatures: npt.NDArray[np.uint8] | None) -> Vectors:
    """Return vectors whose cosine is mostly that of these, and to a part how alike sharpness, tones and black bars are.

    Shots of one source are about as sharp, and have about the same tones and the same bars. Where all bars are the same, they have no part.

    Returns:
        float32 (N, D + K), rows of length 1.
    """
    parts = [(SHARPNESS_SHARE, _bins(np.log1p(np.asarray(sharpness, np.float64))))]
    if signatures is not None:
        parts.append((TONES_SHARE, np.concatenate([_bins(tone) for tone in tones_of(signatures).T], axis=1) / 3**0.5))
        bars = bars_of(signatures)
        if (bars != bars[:1]).any():
            parts.append((BARS_SHARE, np.concatenate([np.eye(size.max() + 1)[size] for size in bars.T], axis=1) / 2**0.5))
    left = 1 - sum(share for share, _ in parts)
    return np.concatenate([left**0.5 * vectors, *((share**0.5 * part).astype(np.float32) for share, part in parts)], axis=1)


def _bins(places: Numbers) -> Numbers:
    """Return each number as its shares of the two whole numbers beside it: (N, K), rows of length 1."""
    lower = places.astype(np.intp)
    bins = np.zeros((len(places), int(lower.max(initial=0)) + 2))
    rows = np.arange(len(places))
    bins[rows, lower], bins[rows, lower + 1] = np.sqrt(1 - places + lower), np.sqrt(places - lower)
    return bins


def _preferred(frames: Prunable, rows: slice) -> npt.NDArray[np.bool_]:
    """Return which frames are sharp for the scene and calm with people, else with people, else calm, else just sharp."""
    people, calm = np.array(frames.has_people[rows], bool), ~np.array(frames.in_transition[rows], bool)
    sharpness = np.asarray(frames.sharpness[rows])
    sharp = sharpness >= SHARP_SHARE * sharpness.max()
    return next((flags for flags in (sharp & people & calm, sharp & people, sharp & calm) if flags.any()), sharp)


def _weights(times_s: Sequence[float]) -> Numbers:
    """Return the square root of the seconds around each row: half of the gap on either side, and at the ends twice that of the one gap."""
    gaps = np.diff(np.asarray(times_s, np.float64)) if len(times_s) > 1 else np.ones(1)
    spans = (np.concatenate([gaps[:1], gaps]) + np.concatenate([gaps, gaps[-1:]]))[: len(times_s)] / 2
    return np.asarray(np.sqrt(np.maximum(spans, 1e-3)), np.float64)


def _sums(vectors: Vectors, weights: Numbers, starts: Places) -> tuple[Vectors, Numbers]:
    """Return for each run of rows the weighted sum of its vectors, float32 (M, D), and the sum of its weights, float64 (M,)."""
    runs = pairwise([*starts.tolist(), len(vectors)])
    sums = np.stack([weights[a:b].astype(np.float32) @ vectors[a:b] for a, b in runs])
    return np.asarray(sums, np.float32), np.add.reduceat(weights, starts)


def _joined(sums: Vectors, mass: Numbers, most: int) -> Places:
    """Return the runs that begin one of at most `most` longer runs: the neighbours that cost least are joined, one at a time (Ward)."""
    count = len(sums)
    before, after = list(range(-1, count - 1)), [*range(1, count), -1]
    version, alive = [0] * count, [True] * count

    def cost(a: int, b: int) -> float:
        apart = sums[a] / mass[a] - sums[b] / mass[b]
        return float(mass[a] * mass[b] / (mass[a] + mass[b]) * (apart @ apart))

    def push(a: int, b: int) -> None:
        heapq.heappush(heap, (cost(a, b), a, version[a], version[b]))

    heap = [(cost(row, row + 1), row, 0, 0) for row in range(count - 1)]
    heapq.heapify(heap)
    left = count
    while left > most:
        _, a, version_a, version_b = heapq.heappop(heap)
        b = after[a]
        if not alive[a] or b < 0 or (version_a, version_b) != (version[a], version[b]):
            continue
        sums[a] += sums[b]
        mass[a] += mass[b]
        version[a] += 1
        alive[b] = False
        left -= 1
        after[a] = after[b]
        if after[b] >= 0:
            before[after[b]] = a
            push(a, after[a])
        if before[a] >= 0:
            push(before[a], a)
    return np.flatnonzero(alive)


def _best_division(sums: Vectors, mass: Numbers, count: int) -> Places:
    """Return numbers of the runs with which the `count` scenes of the best division begin, by dynamic programming: O(count · M²)."""
    runs = len(sums)
    products = np.zeros((runs + 1, runs + 1))
    products[1:, 1:] = (sums @ sums.T).astype(np.float64).cumsum(0).cumsum(1)
    total = np.concatenate([[0.0], mass.cumsum()])
    diagonal = np.diag(products)
    inside = diagonal[None, :] - products - products.T + diagonal[:, None]  # [a, b]: sum of the products of the runs a … b - 1
    length = total[None, :] - total[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.where(length > 0, length - inside / length, np.inf).T.copy()  # by where runs end: the least of a row is found sooner
    best = np.full(runs + 1, np.inf)
    best[0] = 0.0
    came_from = np.zeros((count + 1, runs + 1), np.int32)
    for scene in range(1, count + 1):
        tried = loss + best
        came_from[scene] = tried.argmin(axis=1)
        best = tried.min(axis=1)
    ends = [runs]
    for scene in range(count, 0, -1):
        ends.append(int(came_from[scene, ends[-1]]))
    return np.array(ends[:0:-1], np.intp)
