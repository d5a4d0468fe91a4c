"""Candidates for pruners: unit vectors at angles, so that every likeness is a cosine that can be read off."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vip.protocols import Prunable
from vip.records import Embeddings


def at_angles(degrees: Sequence[float], *, people: Sequence[bool] | None = None, texts: Sequence[float] | None = None) -> Prunable:
    """One frame a second; the cosine of two pictures is that of the angle between them. Texts are all the same by default."""

    def vectors(angles: Sequence[float]) -> np.ndarray:
        turned = np.radians(np.array(angles, np.float64))
        return np.stack([np.cos(turned), np.sin(turned)], axis=1).astype(np.float32)

    count = len(degrees)
    embeddings = Embeddings(vectors(degrees), vectors(texts or [0.0] * count), "test")
    return Prunable(embeddings, [float(second) for second in range(count)], list(people or [False] * count))


def kept(frames: Prunable, dropped: Sequence[int]) -> list[int]:
    return [row for row in range(len(frames)) if row not in set(dropped)]
