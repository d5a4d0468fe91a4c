"""The frames that Algorithm 1 holds to the last, as many as keyframes are wanted.

One of each scene; then what stands in place of one of two that are alike, and of one beside which there is enough, so that a gap is
filled. Two frames are as alike as they are for the division into scenes: of two sources hardly any two are doubles, however alike
they look. Of a picture that stands still, as a slide does, only the frame that stands for it takes part. Where more are wanted, the others
follow, those first in which most has changed: a dialog that opens, a menu, not the same screen once more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vip.extraction.doubles import replace_doubles
from vip.extraction.scenes import representatives, with_source
from vip.extraction.spread import NO_GAP, spread
from vip.protocols import Prunable

UNLIKE_LEVELS, UNLIKE_CELLS = 12, 4  # of 255, in a cell of the signature, and how many of its 576; a cursor changes two


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
    pictures = frames.pictures
    spare = pictures.spare if pictures else frozenset[int]()
    held = _held_among(frames, [row for row in range(len(frames)) if row not in spare], count, redundant)
    left = count - len(held.gaps_s)
    if pictures is None or not left or not spare:
        return held
    changed = _most_changed(frames, list(held.gaps_s), sorted(spare & pictures.calm), left)
    gaps_s = {**held.gaps_s, **dict.fromkeys(changed, NO_GAP)}
    if len(changed) == left:
        return HeldFrames(gaps_s, held.scenes)
    more = _held_among(frames, sorted(spare.difference(changed)), left - len(changed), redundant)
    return HeldFrames({**gaps_s, **more.gaps_s}, {**held.scenes, **more.scenes})


def _most_changed(frames: Prunable, held: Sequence[int], others: Sequence[int], count: int) -> list[int]:
    """Return up to `count` of the others: each time the one that is least like any held by then, as long as a person sees a difference."""
    if frames.signatures is None or not others or not held:
        return []
    signatures = frames.signatures.astype(np.int16)
    of_others = signatures[list(others)]

    def cells_unlike(row: int) -> npt.NDArray[np.intp]:
        return np.asarray((np.abs(of_others - signatures[row]).max(axis=3) > UNLIKE_LEVELS).sum(axis=(1, 2)))

    unlike, found = np.min([cells_unlike(row) for row in held], axis=0), list[int]()
    while len(found) < count and unlike.max() >= UNLIKE_CELLS:
        found.append(others[int(unlike.argmax())])
        unlike = np.minimum(unlike, cells_unlike(found[-1]))
    return found


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
