"""Shots that no candidate shows yet: between two that differ, where packet sizes show that the picture changed once more.

In: the packets of a video, and the candidates that were looked at. Out: PTS of more frames to look at. Packet sizes alone take quick
movement for new shots. But a shot that begins and ends between two candidates has other shots on its two sides, and movement within a
shot mostly has not: so a change counts for more the less its two neighbours are alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vip.extraction.analyze import FrameAnalysis
from vip.extraction.transitions import SHOWN_BY_SYNC_S, activity_of
from vip.records import PacketIndex

MOST_SHARE = 0.15  # of the keyframes: with a third as many segments are shown, of 480 one less with none
LOOKED_THROUGH = 4  # changes a keyframe that are compared with their neighbours
OTHER_VIEW = 0.85  # cosine of two candidates from which on they show one shot
DEEPEST_FRAMES = 45  # behind a sync frame: to decode more for one shot is too expensive


def frames_of_hidden_shots(index: PacketIndex, analyses: Sequence[FrameAnalysis], keyframes: int) -> list[int]:
    """Return PTS of frames behind changes of the picture between candidates that differ: the surest, at most one for seven keyframes.

    Args:
        analyses: of the candidates, in time order.
    """
    if not analyses:
        return []
    known = np.array([analysis.pts for analysis in analyses], np.int64)
    shows_soon = SHOWN_BY_SYNC_S / float(index.time_base)
    found: list[tuple[float, int]] = []
    for change in activity_of(index).unseen_changes(LOOKED_THROUGH * keyframes, deepest=DEEPEST_FRAMES):
        place = int(np.searchsorted(known, change.pts, side="right"))
        if not 0 < place < len(known) or known[place] - change.pts < shows_soon:
            continue
        cosine = float(analyses[place - 1].view @ analyses[place].view)
        if cosine < OTHER_VIEW:
            found.append((change.strength * (1 - cosine), change.settled_pts))
    surest = sorted(found, reverse=True)[: max(1, round(MOST_SHARE * keyframes))]
    return sorted({pts for _, pts in surest})
