"""Which frames stand still on screen, as the sizes of the packets around them tell without decoding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from vip.records import PacketIndex

AROUND_S = 0.6  # before a frame, and behind it: still on one side is enough, since a slide's last frame is one of the slide
STILL_BYTES = 64  # the mean of the packets; where nothing moves, encoders spend 30 to 80 on a frame of 1080p
STILL_SHARE_OF_SYNC = 0.003  # of the typical sync packet; a speaker before a still wall takes 0.007, a moving camera 0.1
SHOWN_FOR_S = 2.0  # a frame that no other follows for so long is a still, as in slide shows of few frames


def still_frames(index: PacketIndex, pts: Sequence[int]) -> npt.NDArray[np.bool_]:
    """bool (N,): whether nothing moves just before or just behind each of these frames; False where packets do not tell."""
    if index.is_sparse or index.by_decoding or len(index) == 0:
        return np.zeros(len(pts), bool)
    order = np.argsort(index.pts, kind="stable")
    times, is_sync, sizes = index.pts[order] * float(index.time_base), index.is_sync[order], index.size_bytes[order]
    most_bytes = max(STILL_BYTES, STILL_SHARE_OF_SYNC * float(np.median(sizes[is_sync]))) if is_sync.any() else STILL_BYTES
    count = np.concatenate([[0], np.cumsum(~is_sync)])
    total = np.concatenate([[0], np.cumsum(np.where(is_sync, 0, sizes))])
    at = np.asarray(pts, np.int64) * float(index.time_base)

    def is_still(first: npt.NDArray[np.intp], end: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        packets = count[end] - count[first]
        return np.asarray((packets > 0) & (total[end] - total[first] <= most_bytes * packets), bool)

    behind = np.searchsorted(times, at, "right")
    before = is_still(np.searchsorted(times, at - AROUND_S), behind)  # the packet of the frame itself, too: it may be the change
    following = np.append(times, np.inf)[behind]
    stays = (following - at >= SHOWN_FOR_S) & (behind < len(times))
    return np.asarray(before | is_still(behind, np.searchsorted(times, at + AROUND_S, "right")) | stays, bool)
