"""Frames in which something flies, grows or turns into view for a moment between pictures that stand still, as in motion graphics.

Packets say that it is a moment (`stillness.between_rests`). A shot of a second between titles is one too, so the pictures have to agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from vip.extraction.analyze import FrameAnalysis
from vip.extraction.quality import much_blurrier
from vip.local_change import LEAST_SHARE, change_of_thumbnails

SAME_LEVELS, MOSTLY_SAME = 24, 0.5
"""Of 255, and share of the cells of the signature. Of 300 frames in which cards come into view 11 are below, all of them blurred."""


def is_on_its_way(frame: FrameAnalysis, rests: Sequence[FrameAnalysis], *, comes_to_rest: bool) -> bool:
    """Return whether a frame that moves is far softer than the pictures that stand still beside it, or mostly shows what they do.

    Not where it is one more step of something that is written or built up, nor where it does not come to rest: at the end of a video
    only what is far softer is sure to leave.
    """
    if all(much_blurrier(frame.measured.quality, rest.measured.quality) for rest in rests):
        return True
    if not comes_to_rest:
        return False
    levels = np.stack([np.abs(frame.signature.astype(np.int16) - rest.signature).max(axis=2) for rest in rests]).min(axis=0)
    if float((levels < SAME_LEVELS).mean()) < MOSTLY_SAME:
        return False
    steps = pairwise(one.thumbnail for one in (*rests[:-1], frame, rests[-1]))
    return not all(change.is_progress or change.share < LEAST_SHARE for change in (change_of_thumbnails(*step) for step in steps))
