"""The packet index: which frames there are and where decoding can start, read by demuxing, without decoding (but see `_by_decoding`)."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from vip.errors import InputError
from vip.records import PacketIndex
from vip.video.container import NOTHING_DECODES
from vip.video.packets import PacketCache
from vip.video.time_range import TimeRange

ANIMATIONS = frozenset({"gif", "apng"})  # formats of FFmpeg
LEAST_DIFFERENT = 0.9  # of the PTS, or they are no times

VideoPacket: TypeAlias = "Packet[VideoStream]"


@dataclass(frozen=True, slots=True)
class Header:
    """Facts of a container ahead of its packets."""

    time_base: Fraction
    formats: frozenset[str]
    frames: int
    """Those of the stream; 0 where they are not counted."""
    duration_s: float | None
    rate: Fraction
    reorders: bool
    """The decoder shows frames in another order than that of the packets."""


class Indexable(Protocol):
    """An open video, as its index needs it."""

    @property
    def name(self) -> str: ...

    @property
    def header(self) -> Header: ...

    def packets(self) -> Iterator[VideoPacket]:
        """Yield all packets, from the start of the file or from where it was sought."""

    def all_frames(self) -> Iterator[VideoFrame]:
        """Yield all frames, by decoding from the start of the file."""

    def starts_at(self, index: PacketIndex, position: int) -> bool:
        """Return whether the decoder calls all it gives for this packet alone key frames."""

    def lose(self, sentence: str) -> None:
        """Note what cannot be read."""


class Columns:
    """The columns of an index while it grows: 26 bytes a packet, where a list of tuples takes 250."""

    def __init__(self) -> None:
        self.pts, self.dts, self.size, self.sync, self.shown = array("q"), array("q"), array("q"), array("b"), array("b")

    def add(self, packet: VideoPacket) -> int:
        """Add a row, and return its PTS."""
        pts, dts = packet.pts, packet.dts
        if pts is None:
            pts = dts or 0
        self.pts.append(pts)
        self.dts.append(pts if dts is None else dts)
        self.size.append(packet.size)
        self.sync.append(packet.is_keyframe)
        self.shown.append(not packet.is_discard)
        return pts

    def __len__(self) -> int:
        return len(self.pts)

    def index(self, time_base: Fraction, *, is_sparse: bool = False) -> PacketIndex:
        pts, dts, size = (np.frombuffer(column, np.int64) for column in (self.pts, self.dts, self.size))
        sync, shown = (np.frombuffer(column, np.bool_) for column in (self.sync, self.shown))
        return PacketIndex(pts, dts, sync, size, shown if shown.any() else np.ones(len(self), bool), time_base, is_sparse=is_sparse)


def read_index(video: Indexable, span: TimeRange, cache: PacketCache, *, begin: int | None = None) -> PacketIndex:
    """Return the index of the frames within the span; the packets go into the cache as they pass.

    Args:
        begin: PTS of the first frame of the file, where the packets begin at a later one.

    Raises:
        InputError: there is no packet, nothing decodes, or nothing lies within the span.
    """
    columns, timeless, ended = _read_packets(video, span, cache)
    if not columns:
        raise InputError(f"{video.name} holds a video stream without a readable frame. The file is cut off or damaged.")
    index = columns.index(video.header.time_base)
    if timeless or _times_are_wrong(video.header, index):
        cache.clear()
        return span.restrict(_index_by_decoding(video, index), video.name, begin=begin)
    if begin is None and not ended:
        _note_truncation(video, index)
    return span.restrict(_believe_decoder(video, index), video.name, begin=begin)


def _read_packets(video: Indexable, span: TimeRange, cache: PacketCache) -> tuple[Columns, bool, bool]:
    """Return the columns; whether a packet had no PTS; whether reading ended behind the span, with some of it seen."""
    columns, timeless, seen = Columns(), False, False
    first, last = span.ticks(video.header.time_base)
    for packet in video.packets():
        timeless |= packet.pts is None
        pts = columns.add(packet)
        seen |= first <= pts <= last
        if packet.is_keyframe and pts < first:
            cache.clear()  # what lies before it is not needed
        cache.keep(len(columns) - 1, packet)
        if seen and not timeless and packet.dts is not None and packet.dts > last:
            return columns, timeless, True  # no later packet is shown before its DTS
    return columns, timeless, False


def _note_truncation(video: Indexable, index: PacketIndex) -> None:
    """Note a truncated file: MP4 counts its frames ahead of the data; other containers may state a duration."""
    named, header_s = video.header.frames, video.header.duration_s
    there_s = float(int(np.ptp(index.pts)) * index.time_base)
    hidden = named and header_s and header_s - there_s < 1.5 * header_s / named  # by an edit list, which leaves no gap at the end
    if named and len(index) < named and not hidden:
        video.lose(f"The file ends early: {len(index)} of its {named} frames are there, and they are used.")
    elif header_s and not named and there_s < 0.9 * header_s - 2:
        video.lose(f"The file ends early: {there_s:.1f} of {header_s:.1f} s are there, and they are used.")


def _times_are_wrong(header: Header, index: PacketIndex) -> bool:
    """Return whether the order of the PTS is not that of the pictures.

    AVI has no PTS; for H.264 that reorders frames FFmpeg makes some up, in the order of the packets. And in
    recordings put together from several, each with a clock of its own, the same times come again.
    """
    made_up = "avi" in header.formats and header.reorders and bool((np.diff(index.pts) > 0).all())
    differ = 1 + np.count_nonzero(np.diff(np.sort(index.pts)))  # np.unique would load numpy.ma
    return made_up or bool(differ < LEAST_DIFFERENT * len(index))


def _believe_decoder(video: Indexable, index: PacketIndex) -> PacketIndex:
    """Ask the decoder about three sync packets: MP4 without a sync table flags every packet as sync.

    Of animations nobody knows: they may draw one frame over the one before, and the next one whole.
    """
    only_first = replace(index, is_sync=np.arange(len(index)) == 0)
    if not ANIMATIONS.isdisjoint(video.header.formats):
        return only_first
    if len(index) == 1 or index.is_sync.mean() < 0.9:
        return index
    sync = np.flatnonzero(index.is_sync)
    probes = {int(sync[1]), int(sync[len(sync) // 2]), int(sync[-1])}
    return index if all(video.starts_at(index, position) for position in probes) else only_first


def _index_by_decoding(video: Indexable, packets: PacketIndex) -> PacketIndex:
    """Return files without PTS (raw streams, old AVI): the decoder's output order and its DTS say when a frame is shown."""
    tick = max(1, round(1 / (video.header.rate * packets.time_base)))
    times = [(frame.pts, frame.dts) for frame in video.all_frames()]
    if not times:
        raise InputError(NOTHING_DECODES.format(video.name))
    stamps, _ = min((_force_increasing(column, tick) for column in zip(*times, strict=True)), key=lambda increasing: increasing[1])
    pts: npt.NDArray[np.int64] = np.array(stamps, np.int64)
    sizes = np.resize(packets.size_bytes, len(pts))
    return PacketIndex(pts, pts, np.arange(len(pts)) == 0, sizes, np.ones(len(pts), bool), packets.time_base, by_decoding=True)


def _force_increasing(stamps: Sequence[int | None], tick: int) -> tuple[list[int], int]:
    """Return the stamps with each that is missing or goes back put one tick behind the one before; and how many those are."""
    increasing: list[int] = []
    faults = 0
    for stamp in stamps:
        if stamp is None or (increasing and stamp <= increasing[-1]):
            faults += 1
            stamp = increasing[-1] + tick if increasing else 0
        increasing.append(stamp)
    return increasing, faults
