"""The part of a video that is used: --start and --end, against the PTS that the file states."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor

import numpy as np

from vip.errors import InputError
from vip.records import PacketIndex
from vip.timecode import timecode
from vip.wording import option

EARLIEST, LATEST = -(2**63), 2**63 - 1  # of an int64


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A range from `start_s` to `end_s`, both included; None: without a bound."""

    start_s: float | None = None
    end_s: float | None = None

    def ticks(self, time_base: Fraction) -> tuple[int, int]:
        """Return the first and the last PTS that lie within."""
        slack = Fraction(1, 10**6)  # a PTS written with six decimals, as ffprobe prints it, means that frame
        first = EARLIEST if self.start_s is None else ceil((Fraction(self.start_s) - slack) / time_base)
        last = LATEST if self.end_s is None else floor((Fraction(self.end_s) + slack) / time_base)
        return min(max(first, EARLIEST), LATEST), min(max(last, EARLIEST), LATEST)

    def restrict(self, index: PacketIndex, name: str, *, begin: int | None = None) -> PacketIndex:
        """Return the index with what lies outside hidden; decoding may still start at a sync frame before the span.

        Args:
            begin: PTS of the first frame of the video, where the index does not hold it.

        Raises:
            InputError: nothing lies within.
        """
        if self.start_s is None and self.end_s is None:
            return index
        earliest, latest = self.ticks(index.time_base)
        shown = index.is_shown & (index.pts >= earliest) & (index.pts <= latest)
        if not shown.any():
            there = index.shown_pts
            first, last = (timecode(float(int(pts) * index.time_base)) for pts in (there[0] if begin is None else begin, there[-1]))
            kind = "sync frame" if index.is_sparse else "frame"
            raise InputError(f"{name} has no {kind} {self}: it goes from {first} to {last}. Change {option('start')} or {option('end')}.")
        return replace(index, is_shown=np.asarray(shown, bool))

    def __str__(self) -> str:
        start, end = (None if time_s is None else timecode(time_s) for time_s in (self.start_s, self.end_s))
        return f"between {start} and {end}" if start and end else f"from {start} on" if start else f"up to {end}"


WHOLE = TimeRange()
