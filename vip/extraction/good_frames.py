"""Frames as the pruners see them, and which would be kept: needed while candidates are still searched for, and when selecting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vip.extraction.analyze import FrameAnalysis
from vip.extraction.bad_frames import bad_frames
from vip.extraction.copies import copies
from vip.extraction.held_frames import held_frames
from vip.extraction.object_text import has_people
from vip.protocols import TEXT_WEIGHT, DistinctPictures, Prunable
from vip.records import Embeddings


def good_frames(analyses: Sequence[FrameAnalysis], min_sharpness: float | None) -> list[int]:
    """Return the indices of the frames that are neither bad nor copies."""
    bad = bad_frames(analyses, min_sharpness)
    good = [index for index in range(len(analyses)) if index not in bad]
    same = copies(analyses, good)
    return [index for index in good if index not in same]


def likely_keyframes(
    analyses: Sequence[FrameAnalysis], *, keyframes: int, min_sharpness: float | None, redundant: float
) -> list[FrameAnalysis]:
    """Return the frames that the default pruner would hold.

    Args:
        redundant: the cosine from which on two frames of this embedder show the same.
    """
    remaining = good_frames(analyses, min_sharpness)
    if not remaining:
        return []
    frames = prunable(analyses, by_picture_only(analyses), remaining)
    return [analyses[remaining[row]] for row in sorted(held_frames(frames, keyframes, redundant=redundant).gaps_s)]


def prunable(
    analyses: Sequence[FrameAnalysis],
    embeddings: Embeddings,
    chosen: Sequence[int],
    *,
    text_weight: float = TEXT_WEIGHT,
    relevance: Sequence[float] | None = None,
    pictures: DistinctPictures | None = None,
) -> Prunable:
    """Return the frames with these indices as pruners see them."""
    members = [analyses[index] for index in chosen]
    return Prunable(
        Embeddings(embeddings.image[chosen], embeddings.text[chosen], embeddings.model),
        times_s=[analysis.time_s for analysis in members],
        has_people=[has_people(analysis.detections or ()) for analysis in members],
        sharpness=[analysis.measured.quality.sharpness for analysis in members],
        in_transition=[analysis.in_transition for analysis in members],
        text_weight=text_weight,
        relevance=None if relevance is None else [relevance[index] for index in chosen],
        signatures=np.stack([analysis.signature for analysis in members]) if members else None,
        pictures=pictures,
    )


def by_picture_only(analyses: Sequence[FrameAnalysis]) -> Embeddings:
    """Return vectors for what is decided before any text is known: all texts are alike."""
    return Embeddings(
        np.array([analysis.vector for analysis in analyses], np.float32), np.ones((len(analyses), 1), np.float32), "pictures only"
    )
