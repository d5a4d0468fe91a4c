"""Decoded frames that are kept in memory, so that the few that matter of a short video are not decoded again."""

from __future__ import annotations

from av.video.frame import VideoFrame

from vip.video.bounded_cache import BoundedCache

MOST_BYTES = 3 * 2**25  # 69 frames of 720p


class FrameCache(BoundedCache[VideoFrame]):
    """Frames as the decoder gives them, by PTS. Readers in several threads share them: converting one does not change it."""

    def keep(self, pts: int, frame: VideoFrame) -> None:
        """Keep the frame if there is room."""
        self._keep(pts, frame, sum(plane.buffer_size for plane in frame.planes), preferred=True)
