"""The frames that Algorithm 1 holds to the last, as many as keyframes are wanted.

One of each scene; then what stands in place of one of two that are alike, and of one beside which there is enough, so that a gap is
filled. Two frames are as alike as they are for the division into scenes: of two sources hardly any two are doubles, however alike
they look. Of a picture that stands still, as a slide does, only the frame that stands for it takes part; the others follow where more
are wanted.
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
    spare = frames.pictures.spare if frames.pictures else frozenset[int]()
    held = _held_among(frames, [row for row in range(len(frames)) if row not in spare], count, redundant)
    if len(held.gaps_s) == count or not spare:
        return held
    more = _held_among(frames, sorted(spare), count - len(held.gaps_s), redundant)
    return HeldFrames({**held.gaps_s, **more.gaps_s}, {**held.scenes, **more.scenes})


def _held_among(frames: Prunable, rows: list[int], count: int, redundant: float) -> HeldFrames:
    """Return which of these rows to hold."""
    among = frames if len(rows) == len(frames) else frames.take(rows)
    scenes = representatives(among, count)
    image = with_source(among.embeddings.image, among.sharpness, among.signatures)
    by_source = replace(among, embeddings=replace(among.embeddings, image=image))
    gaps_s = spread(by_source, replace_doubles(by_source, scenes), redundant=redundant)
    return HeldFrames(
        {rows[row]: gap_s for row, gap_s in gaps_s.items()},
        {rows[row]: range(rows[scene[0]], rows[scene[-1]] + 1) for row, scene in scenes.items()},
    )
