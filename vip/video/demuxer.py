"""The open files of one reader: container, stream and decoder, and the packets of the stream, in order or by their place in the index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from itertools import islice, takewhile
from threading import Event
from typing import TYPE_CHECKING

import av
import av.error
import numpy as np
import numpy.typing as npt
from av.packet import Packet
from av.video.reformatter import VideoReformatter
from av.video.stream import VideoStream

from vip.records import PacketIndex
from vip.video.container import decoder_of, open_container
from vip.video.index import Header
from vip.video.local import Local
from vip.video.packets import PacketCache
from vip.video.source import AddressSource, FileSource
from vip.video.stall_guard import inside_ffmpeg

if TYPE_CHECKING:
    from vip.video.remote import Remote

LINEAR_CONTAINERS = frozenset({"mpegts", "mpeg", "flv", "asf"})  # without an index: reading on costs less than a seek
READ_ON_PACKETS = 1024  # how far reading on may go before a seek is tried all the same
SEARCH_PACKETS = 4096  # how far behind the landing place of a seek a packet is looked for


class OpenFile:
    """The packets of an open video file. Its user decodes them, sets `index`, and primes the decoder."""

    source: FileSource | AddressSource
    index: PacketIndex
    _held: Local | Remote
    _which: int
    _threads: int
    _sync: npt.NDArray[np.intp]
    _cached: PacketCache
    _losses: list[str]
    _abandoned: Event

    def _prime(self) -> None:
        """Show the decoder the first packet."""
        raise NotImplementedError

    def _open(self) -> None:
        self._container, self._stream, self._file = open_container(self._held, which=self._which)
        self._decoder = decoder_of(self._stream, self._threads)
        self._threads = self._decoder.thread_count
        self._reformatter = VideoReformatter()
        self._primed = self._hurt = self._cannot_open = False
        self._packets: Iterator[Packet[VideoStream]] = self._demux()
        self._next = 0  # the index position of what _packets gives next

    def _rewind(self) -> None:
        self._close_container()
        self._open()

    def _close_container(self) -> None:
        self._packets = iter(())  # the generator refers back to this object, and would keep the decoder's pictures alive
        self._container.close()
        self._file.close()

    @property
    def name(self) -> str:
        return str(self.source)

    @property
    def header(self) -> Header:
        stream, container = self._stream, self._container
        if stream.duration:
            duration_s: float | None = float(stream.duration * (stream.time_base or 0))
        else:
            duration_s = float(Fraction(container.duration, av.time_base)) if container.duration else None
        return Header(
            time_base=stream.time_base or Fraction(1, 90_000),
            formats=frozenset(container.format.name.split(",")),
            frames=stream.frames,
            duration_s=duration_s,
            rate=stream.average_rate or Fraction(25),
            reorders=self._decoder.has_b_frames,
        )

    def packets(self) -> Iterator[Packet[VideoStream]]:
        """Yield all packets from where the file stands, which is its start once it was opened."""
        for packet in self._packets:
            self._next += 1
            yield packet

    def sync_table(self) -> list[int]:
        """Return PTS of the sync frames to which the container can seek, as its own table has them, or nearly so."""
        with suppress(av.error.FFmpegError):
            self._container.seek(0, stream=self._stream)  # Matroska reads its table at the first seek
        first = next(self._demux(), None)
        late = first.pts - first.dts if first and first.pts is not None and first.dts is not None and "mov" in self.header.formats else 0
        return [entry.timestamp + late for entry in self._stream.index_entries if entry.is_keyframe]  # MP4 has DTS there

    def seek_to(self, stamp: int | None) -> None:
        """Let `packets` begin at the sync frame with this PTS, or at the start of the file."""
        if stamp is None:
            self._rewind()
            return
        with suppress(av.error.FFmpegError):  # what comes then shows that it is another one
            self._container.seek(stamp, stream=self._stream)
        self._packets, self._next = self._demux(), 0

    def lose(self, sentence: str) -> None:
        """Note what cannot be read."""
        self._losses.append(sentence)

    def _demux(self) -> Iterator[Packet[VideoStream]]:
        """Yield the packets of the stream from where the container stands, to its end or to where it breaks off."""
        try:
            for packet in inside_ffmpeg.each(self._container.demux(self._stream)):
                if self._abandoned.is_set():
                    return
                if packet.size:
                    yield packet
        except IndexError:  # PyAV's, at the end of a file in which a stream appeared that was not there at the start: broadcasts have such
            return
        except av.error.FFmpegError as exc:
            self._losses.append(f"The file is damaged ({exc.strerror}); what can be read is used.")

    def _read(self, first: int, last: int) -> Iterator[Packet[VideoStream]]:
        """Yield the packets first … last of the index, as far as they were kept without touching the file."""
        kept = list(takewhile(lambda packet: packet is not None, map(self._cached.take, range(first, min(last + 1, len(self.index))))))
        first += len(kept)
        packet = self._packet_at(first) if first <= last else None  # before any packet goes to the decoder: a seek empties it
        yield from (held for held in kept if held is not None)
        while packet is not None:
            yield packet
            packet = self._take_next() if self._next <= last else None

    def _take_next(self) -> Packet[VideoStream] | None:
        self._next += 1
        return next(self._packets, None)

    def _packet_at(self, position: int) -> Packet[VideoStream] | None:
        """Return the packet at `position` of the index, by reading on where that is cheap, by seeking otherwise; None behind the last."""
        if position >= len(self.index):
            return None
        if self.index.is_sparse:
            self.seek_to(int(self.index.pts[position]))
            self._next = position + 1  # what lies between two rows is not wanted
            return next(self._packets, None)
        linear = not LINEAR_CONTAINERS.isdisjoint(self._container.format.name.split(","))
        if 0 <= position - self._next <= (READ_ON_PACKETS if linear else 0) and (packet := self._search(position, READ_ON_PACKETS)):
            return packet
        earlier = self._sync[: np.searchsorted(self._sync, position)]
        stamps = self.index.pts if "mov" in self._container.format.name.split(",") else self.index.dts  # what FFmpeg compares with
        for landing in (position, *earlier[-1:-3:-1].tolist()):
            try:
                with inside_ffmpeg:
                    self._container.seek(int(stamps[landing]), stream=self._stream)
            except av.error.FFmpegError:
                break
            self._packets = self._demux()
            if packet := self._search(position, SEARCH_PACKETS):
                return packet
        self._rewind()
        if position > 0:
            self._prime()
        skipped, self._next = position - self._next, position + 1
        return next(islice(self._packets, skipped, None), None)

    def _search(self, position: int, most: int) -> Packet[VideoStream] | None:
        """Read until the packet at `position` comes; None if what comes lies behind it, or after `most` packets."""
        pts, dts, size = int(self.index.pts[position]), int(self.index.dts[position]), int(self.index.size_bytes[position])
        for packet in islice(self._packets, most):
            if packet.pts == pts and packet.size == size:
                self._next = position + 1
                return packet
            if packet.dts is not None and packet.dts > dts:
                return None
        return None
