"""Decoded frames that are kept in memory, so that the few that matter of a short video are not decoded again."""

from __future__ import annotations

from threading import Lock

from av.video.frame import VideoFrame

MOST_BYTES = 3 * 2**25  # 69 frames of 720p


class FrameCache:
    """Frames as the decoder gives them, by PTS, of a limited number of bytes together.

    While there is room all are kept. Then the preferred ones that come take the place of the latest others. Readers in several threads
    share the frames: converting one does not change it.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._frames: dict[int, VideoFrame] = {}
        self._others: list[int] = []  # PTS of those that are not preferred
        self._free_bytes = most_bytes
        self._lock = Lock()

    def keep(self, pts: int, frame: VideoFrame, *, preferred: bool = False) -> None:
        """Keep the frame if there is room, or if room can be made for a preferred one."""
        cost = _size_bytes(frame)
        with self._lock:
            if pts in self._frames:
                if preferred and pts in self._others:
                    self._others.remove(pts)
                return
            while preferred and cost > self._free_bytes and self._others:
                self._free_bytes += _size_bytes(self._frames.pop(self._others.pop()))
            if cost > self._free_bytes:
                return
            self._frames[pts] = frame
            self._free_bytes -= cost
            if not preferred:
                self._others.append(pts)

    def get(self, pts: int) -> VideoFrame | None:
        return self._frames.get(pts)

    def __contains__(self, pts: int) -> bool:
        return pts in self._frames


def _size_bytes(frame: VideoFrame) -> int:
    return sum(plane.buffer_size for plane in frame.planes)
