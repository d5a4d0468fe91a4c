"""Which frames stand still on screen, or move no more than usual, as the sizes of the packets around them tell without decoding."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from vip.ranks import median, quantile
from vip.records import PacketIndex

AROUND_S = 1.0  # before a frame, and behind it: still on one side is enough, since a slide's last frame is one of the slide
STILL_BYTES = 64  # of most packets; where nothing moves, encoders spend 30 to 80 on a frame of 1080p
STILL_SHARE_OF_SYNC = 0.003  # of the typical sync packet; a speaker before a still wall takes 0.007, a moving camera 0.1
NEAR_S, MOVES_SHARE_OF_SYNC = 0.25, 0.03  # no packet so near is larger: nothing has just begun to move
REFERENCE_WITHIN = 4  # packets; at few frames a second, what has begun to move is in the next one that others refer to, farther off
SHOWN_FOR_S = 2.0  # a frame that no other follows for so long is a still, as in slide shows of few frames
LEAST_PACKETS = 3
CALM_S, CALM_SHARE, TIMES_CALM = 0.5, 0.3, 3.0
"""Seconds before a frame, and behind it, the share of the packets that are calm, and how much larger most packets there may be. In 16 talks
with a speaker in a window nine of ten frames of a slide lie below, and of those in which a page scrolls the fewest."""


def still_frames(index: PacketIndex, pts: Sequence[int]) -> npt.NDArray[np.bool_]:
    """bool (N,): whether nothing moves just before or just behind each of these frames; False where packets do not tell."""
    if index.is_sparse or index.by_decoding or not index.is_sync.any():
        return np.zeros(len(pts), bool)
    order = index.by_time
    times, is_sync, sizes = index.pts[order] * float(index.time_base), index.is_sync[order], index.size_bytes[order]
    most_bytes = max(STILL_BYTES, STILL_SHARE_OF_SYNC * median(sizes[is_sync]))
    between, between_bytes = times[~is_sync], sizes[~is_sync]
    at = np.asarray(pts, np.int64) * float(index.time_base)
    largest_bytes = MOVES_SHARE_OF_SYNC * median(sizes[is_sync])
    edges = (np.searchsorted(between, at + aside_s, "right").tolist() for aside_s in (-AROUND_S, -NEAR_S, 0.0, NEAR_S, AROUND_S))

    def is_still(around: slice, near: slice) -> bool:
        packets = between_bytes[around]
        is_calm = len(packets) >= LEAST_PACKETS and median(packets) <= most_bytes
        return bool(is_calm and between_bytes[near].max(initial=0) <= largest_bytes)

    following = np.searchsorted(times, at, "right")
    differs = (sizes[following - 1] > most_bytes).tolist()  # from the frame before; encoders put sync frames where movement begins
    still = [
        (is_still(slice(start, here), slice(before, here)) and not (is_new and between_bytes[here:behind].max(initial=0) > largest_bytes))
        or is_still(slice(here, end), slice(here, min(end, max(behind, here + REFERENCE_WITHIN))))
        for is_new, (start, before, here, behind, end) in zip(differs, zip(*edges, strict=True), strict=True)
    ]
    stays = (following < len(times)) & (np.append(times, np.inf)[following] - at >= SHOWN_FOR_S)
    return np.asarray(stays | np.array(still, bool), bool)


def calm_frames(index: PacketIndex, pts: Sequence[int]) -> npt.NDArray[np.bool_]:
    """bool (N,): whether no more moves just before or just behind each of these frames than in the calm stretches of the video."""
    if index.is_sparse or index.by_decoding or index.is_sync.all():
        return np.zeros(len(pts), bool)
    order = index.by_time
    is_between = ~index.is_sync[order]
    times, sizes = index.pts[order][is_between] * float(index.time_base), index.size_bytes[order][is_between]
    most_bytes = TIMES_CALM * _calm_bytes(index)
    at = np.asarray(pts, np.int64) * float(index.time_base)
    edges = (np.searchsorted(times, at + aside_s, "right").tolist() for aside_s in (-CALM_S, 0.0, CALM_S))

    def is_calm(packets: npt.NDArray[np.int64]) -> bool:
        return len(packets) >= LEAST_PACKETS and median(packets) <= most_bytes

    return np.array([is_calm(sizes[start:here]) or is_calm(sizes[here:end]) for start, here, end in zip(*edges, strict=True)], bool)


@lru_cache(maxsize=1)
def _calm_bytes(index: PacketIndex) -> float:
    """Return what calm packets have at most; it is asked for several times, and of one video after another."""
    return quantile(index.size_bytes[~index.is_sync], CALM_SHARE)
