"""The index of a video on a server: some sync frames from the container's own table, each looked up with one small request.

Only where there is no such table, or too few sync frames to choose from, is the file read from its start to its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from vip.errors import InputError
from vip.records import PacketIndex
from vip.video.index import Columns, Header, Indexable, read_index
from vip.video.packets import PacketCache
from vip.video.time_range import TimeRange
from vip.wording import counted, option

FEWEST_SYNC = 24  # with fewer candidates, the sampler would ask for frames between them
MOST_SYNC = 480  # the sampler takes no more
LEAST_COVERED = 0.5  # of the duration; a table that ends earlier is one of a file in fragments
TABLES = frozenset({"mov", "matroska"})  # formats whose table holds the times of the frames


class Seekable(Indexable, Protocol):
    """An open video whose container may have a table of sync frames."""

    def sync_table(self) -> list[int]:
        """Return PTS of the sync frames to which the container can seek, or nearly so."""

    def seek_to(self, stamp: int | None) -> None:
        """Let `packets` begin at the sync frame with this PTS, or at the start of the file."""


def read_remote_index(video: Seekable, span: TimeRange, cache: PacketCache) -> PacketIndex:
    """Return a sparse index of the sync frames within the span, or where that is not possible a whole one.

    Raises:
        InputError: as `read_index` does, or the server fails.
    """
    table = _check_table(sorted(video.sync_table()), video.header)
    first, last = span.ticks(video.header.time_base)
    before = [stamp for stamp in table if stamp <= first]
    within = [stamp for stamp in table if stamp <= last][max(0, len(before) - 1) :]
    if len(within) >= FEWEST_SYNC:
        return span.restrict(_sample_packets(video, within, cache), video.name)
    if not within and table:
        return span.restrict(_sample_packets(video, [table[0], table[-1]], cache), video.name)  # raises, with the range of the video
    part = f"the part from {option('start')} to {option('end')} was" if len(within) < len(table) else "the file was"
    count = counted(len(within), "sync frame")
    why = f"{count} cannot be chosen from" if table else "The file has no table of its sync frames"
    video.lose(f"{why}, so {part} read from the server as a whole.")
    video.seek_to(before[-1] if before else None)
    return read_index(video, span, cache, begin=table[0] if before else None)


def _check_table(table: list[int], header: Header) -> list[int]:
    """Return the table, or nothing where it cannot be trusted."""
    covered_s = float((table[-1] - table[0]) * header.time_base) if table else 0.0
    known = not header.formats.isdisjoint(TABLES) and covered_s >= LEAST_COVERED * (header.duration_s or 0.0)
    return table if known else []


def _sample_packets(video: Seekable, table: Sequence[int], cache: PacketCache) -> PacketIndex:
    """Return exact PTS and sizes of at most `MOST_SYNC` of them, spread evenly."""
    columns = Columns()
    seen: set[int] = set()
    for place in np.unique(np.linspace(0, len(table) - 1, MOST_SYNC).round().astype(int)).tolist():
        video.seek_to(table[place])
        packet = next(video.packets(), None)
        if packet is None or packet.pts is None or not packet.is_keyframe or packet.pts in seen:
            continue
        seen.add(packet.pts)
        cache.keep(len(columns), packet)
        columns.add(packet)
    if not columns:
        raise InputError(f"{video.name} holds a video stream without a readable frame. The file is cut off or damaged.")
    return columns.index(video.header.time_base, is_sparse=True)
