"""Transitions read from the sizes of packets, without decoding: where a video is restless, and where a new picture begins.

Packets that change much of the picture are large. A cross-fade, a flash, a wipe or the start of a fast pan is a row of
packets far larger than those around it, so a frame in or beside such a row may be half of one shot and half of the next.
A hard cut is one large packet, mostly a sync one, and no reason to avoid the frame behind it; but where encoders put no
sync frame at a cut (or a cross-fade), only the sizes show that there is a shot that no sync frame shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vip.ranks import median, quantile
from vip.records import PacketIndex

# Seconds before and behind a frame: its neighbourhood, and what is usual around that.
NEAR_BEFORE_S, USUAL_BEFORE_S = (-0.3, 0.0), (-2.3, -0.5)
NEAR_AFTER_S, USUAL_AFTER_S = (0.0, 0.4), (0.6, 2.0)
BEFORE, AFTER = 1.8, 2.2  # times the usual. Of 700 candidates of 12 mixes, all 6 in a cross-fade of H.264 or HEVC lie above; so do 13 %
LEAST_USUAL = 0.05  # of the mean packet of the file: in a still stretch everything is many times the usual

BURST_S = 0.5
USUAL_PACKETS = 120  # around a packet: two seconds on either side at 30 frames a second
WINDOWS_AT_ONCE = 1_000
USUAL_SHARE = 0.85  # of them are no larger than what is usual
MANY_SYNC = 5  # from so many sync packets on, those nearby say what a whole new picture costs
WHOLE_PICTURE_SHARE = 0.995  # with fewer, the largest packets do
BURST_AROUND_S = (-0.7, 0.15)  # where a burst that begins there may still be under way
BURST = 0.5  # of a whole new picture. Every frame in a cross-fade of 14 mixes lies in such a burst; so do 30 % of the others
BEFORE_BURST_S, BEHIND_BURST_S = (-2.0, -0.6), (0.9, 2.0)  # movement is a row of bursts, a new shot is one alone
MOST_BURST, LEAST_AROUND = 1.5, 0.3  # beyond them a burst is no surer to be a new shot
LONG_UNSEEN_S = 5.0  # a shot that no sync frame shows for longer is not worth more
MANY_TIMES = 2.0  # what three quarters of the bursts stay below: VP9 writes packets of very different sizes whatever is shown
NEW_PICTURE = 0.5  # of 16 new shots of 5 mixes that no sync frame shows, 15 lie above
SHOWN_BY_SYNC_S = 1.3  # so near before a sync frame, that one shows what is new
MUCH, MUCH_WHERE_EXPENSIVE, MUCH_WITHIN_S = 0.5, 0.3, 0.2  # of a whole picture; of 35 sync frames in a cross-fade all have more behind them
FOLLOWED_WITHIN_S = 0.5  # of 124 sync frames in cross-fades 115 are in transitions by their packets, 119 with those followed so soon
STILL_BYTES = 128  # a packet; where nothing moves, encoders spend 30 to 80 on a frame of 1080p
FULL_GOP = 0.98  # of the longest GOP
MOSTLY_FULL = 0.8  # of the GOPs: then their ends say nothing about cuts
SETTLED_S = 0.9  # from the change to the frame to look at: most cross-fades are over

Seconds = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.float64]


class UnseenChange(NamedTuple):
    """A change of the picture inside a GOP."""

    pts: int
    """Of the frame with which it begins."""
    settled_pts: int
    """Of the frame behind it to look at."""
    strength: float
    """How sure it is a new shot, and for how long no sync frame shows it; to compare changes of one video by."""


@lru_cache(maxsize=1)
def activity_of(index: PacketIndex) -> PacketActivity:
    """Return the activity of a video; it is asked for several times, and of one video after another."""
    return PacketActivity(index)


class PacketActivity:
    """Sums over the packets of a video in time order, so that any frame is judged in O(log N)."""

    def __init__(self, index: PacketIndex) -> None:
        order = index.by_time
        self._index = index
        self._times: Seconds = np.asarray(index.pts[order] * float(index.time_base), np.float64)
        counted = ~index.is_sync[order]
        self._count = np.concatenate([[0], np.cumsum(counted)])
        self._bytes = np.concatenate([[0], np.cumsum(np.where(counted, index.size_bytes[order], 0))])
        self._least = LEAST_USUAL * self._bytes[-1] / max(1, int(self._count[-1]))
        sizes, is_sync = index.size_bytes[order], index.is_sync[order]
        whole = _whole_picture(sizes, is_sync)
        self._own_whole: Numbers = np.where(is_sync, sizes, whole)
        self._burst = _bursts(self._times, sizes, is_sync, whole)
        self._restless = max(BURST, MANY_TIMES * quantile(self._burst, 0.75))

    def in_transition(self, pts: Sequence[int]) -> npt.NDArray[np.bool_]:
        """Return, as bool (N,), whether the packets just before or just behind each of these frames are far larger than usual there."""
        times: Seconds = np.asarray(pts, np.int64).astype(np.float64) * float(self._index.time_base)
        before, usual_before = self._mean(times, NEAR_BEFORE_S), self._mean(times, USUAL_BEFORE_S)
        after, usual_after = self._mean(times, NEAR_AFTER_S, behind=True), self._mean(times, USUAL_AFTER_S)
        with np.errstate(invalid="ignore"):  # NaN where there is nothing to compare with, and then it is calm
            large = (before > BEFORE * (usual_before + self._least)) | (after > AFTER * (usual_after + self._least))
        return np.asarray(np.logical_or(large, self._strongest_burst(times, BURST_AROUND_S) > self._restless), np.bool_)

    def is_followed_by_much(self, pts: Sequence[int]) -> set[int]:
        """Return those of these PTS behind which the packets of a fifth of a second hold more than half of a whole picture.

        All frames in a cross-fade are so followed, and nearly half of the others.
        """
        share = MUCH_WHERE_EXPENSIVE if self._index.decodes_all else MUCH
        times: Seconds = np.asarray(pts, np.int64).astype(np.float64) * float(self._index.time_base)
        place, end = np.searchsorted(self._times, times, "right"), np.searchsorted(self._times, times + MUCH_WITHIN_S, "right")
        following = self._bytes[end] - self._bytes[place]
        return {stamp for stamp, is_much in zip(pts, following > share * self._own_whole[place - 1], strict=True) if is_much}

    def is_followed_by_sync(self, pts: Sequence[int]) -> set[int]:
        """Return those of these PTS behind which a sync frame comes within half a second: encoders put several into one dissolve.

        Such a dissolve is no burst, since sync packets hold a whole picture whatever it shows.
        """
        stamps, sync = np.asarray(pts, np.float64), np.append(self._index.sync_pts.astype(np.float64), np.inf)
        is_soon = sync[np.searchsorted(sync, stamps, side="right")] - stamps <= FOLLOWED_WITHIN_S / float(self._index.time_base)
        return {stamp for stamp, soon in zip(pts, is_soon.tolist(), strict=True) if soon}

    def _strongest_burst(self, times: Seconds, around_s: tuple[float, float]) -> Numbers:
        """Return the strongest burst that begins around each time, as a share of a whole new picture."""
        first, last = (np.searchsorted(self._times, times + edge) for edge in around_s)
        edges = np.stack([first, np.maximum(last, first + 1)], axis=1).ravel()
        return np.asarray(np.maximum.reduceat(np.append(self._burst, 0.0), edges.clip(max=len(self._burst)))[::2], np.float64)

    def unseen(self, most: int, *, deepest: int | None = None) -> list[int]:
        """Return PTS of frames behind changes of the picture that no sync frame shows: the `most` strongest, in time order.

        Args:
            deepest: of changes that begin more than so many frames behind a sync frame none, since they are expensive to decode.
        """
        return sorted({change.settled_pts for change in self.unseen_changes(most, deepest=deepest)})

    def unseen_changes(self, most: int, *, deepest: int | None = None) -> list[UnseenChange]:
        """Return changes of the picture that no sync frame shows: the `most` strongest, the strongest first; arguments as of `unseen`."""
        tick_s = float(self._index.time_base)
        shown, sync = self._index.shown_pts.astype(np.float64) * tick_s, self._index.sync_pts.astype(np.float64) * tick_s
        burst = self._burst[np.searchsorted(self._times, shown)]
        before, behind = (self._strongest_burst(shown, edges) for edges in (BEFORE_BURST_S, BEHIND_BURST_S))
        alone = burst.clip(max=MOST_BURST) / (LEAST_AROUND + np.maximum(before, behind))
        following = np.searchsorted(sync, shown, side="right")
        ahead = np.concatenate([sync, [np.inf]])[following] - shown
        depth = np.arange(len(shown)) - np.searchsorted(shown, np.concatenate([[-np.inf], sync]))[following]
        is_deep = depth > (len(shown) if deepest is None else deepest)
        strength = np.where(
            is_deep | (ahead < SHOWN_BY_SYNC_S) | (burst < NEW_PICTURE), 0.0, alone * np.sqrt(ahead.clip(max=LONG_UNSEEN_S))
        )
        found: list[int] = []
        for place in np.argsort(-strength, kind="stable")[: 100 * most].tolist():
            if strength[place] <= 0 or len(found) == most:
                break
            if all(abs(shown[place] - shown[other]) > SETTLED_S for other in found):
                found.append(place)
        settled = np.searchsorted(shown, shown[found] + SETTLED_S).tolist()
        pts = self._index.shown_pts
        return [
            UnseenChange(int(pts[place]), int(pts[later]), float(strength[place]))
            for place, later in zip(found, settled, strict=True)
            if later < len(pts)
        ]

    def moving(self, known: Sequence[int]) -> list[int]:
        """Return PTS of the frames that are shown, without those between two known ones (sorted PTS) between which nothing changes."""
        edges = np.searchsorted(self._times, np.asarray(known, np.int64) * float(self._index.time_base), side="right")
        still = np.diff(self._bytes[edges]) < STILL_BYTES * np.diff(self._count[edges])
        shown = self._index.shown_pts
        gap = np.searchsorted(known, shown) - 1  # the known frames themselves end the gap before them
        inside = (gap >= 0) & (gap < len(still)) & ~np.isin(shown, known)
        return [int(pts) for pts in shown[~(inside & np.append(still, False)[np.clip(gap, 0, len(still))])]]

    def goes_on(self, pts: int) -> bool:
        """Return whether the shot goes on to the next sync frame behind this PTS: it came because the GOP was full, not at a cut.

        False where that cannot be told, as with encoders that put sync frames at equal distances whatever they show.
        """
        sync = self._index.sync_pts
        if len(sync) < 3:
            return False
        lengths = np.diff(sync)
        full = lengths >= lengths.max() * FULL_GOP
        following = int(np.searchsorted(sync, pts, side="right"))
        return bool(0 < following < len(sync) and full[following - 1] and full.mean() < MOSTLY_FULL)

    def _mean(self, times: npt.NDArray[np.floating], window_s: tuple[float, float], *, behind: bool = False) -> Seconds:
        """Return the mean size of the packets other than sync packets in [start, end) around each time, or in (start, end]; else NaN."""
        a, b = (np.searchsorted(self._times, times + edge, "right" if behind else "left") for edge in window_s)
        count = self._count[b] - self._count[a]
        return np.asarray((self._bytes[b] - self._bytes[a]) / np.where(count > 0, count, np.nan), np.float64)


def _bursts(times: Seconds, sizes: npt.NDArray[np.int64], is_sync: npt.NDArray[np.bool_], whole: Numbers) -> Numbers:
    """Return for each packet what those of the next half second hold above the usual, as a share of a whole new picture: float64 (N,).

    Sync packets hold nothing above the usual: they hold a whole picture whatever it shows.

    Args:
        times: of the packets in seconds, ascending (N,).
        whole: bytes of a whole picture around each packet (N,).
    """
    others = np.where(is_sync, 0, sizes)
    above = np.cumsum(np.concatenate([[0.0], np.maximum(0.0, others - _usual(others[~is_sync], is_sync))]))
    ends = np.searchsorted(times, times + BURST_S)
    return np.asarray((above[ends] - above[:-1]) / np.maximum(whole, 1.0), np.float64)


def _usual(sizes: npt.NDArray[np.int64], is_sync: npt.NDArray[np.bool_]) -> Numbers:
    """Return the size that most packets around each of all N are below; `sizes` are of those that are no sync packets."""
    if len(sizes) == 0:
        return np.zeros(len(is_sync))
    width = min(USUAL_PACKETS, len(sizes))
    every, rank = max(1, width // 16), int(USUAL_SHARE * (width - 1))  # what is usual changes slowly
    windows = np.lib.stride_tricks.sliding_window_view(sizes, width)[::every]
    parts = np.array_split(windows, -(-len(windows) // WINDOWS_AT_ONCE))  # views, until they are sorted
    usual = np.concatenate([np.partition(part, rank, axis=1)[:, rank] for part in parts])
    middles = np.arange(len(usual)) * every + width // 2
    places = np.cumsum(~is_sync) - 1
    return np.asarray(usual[np.searchsorted(middles, places).clip(max=len(usual) - 1)], np.float64)


def _whole_picture(sizes: npt.NDArray[np.int64], is_sync: npt.NDArray[np.bool_]) -> Numbers:
    """Return the bytes of a whole picture around each of N packets: the median of the six sync packets nearest to it in order."""
    sync = sizes[is_sync]
    if len(sync) < MANY_SYNC:
        return np.full(len(sizes), quantile(sizes, WHOLE_PICTURE_SHARE))
    behind = np.cumsum(is_sync)
    starts = np.clip(np.arange(len(sync) + 1) - 3, 0, max(0, len(sync) - 6))
    medians = np.array([median(sync[start : start + 6]) for start in starts.tolist()])
    return np.asarray(medians[behind], np.float64)
