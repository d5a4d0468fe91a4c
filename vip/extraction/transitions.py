"""Transitions read from the sizes of packets, without decoding: where a video is restless, and where a new picture begins.

Packets that change much of the picture are large. A cross-fade, a flash, a wipe or the start of a fast pan is a row of
packets far larger than those around it, so a frame in or beside such a row may be half of one shot and half of the next.
A hard cut is one large packet, mostly a sync one, and no reason to avoid the frame behind it; but where encoders put no
sync frame at a cut (or a cross-fade), only the sizes show that there is a shot that no sync frame shows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from vip.records import PacketIndex

# Seconds before and behind a frame: its neighbourhood, and what is usual around that.
NEAR_BEFORE_S, USUAL_BEFORE_S = (-0.3, 0.0), (-2.3, -0.5)
NEAR_AFTER_S, USUAL_AFTER_S = (0.0, 0.4), (0.6, 2.0)
BEFORE, AFTER = 1.8, 2.2  # times the usual. Of 700 candidates of 12 mixes, all 6 in a cross-fade of H.264 or HEVC lie above; so do 13 %
LEAST_USUAL = 0.05  # of the mean packet of the file: in a still stretch everything is many times the usual

CHANGE_S, BEFORE_CHANGE_S = (0.0, 0.35), (-2.0, -0.1)
CHANGE = 2.5  # times the usual on both sides; a quick movement stays below
SHOWN_BY_SYNC_S = (0.3, 1.3)  # so near behind and before a sync frame, that one shows what is new
STILL_BYTES = 128  # a packet; where nothing moves, encoders spend 30 to 80 on a frame of 1080p
FULL_GOP = 0.98  # of the longest GOP
MOSTLY_FULL = 0.8  # of the GOPs: then their ends say nothing about cuts
SETTLED_S = 0.9  # from the change to the frame to look at: most cross-fades are over

Seconds = npt.NDArray[np.float64]


class PacketActivity:
    """Sums over the packets of a video in time order, so that any frame is judged in O(log N)."""

    def __init__(self, index: PacketIndex) -> None:
        order = np.argsort(index.pts, kind="stable")
        self._index = index
        self._times = index.pts[order] * float(index.time_base)
        counted = ~index.is_sync[order]
        self._count = np.concatenate([[0], np.cumsum(counted)])
        self._bytes = np.concatenate([[0], np.cumsum(np.where(counted, index.size_bytes[order], 0))])
        self._least = LEAST_USUAL * self._bytes[-1] / max(1, int(self._count[-1]))

    def in_transition(self, pts: Sequence[int]) -> npt.NDArray[np.bool_]:
        """Return, as bool (N,), whether the packets just before or just behind each of these frames are far larger than usual there."""
        times = np.asarray(pts, np.int64) * float(self._index.time_base)
        before, usual_before = self._mean(times, NEAR_BEFORE_S), self._mean(times, USUAL_BEFORE_S)
        after, usual_after = self._mean(times, NEAR_AFTER_S, behind=True), self._mean(times, USUAL_AFTER_S)
        with np.errstate(invalid="ignore"):  # NaN where there is nothing to compare with, and then it is calm
            return np.asarray((before > BEFORE * (usual_before + self._least)) | (after > AFTER * (usual_after + self._least)), bool)

    def unseen(self, most: int) -> list[int]:
        """Return PTS of calm frames behind changes of the picture that no sync frame shows: the `most` strongest, in time order."""
        shown, sync = self._index.shown_pts * float(self._index.time_base), self._index.sync_pts * float(self._index.time_base)
        usual = np.fmax(self._mean(shown, BEFORE_CHANGE_S), self._mean(shown, USUAL_AFTER_S)) + self._least
        with np.errstate(invalid="ignore"):  # 0 / 0 where no packet but the sync ones holds anything
            strength = np.nan_to_num(self._mean(shown, CHANGE_S) / usual)
        following = np.searchsorted(sync, shown, side="right")
        behind = shown - np.concatenate([[-np.inf], sync])[following]
        ahead = np.concatenate([sync, [np.inf]])[following] - shown
        strength[(behind < SHOWN_BY_SYNC_S[0]) | (ahead < SHOWN_BY_SYNC_S[1])] = 0.0
        found: list[int] = []
        for place in np.argsort(-strength, kind="stable")[: 100 * most].tolist():
            if strength[place] < CHANGE or len(found) == most:
                break
            if all(abs(shown[place] - shown[other]) > SETTLED_S for other in found):
                found.append(place)
        settled = np.searchsorted(shown, shown[found] + SETTLED_S)
        return [int(pts) for pts in np.unique(self._index.shown_pts[settled[settled < len(shown)]])]

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
