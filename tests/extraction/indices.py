"""Packet indices made by hand: sizes and sync packets as wanted, 25 frames a second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from vip.records import PacketIndex

RATE = 25
TICKS = 40  # a frame, at a time base of 1 ms
TIME_BASE = Fraction(1, 1000)
USUAL, LARGE, SYNC = 1000, 8000, 30_000  # bytes


def index_of(sizes: Sequence[int] | np.ndarray, sync: Sequence[int] = (0,), *, order: Sequence[int] | None = None) -> PacketIndex:
    """One packet for each size; `sync` are the frames, counted from 0, that are sync frames; `order` that in which packets come."""
    count = len(sizes)
    pts = np.arange(count, dtype=np.int64) * TICKS
    rows = np.arange(count) if order is None else np.asarray(order, np.intp)
    is_sync = np.isin(np.arange(count), list(sync))
    every = np.ones(count, bool)
    return PacketIndex(
        pts[rows], np.arange(count, dtype=np.int64) * TICKS, is_sync[rows], np.asarray(sizes, np.int64)[rows], every, TIME_BASE
    )


def steady(seconds: float, *, sync_every_s: float | None = None, bursts: Mapping[float, float] | None = None) -> PacketIndex:
    """Packets of the usual size, slightly uneven, with large sync packets, and bursts: start in seconds -> length in seconds."""
    count = round(seconds * RATE)
    frames = np.arange(count)
    sizes = USUAL + 100 * (frames * 7 % 5)
    for start_s, length_s in (bursts or {}).items():
        sizes[round(start_s * RATE) : round((start_s + length_s) * RATE)] = LARGE
    sync = range(0, count, round(sync_every_s * RATE)) if sync_every_s else [0]
    sizes[list(sync)] = SYNC
    return index_of(sizes, sync)


def at(*times_s: float) -> list[int]:
    """PTS of the frames at these times."""
    return [round(time_s * RATE) * TICKS for time_s in times_s]
