"""Where one scene ends and the next begins, so that each is shown before any is shown twice.

Algorithm 1 compares a frame with its two neighbours only. A single frame of a scene that looks a little like both its
neighbours then goes before the second of two frames of one scene, and short scenes are lost to long ones. So the
candidates are first divided into as many scenes as keyframes are wanted: the division whose scenes are most alike inside
(kernel temporal segmentation, Potapov et al., ECCV 2014, section 3.3), with each candidate weighted by the square root of
the time that it stands for. Algorithm 1 then drops the frame that stands for a scene last (`prune`, `held`).

    J = sum over scenes of ( sum_i w_i  -  sum_ij w_i w_j cos(i, j) / sum_i w_i )   is the least possible

Figures: docs/decisions/0006-scenes.md.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from vip.records import Vectors

MOST_ATOMS = 600  # the division is exact up to here; of more candidates the most alike neighbours are joined first
NEARLY_AS_TYPICAL = 0.03  # of the mean cosine to the scene: among such frames the sharpest stands for it

Numbers = npt.NDArray[np.float64]


def scenes(vectors: Vectors, times_s: Sequence[float], count: int) -> list[range]:
    """The rows of each scene, in order: `count` scenes, or one a row where there are no more rows.

    Args:
        vectors: float32 (N, D), rows of length 1, in time order.
        times_s: of the N rows, in seconds.
        count: how many scenes, at least 1.
    """
    if count < 1 or len(vectors) != len(times_s):
        raise ValueError(f"{len(vectors)} vectors, {len(times_s)} times, {count} scenes")
    if count >= len(vectors):
        return [range(row, row + 1) for row in range(len(vectors))]
    weights = _weights(times_s)
    starts = _joined(vectors, weights, max(MOST_ATOMS, count))
    if count < len(starts):
        sums = np.add.reduceat(vectors * weights[:, None], starts, axis=0)
        starts = starts[_best_division(sums, np.add.reduceat(weights, starts), count)]
    return [range(a, b) for a, b in zip(starts.tolist(), [*starts[1:].tolist(), len(vectors)], strict=True)]


def typical(vectors: Vectors, times_s: Sequence[float], sharpness: Sequence[float], preferred: Sequence[bool]) -> int:
    """The row that stands for a scene: of those nearly as like the whole scene as the most like one, the sharpest.

    Args:
        preferred: where some rows are, one of them stands for the scene (frames with people).
    """
    weights = _weights(times_s)
    alike = (vectors @ (vectors * weights[:, None]).sum(axis=0)) / weights.sum()
    allowed = np.asarray(preferred, bool) if any(preferred) else np.ones(len(vectors), bool)
    alike = np.where(allowed, alike, -np.inf)
    near = np.flatnonzero(alike >= alike.max() - NEARLY_AS_TYPICAL)
    return int(near[np.argmax(np.asarray(sharpness, np.float64)[near])])


def _weights(times_s: Sequence[float]) -> Numbers:
    """Square root of the seconds around each row: half of the gap on either side, and at the ends twice that of the one gap."""
    gaps = np.diff(np.asarray(times_s, np.float64)) if len(times_s) > 1 else np.ones(1)
    spans = (np.concatenate([gaps[:1], gaps]) + np.concatenate([gaps, gaps[-1:]]))[: len(times_s)] / 2
    return np.asarray(np.sqrt(np.maximum(spans, 1e-3)), np.float64)


def _joined(vectors: Vectors, weights: Numbers, most: int) -> npt.NDArray[np.int64]:
    """First rows of at most `most` runs of rows, made by joining, one at a time, the neighbours that cost least (Ward)."""
    count = len(vectors)
    sums, mass = vectors * weights[:, None].astype(np.float32), weights.copy()
    before, after = list(range(-1, count - 1)), [*range(1, count), -1]
    version = [0] * count

    def cost(a: int, b: int) -> float:
        apart = sums[a] / mass[a] - sums[b] / mass[b]
        return float(mass[a] * mass[b] / (mass[a] + mass[b]) * (apart @ apart))

    alive = set(range(count))
    heap = [(cost(row, row + 1), row, 0, 0) for row in range(count - 1)] if count > most else []
    heapq.heapify(heap)
    while len(alive) > most:
        _, a, version_a, version_b = heapq.heappop(heap)
        b = after[a]
        if a not in alive or b < 0 or (version_a, version_b) != (version[a], version[b]):
            continue
        sums[a] += sums[b]
        mass[a] += mass[b]
        version[a] += 1
        alive.discard(b)
        after[a] = after[b]
        if after[b] >= 0:
            before[after[b]] = a
            heapq.heappush(heap, (cost(a, after[a]), a, version[a], version[after[a]]))
        if before[a] >= 0:
            heapq.heappush(heap, (cost(before[a], a), before[a], version[before[a]], version[a]))
    return np.array(sorted(alive), np.int64)


def _best_division(sums: npt.NDArray[np.float32], mass: Numbers, count: int) -> npt.NDArray[np.int64]:
    """Numbers of the runs with which the scenes of the best division begin, by dynamic programming.

    Args:
        sums: float32 (M, D), the weighted sum of the vectors of each run; `mass` (M,) the sums of their weights.
    """
    runs = len(sums)
    products = np.zeros((runs + 1, runs + 1))
    products[1:, 1:] = (sums @ sums.T).astype(np.float64).cumsum(0).cumsum(1)
    total = np.concatenate([[0.0], mass.cumsum()])
    diagonal = np.diag(products)
    inside = diagonal[None, :] - products - products.T + diagonal[:, None]  # [a, b]: sum of the products of the runs a … b - 1
    length = total[None, :] - total[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.where(length > 0, length - inside / length, np.inf)
    best = np.full(runs + 1, np.inf)
    best[0] = 0.0
    came_from = np.zeros((count + 1, runs + 1), np.int32)
    for scene in range(1, count + 1):
        tried = best[:, None] + loss
        came_from[scene] = tried.argmin(axis=0)
        best = tried.min(axis=0)
    ends = [runs]
    for scene in range(count, 0, -1):
        ends.append(int(came_from[scene, ends[-1]]))
    return np.array(ends[:0:-1], np.int64)
