"""A random part of what could be reviewed, the same for everybody who asks for as many with the same seed.

In: ids. Out: some of them. What an engine or `--verify` doubts is not like the rest: rates and labels that are to speak for all items come
from items drawn by chance. An id is drawn by the SHA-256 of the seed and itself, so that items that come later change little of a draw.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from heapq import nsmallest

SEED = 0


def draw_ids(ids: Iterable[str], count: int, *, seed: int = SEED) -> frozenset[str]:
    """Return so many of the ids; all where there are no more."""
    return frozenset(nsmallest(count, ids, key=lambda name: sha256(f"{seed}/{name}".encode("utf-8", "surrogatepass")).digest()))
