"""Copies: of frames in a row that show the very same picture, the sharpest is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from vip.extraction.analyze import FrameAnalysis
from vip.local_change import is_copy
from vip.records import Decision
from vip.timecode import timecode

SAME_PICTURE_LEVELS = 5  # of 255, in the cell of the signature that differs most; coding noise mostly stays below it
LOOKED_AT_LEVELS = 24  # below which thumbnails tell: coding sharpens a still picture step by step, and a fade begins


def copies(analyses: Sequence[FrameAnalysis], remaining: Sequence[int]) -> dict[int, Decision]:
    """Return frames that show the very picture of those before; of such a row the sharpest stays."""
    dropped: dict[int, Decision] = {}
    for row in _rows(analyses, remaining):
        best = max(row, key=lambda member: analyses[member].measured.quality.sharpness)
        reason = f"dropped: shows the same picture as {timecode(analyses[best].time_s)}"
        dropped |= {member: Decision(kept=False, rule="duplicate", reason=reason, neighbours=(best,)) for member in row if member != best}
    return dropped


def _rows(analyses: Sequence[FrameAnalysis], remaining: Sequence[int]) -> Iterator[list[int]]:
    """Yield the frames in rows that show the picture of their first frame or of the sharpest so far, and nothing far from the first."""
    row: list[int] = []
    sharpest = -1
    for index in remaining:
        now = analyses[index]
        if row and not _continues(analyses[row[0]], analyses[sharpest], now):
            yield row
            row = []
        if not row or now.measured.quality.sharpness > analyses[sharpest].measured.quality.sharpness:
            sharpest = index
        row.append(index)
    if row:
        yield row


def _continues(first: FrameAnalysis, sharpest: FrameAnalysis, now: FrameAnalysis) -> bool:
    return same_picture(first, now) or (_difference(first, now) < LOOKED_AT_LEVELS and same_picture(sharpest, now))


def same_picture(a: FrameAnalysis, b: FrameAnalysis) -> bool:
    """Return whether nothing but coding and a little light tells the two apart."""
    difference = _difference(a, b)
    return difference < SAME_PICTURE_LEVELS or (difference < LOOKED_AT_LEVELS and is_copy(a.thumbnail, b.thumbnail))


def _difference(a: FrameAnalysis, b: FrameAnalysis) -> int:
    """Return by how much the cells of two signatures differ at most."""
    return int(np.abs(a.signature.astype(np.int16) - b.signature).max())
