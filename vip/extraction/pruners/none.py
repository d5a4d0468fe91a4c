"""No pruning: the pruner `none` keeps frames as the sampler gives them, good or bad. The baseline that others are held against.

With `--sampler uniform` these are exactly N evenly spaced frames; with `--sampler every:2s -n auto` one every 2 s.
"""

from __future__ import annotations

import numpy as np

from vip.errors import BackendError
from vip.protocols import Prunable, PrunedFrame, PrunerCapabilities, PruningResult
from vip.timecode import timecode
from vip.wording import option

BOUND = 1.0  # nothing is redundant


class NoPruning:
    """A pruner that keeps all frames; of more than are wanted, so many at even distances."""

    name = "none"
    capabilities = PrunerCapabilities(as_is=True)

    def __init__(self, detail: str | None) -> None:
        if detail is not None:
            raise BackendError(f'The pruner "none" takes no detail, but got "{detail}". Write {option("pruner", "none")}.')

    def prune(self, frames: Prunable, *, keep: int | None, redundant: float) -> PruningResult:
        """Drop nothing but what is too many."""
        count = len(frames)
        if keep is None or keep >= count:
            return PruningResult((), "kept: as the sampler gave it", BOUND)
        kept = ((np.arange(keep) + 0.5) * (count / keep)).astype(np.int64)
        dropped = sorted(set(range(count)) - set(kept.tolist()))
        drops = tuple(_drop(frames, row, step, int(kept[np.abs(kept - row).argmin()])) for step, row in enumerate(dropped, 1))
        return PruningResult(drops, f"kept: one of {keep} at even distances", BOUND)


def _drop(frames: Prunable, row: int, step: int, nearest: int) -> PrunedFrame:
    likeness = float(frames.embeddings.image[row] @ frames.embeddings.image[nearest])
    reason = f"dropped: too many; the nearest that is kept is {timecode(frames.times_s[nearest])}, with likeness {likeness:.3f}"
    return PrunedFrame(row, step, likeness, (nearest,), reason)
