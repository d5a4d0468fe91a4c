"""Candidates for pruners, and unit vectors at angles, so that every likeness is a cosine that can be read off."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vip.protocols import TEXT_WEIGHT, DistinctPictures, Prunable
from vip.records import Embeddings


def prunable(
    embeddings: Embeddings,
    *,
    people: Sequence[bool] | None = None,
    times_s: Sequence[float] | None = None,
    sharpness: Sequence[float] | None = None,
    in_transition: Sequence[bool] | None = None,
    text_weight: float = TEXT_WEIGHT,
    relevance: Sequence[float] | None = None,
    pictures: DistinctPictures | None = None,
) -> Prunable:
    """Frames with these vectors; by default one a second, without people, all equally sharp and calm, and nothing asked for."""
    count = len(embeddings)
    return Prunable(
        embeddings,
        times_s=list(times_s or range(count)),
        has_people=list(people or [False] * count),
        sharpness=list(sharpness or [100.0] * count),
        in_transition=list(in_transition or [False] * count),
        text_weight=text_weight,
        relevance=relevance,
        pictures=pictures,
    )


def at_angles(
    degrees: Sequence[float],
    *,
    people: Sequence[bool] | None = None,
    texts: Sequence[float] | None = None,
    text_weight: float = TEXT_WEIGHT,
) -> Prunable:
    """One frame a second; the cosine of two pictures is that of the angle between them. Texts are all the same by default.

    What is asked for is at 0 degrees.
    """

    def vectors(angles: Sequence[float]) -> np.ndarray:
        turned = np.radians(np.array(angles, np.float64))
        return np.stack([np.cos(turned), np.sin(turned)], axis=1).astype(np.float32)

    embeddings = Embeddings(vectors(degrees), vectors(texts or [0.0] * len(degrees)), "test")
    return prunable(embeddings, people=people, text_weight=text_weight, relevance=embeddings.image[:, 0].tolist())


def kept(frames: Prunable, dropped: Sequence[int]) -> list[int]:
    return [row for row in range(len(frames)) if row not in set(dropped)]
