"""Farthest first, the greedy answer to the k-center problem: each keyframe is the frame least like all those chosen before.

Gonzalez, "Clustering to minimize the maximum intercluster distance", 1985. It starts with the frame most like the mean of
all: the first keyframe shows what the video mostly shows. Time order and the people rule play no part, so a view that
comes back later in the video is kept once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from vip.errors import BackendError
from vip.protocols import DistinctPictures, Prunable, PrunedFrame, PrunerCapabilities, PruningResult
from vip.records import Embeddings, Vectors
from vip.timecode import timecode
from vip.wording import option

CURVE_BEYOND = 2  # times as many as chosen: how far the curve goes on, since each of its points costs a pass over all frames


class KCenter:
    """The pruner `k-center`. O(N · k)."""

    name = "k-center"
    capabilities = PrunerCapabilities()

    def __init__(self, detail: str | None) -> None:
        if detail is not None:
            raise BackendError(f'The pruner "k-center" takes no detail, but got "{detail}". Write {option("pruner", "k-center")}.')

    def prune(self, frames: Prunable, *, keep: int | None, redundant: float) -> PruningResult:
        """Add frames until there are `keep`; without it, until each picture is shown and every other is as like one as `redundant`."""
        if len(frames) == 0:
            return PruningResult([], "kept", redundant)
        centers = _Centers(frames.embeddings, frames.text_weight)
        most = len(frames) if keep is None else min(keep, len(frames))
        while len(centers) < most and not (keep is None and centers.least_likeness >= redundant):
            centers.add()
        if keep is None and frames.pictures is not None:
            centers.add_missing(frames.pictures)
        drops, chosen = _drops(centers, frames), len(centers)
        while len(centers) < min(len(frames), CURVE_BEYOND * chosen):
            centers.add()
        curve = [(count, score) for count, score in enumerate(centers.scores, 1) if count > 1]
        return PruningResult(drops, f"kept: one of the {chosen} that are least like each other", redundant, curve=curve)


def _drops(centers: _Centers, frames: Prunable) -> list[PrunedFrame]:
    """Return all but the centers, those most like a keyframe first."""
    others = np.flatnonzero(np.isfinite(centers.likeness))
    order = others[np.argsort(-centers.likeness[others], kind="stable")].tolist()
    drops = []
    for step, row in enumerate(order, 1):
        score, center = float(centers.likeness[row]), int(centers.nearest[row])
        reason = f"dropped: likeness {score:.3f} to the keyframe at {timecode(frames.times_s[center])}"
        drops.append(PrunedFrame(row, step, score, (center,), reason))
    return drops


class _Centers:
    """The frames chosen so far, and for each frame how like it is to the one of them that it is most like."""

    def __init__(self, embeddings: Embeddings, text_weight: float) -> None:
        self.embeddings, self.text_weight = embeddings, text_weight
        image, text = (np.asarray(vectors.mean(axis=0), np.float32) for vectors in (embeddings.image, embeddings.text))
        first = int(_likeness(embeddings, image, text, text_weight).argmax())
        self.likeness = self._likeness_to(first)
        """float64 (N,); infinite for the centers themselves."""
        self.nearest = np.full(len(embeddings), first)
        self.scores = [np.nan]
        """Of each center, how like it was to those before it."""
        self.likeness[first] = np.inf

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def least_likeness(self) -> float:
        """The likeness of the frame that the chosen ones stand for least."""
        return float(self.likeness.min())

    def add(self) -> None:
        """Choose the frame least like all chosen ones; of equal ones the earliest."""
        self._choose(int(self.likeness.argmin()))

    def _choose(self, row: int) -> None:
        self.scores.append(float(self.likeness[row]))
        likeness = self._likeness_to(row)
        self.nearest[likeness > self.likeness] = row
        self.likeness = np.maximum(self.likeness, likeness)
        self.likeness[row] = np.inf

    def add_missing(self, pictures: DistinctPictures) -> None:
        """Choose the frame that stands for each picture that none of the chosen ones shows."""
        for picture, row in enumerate(pictures.stand_for):
            if picture not in {pictures.number[center] for center in np.flatnonzero(np.isinf(self.likeness)).tolist()}:
                self._choose(row)

    def _likeness_to(self, row: int) -> npt.NDArray[np.float64]:
        return _likeness(self.embeddings, self.embeddings.image[row], self.embeddings.text[row], self.text_weight)


def _likeness(embeddings: Embeddings, image: Vectors, text: Vectors, text_weight: float) -> npt.NDArray[np.float64]:
    """Return the float64 (N,) weighted mean of the image and the text cosine of every frame to these two vectors."""
    return (1 - text_weight) * (embeddings.image @ image).astype(np.float64) + text_weight * (embeddings.text @ text)
