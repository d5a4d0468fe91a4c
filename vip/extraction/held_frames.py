"""The frames that Algorithm 1 holds to the last, as many as keyframes are wanted.

One of each scene; then what stands in place of one of two that are alike, and of one beside which there is enough, so that a gap is
filled. Two frames are as alike as they are for the division into scenes: of two sources hardly any two are doubles, however alike
they look.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from vip.extraction.doubles import replace_doubles
from vip.extraction.scenes import representatives, with_source
from vip.extraction.spread import spread
from vip.protocols import Prunable


class HeldFrames(NamedTuple):
    """Rows of the frames to hold, and why."""

    gaps_s: Mapping[int, tuple[float, float]]
    """By row, the gap that it fills, in seconds; `spread.NO_GAP` where it fills none."""
    scenes: Mapping[int, range]
    """The rows of the scene, by the row of the frame that stands for it; that one need not be held."""


def held_frames(frames: Prunable, count: int, *, redundant: float) -> HeldFrames:
    """Return the frames to hold: `count` of them, or all where there are no more.

    Args:
        redundant: the likeness from which on two frames show the same.
    """
    scenes = representatives(frames, count)
    image = with_source(frames.embeddings.image, frames.sharpness, frames.signatures)
    by_source = replace(frames, embeddings=replace(frames.embeddings, image=image))
    return HeldFrames(spread(by_source, replace_doubles(by_source, scenes), redundant=redundant), scenes)
