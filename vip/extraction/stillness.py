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
LEAST_LEVEL, LEVEL, LEVEL_WITHIN, LEVEL_SHARE_OF_SYNC = 8, 0.5, 0.05, 0.06
"""Packets, the share of them that has the size of their lower quartile, give or take a part of it, and how large that is at most."""
TIMES_LEVEL = 3.0  # nothing has just begun to move while no packet nearby is larger
REST_S, MOMENT_S = 0.4, 1.5  # nothing moves for so long where a picture is to be seen, and what moves between two of them is over so soon
SETTLED_IN_REST_S = 0.2  # behind its beginning
IN_A_ROW = 5  # packets, most of which are small in a rest: once a picture stands still, every other one or so still refines it
LARGE_SHARE, STILL_SHARE_OF_LARGE = 0.9, 0.02  # where most moves, a packet of what rests is so small a part of most others
CALM_S, CALM_SHARE, TIMES_CALM = 0.5, 0.3, 3.0
"""Seconds before a frame, and behind it, the share of the packets that are calm, and how much larger most packets there may be. In 16 talks
with a speaker in a window nine of ten frames of a slide lie below, and of those in which a page scrolls the fewest."""


def still_frames(index: PacketIndex, pts: Sequence[int]) -> npt.NDArray[np.bool_]:
    """bool (N,): whether nothing moves just before or just behind each of these frames; False where packets do not tell."""
    if index.is_sparse or index.by_decoding or not index.is_sync.any():
        return np.zeros(len(pts), bool)
    order = index.by_time
    times, is_sync, sizes = index.pts[order] * float(index.time_base), index.is_sync[order], index.size_bytes[order]
    sync_bytes = median(sizes[is_sync])
    most_bytes, largest_bytes = _still_bytes(sync_bytes), MOVES_SHARE_OF_SYNC * sync_bytes
    between, between_bytes = times[~is_sync], sizes[~is_sync]
    at = np.asarray(pts, np.int64) * float(index.time_base)
    edges = (np.searchsorted(between, at + aside_s, "right").tolist() for aside_s in (-AROUND_S, -NEAR_S, 0.0, NEAR_S, AROUND_S))

    def is_still(around: slice, near: slice) -> bool:
        packets, largest = between_bytes[around], between_bytes[near].max(initial=0)
        is_calm = len(packets) >= LEAST_PACKETS and median(packets) <= most_bytes and largest <= largest_bytes
        return bool(is_calm or 0 < largest <= TIMES_LEVEL * _level(packets, sync_bytes))

    following = np.searchsorted(times, at, "right")
    differs = (sizes[following - 1] > most_bytes).tolist()  # from the frame before; encoders put sync frames where movement begins
    still = [
        (is_still(slice(start, here), slice(before, here)) and not (is_new and between_bytes[here:behind].max(initial=0) > largest_bytes))
        or is_still(slice(here, end), slice(here, min(end, max(behind, here + REFERENCE_WITHIN))))
        for is_new, (start, before, here, behind, end) in zip(differs, zip(*edges, strict=True), strict=True)
    ]
    stays = (following < len(times)) & (np.append(times, np.inf)[following] - at >= SHOWN_FOR_S)
    return np.asarray(stays | np.array(still, bool), bool)


def _still_bytes(sync_bytes: float) -> float:
    """Return what most packets have at most where nothing moves."""
    return max(STILL_BYTES, STILL_SHARE_OF_SYNC * sync_bytes)


def _level(packets: npt.NDArray[np.int64], sync_bytes: float) -> float:
    """Return the small size that most packets have: encoders of screen recordings spend it where nothing changes. 0 where there is none."""
    if len(packets) < LEAST_LEVEL:
        return 0.0
    level = float(np.partition(packets, len(packets) // 4)[len(packets) // 4])
    is_level = np.abs(packets - level) <= LEVEL_WITHIN * level + 2
    return level if level <= LEVEL_SHARE_OF_SYNC * sync_bytes and is_level.mean() >= LEVEL else 0.0


def between_rests(index: PacketIndex, pts: Sequence[int]) -> npt.NDArray[np.bool_]:
    """bool (N,): whether each of these frames moves for a moment only: nothing does just before that, nor just behind it.

    So cards of motion graphics come into view, and slides with animations. Beginning and end of a video count as rests if there is one.
    """
    at = np.asarray(pts, np.int64) * float(index.time_base)
    ended, begins = _rests_beside(index, at)
    first, last = (float(index.shown_pts[place] * index.time_base) for place in (0, -1))
    lasts_s = np.minimum(begins, last) - np.maximum(ended, first)
    return np.asarray((at > ended) & (lasts_s <= MOMENT_S) & (np.isfinite(ended) | np.isfinite(begins)), bool)


def rests_behind(index: PacketIndex, pts: Sequence[int]) -> list[int]:
    """Return the PTS of a frame of the next rest behind each of these, where there is one."""
    _, begins = _rests_beside(index, np.asarray(pts, np.int64) * float(index.time_base))
    shown = index.shown_pts
    places = np.searchsorted(shown, (begins + SETTLED_IN_REST_S) / float(index.time_base))
    return sorted({int(shown[place]) for place in places.tolist() if place < len(shown)})


def _rests_beside(index: PacketIndex, at: npt.NDArray[np.floating]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return for each of N times when the rest ended that began before it, and when the next one begins; infinite where there is none."""
    rests = _rests(index)
    following = np.searchsorted(rests[:, 0], at, "right")
    return np.append(-np.inf, rests[:, 1])[following], np.append(rests[:, 0], np.inf)[following]


@lru_cache(maxsize=1)
def _rests(index: PacketIndex) -> npt.NDArray[np.float64]:
    """float64 (K, 2): begin and end of each stretch in which nothing moves for long enough to be seen, in seconds; none where packets do
    not tell.
    """
    if index.is_sparse or index.by_decoding or not index.is_sync.any():
        return np.zeros((0, 2))
    order = index.by_time
    times, is_sync, sizes = index.pts[order] * float(index.time_base), index.is_sync[order], index.size_bytes[order]
    between = np.flatnonzero(~is_sync)
    if len(between) < IN_A_ROW:
        return np.zeros((0, 2))
    large = STILL_SHARE_OF_LARGE * quantile(sizes[between], LARGE_SHARE)
    most_bytes = max(_still_bytes(median(sizes[is_sync])), large)
    is_small = np.pad((sizes[between] <= most_bytes).astype(np.int8), IN_A_ROW // 2, mode="edge")
    moves = between[np.convolve(is_small, np.ones(IN_A_ROW, np.int8), "valid") <= IN_A_ROW // 2]
    begins, ends = np.append(times[0], times[moves]), np.append(times[np.maximum(moves - 1, 0)], times[-1])
    return np.asarray(np.stack([begins, ends], axis=1)[ends - begins >= REST_S], np.float64)


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
