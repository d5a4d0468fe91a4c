"""Copies: of frames in a row that show the very same picture, the sharpest is kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vip.extraction.analyze import FrameAnalysis
from vip.records import Decision
from vip.timecode import timecode

SAME_PICTURE_LEVELS = 5  # of 255, in the cell of the signature that differs most; coding noise stays below it


def copies(analyses: Sequence[FrameAnalysis], remaining: Sequence[int]) -> dict[int, Decision]:
    """Return frames that show the very picture of the one before; of such a row the sharpest stays."""
    dropped: dict[int, Decision] = {}
    row: list[int] = []
    for index in [*remaining, None]:
        if index is not None and row and same_picture(analyses[row[0]], analyses[index]):
            row.append(index)
            continue
        if len(row) > 1:
            best = max(row, key=lambda member: analyses[member].measured.quality.sharpness)
            reason = f"dropped: shows the same picture as {timecode(analyses[best].time_s)}"
            dropped |= {
                member: Decision(kept=False, rule="duplicate", reason=reason, neighbours=(best,)) for member in row if member != best
            }
        row = [] if index is None else [index]
    return dropped


def same_picture(a: FrameAnalysis, b: FrameAnalysis) -> bool:
    """Return whether nothing but coding noise tells the two apart."""
    return int(np.abs(a.signature.astype(np.int16) - b.signature).max()) < SAME_PICTURE_LEVELS
