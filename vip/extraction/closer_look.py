"""Where `-n auto` looks closer: at frames that pass by once, which may be a picture of their own or the way from one to the next."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vip.extraction.analyze import FrameAnalysis
from vip.extraction.bad_frames import bad_frames
from vip.extraction.distinct import passing
from vip.records import PacketIndex

FARTHEST_PACKETS = 250  # decoded for one of these frames: most GOPs are no longer
BESIDE_S = 0.6  # what stays so long on either side is a picture
TOO_NEAR_S = 0.25  # to a frame that was looked at


def frames_beside_passing(index: PacketIndex, analyses: Sequence[FrameAnalysis], min_sharpness: float | None) -> list[int]:
    """Return PTS shortly before and behind each frame that is unlike both its neighbours in a calm stretch."""
    bad = bad_frames(analyses, min_sharpness)
    good = [analysis for row, analysis in enumerate(analyses) if row not in bad]
    seconds = float(index.time_base)
    shown, known = index.shown_pts, np.array([analysis.pts for analysis in analyses], np.int64)
    wanted: set[int] = set()
    for row in passing(good):
        for aside_s in (-BESIDE_S, BESIDE_S):
            place = int(np.searchsorted(shown, good[row].pts + aside_s / seconds))
            if place < len(shown) and np.abs(known - shown[place]).min() * seconds > TOO_NEAR_S:
                wanted.add(int(shown[place]))
    return sorted(wanted)
