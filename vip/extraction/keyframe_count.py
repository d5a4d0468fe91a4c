"""Number of keyframes: what `-n auto` starts from."""

from __future__ import annotations

from typing import Literal

from vip.extraction.transitions import PacketActivity
from vip.protocols import VideoSource

SECONDS_A_KEYFRAME = 8
FEWEST, MOST = 12, 500


def expected_keyframes(keyframes: int | Literal["auto"], video: VideoSource) -> int:
    """Return the number of keyframes that candidates are sampled for: as asked, or 12 to 500.

    One for every 8 s that are shown, or for every change of picture that packet sizes show where those are more.
    """
    if keyframes != "auto":
        return keyframes
    shown = video.index.shown_pts
    duration_s = float(int(shown[-1] - shown[0]) * video.time_base)
    changes = len(PacketActivity(video.index).unseen(MOST))
    return min(MOST, max(FEWEST, round(duration_s / SECONDS_A_KEYFRAME), changes))
