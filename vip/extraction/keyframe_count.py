"""Number of keyframes: what `-n auto` starts from."""

from __future__ import annotations

from typing import Literal

from vip.extraction.samplers.sync import FEWEST_PER_KEYFRAME_WHERE_EXPENSIVE
from vip.extraction.transitions import activity_of
from vip.protocols import VideoSource

SECONDS_A_KEYFRAME = 8
FEWEST, MOST = 12, 500


def expected_keyframes(keyframes: int | Literal["auto"], video: VideoSource) -> int:
    """Return the number of keyframes that candidates are sampled for: as asked, or 12 to 500.

    One for every 8 s that are shown, or for every change of picture that packet sizes show where those are more. Where the decoder
    passes over nothing, and sync frames show a picture every 4 s, as many as they suffice for: VP9 writes large packets behind them, too.
    """
    if keyframes != "auto":
        return keyframes
    shown = video.index.shown_pts
    duration_s = float(int(shown[-1] - shown[0]) * video.time_base)
    by_time, changes = round(duration_s / SECONDS_A_KEYFRAME), len(activity_of(video.index).unseen(MOST))
    enough_for = len(video.index.sync_pts) // FEWEST_PER_KEYFRAME_WHERE_EXPENSIVE
    if video.index.decodes_all and enough_for >= by_time:
        changes = min(changes, enough_for)
    return min(MOST, max(FEWEST, by_time, changes))
