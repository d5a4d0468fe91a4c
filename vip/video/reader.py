"""Video files: open, index the packets, decode just the frames that are asked for.

In comes a file, out come its packet index and its frames as a player shows them (`vip.pixels`). Times are the PTS that
the file states. Decoding starts at the sync frame before a wanted frame and ends at the last one wanted of that GOP.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, cast

import av
import av.error
import numpy as np
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from vip.errors import InputError
from vip.pixels import Turn, degrees_of, shown_size, to_grey, to_image, turn_of
from vip.protocols import Glance, PictureKeeper
from vip.records import Frame, GreyPicture, PacketIndex, VideoInfo
from vip.video.container import NOTHING_DECODES, pixel_aspect_of
from vip.video.demuxer import OpenFile
from vip.video.frame_cache import MOST_BYTES, FrameCache
from vip.video.index import read_index
from vip.video.local import Local
from vip.video.packets import PacketCache
from vip.video.remote_index import read_remote_index
from vip.video.size import TOO_LARGE
from vip.video.source import AddressSource, FileSource
from vip.video.stall_guard import inside_ffmpeg
from vip.video.time_range import WHOLE, TimeRange
from vip.video.twins import Twins
from vip.wording import again

if TYPE_CHECKING:
    from vip.video.remote import Remote

MOST_REORDERED = 4  # frames shown before one that they need: that it is damaged comes out only behind them
# FFmpeg's decoders of these ignore skip_frame; dav1d reads it once, when it is opened, and then leaves frames out for good
PASSING_OVER_NONE = frozenset({"vp8", "vp9", "av1"})
NEVER_EMPTIED = frozenset({"apng"})  # decoders that draw the first frame of a file over the last one they drew, whatever they are told
GLANCE_SIDE_PX = 64  # enough to tell a dissolve
LONG_FRAMES = 30_000  # each open file holds its table, some 60 bytes a frame, whether it is read or waits
SHORT_FRAMES = 1_000  # half a minute: a video with so few frames is short
LATE_PACKETS = 64  # some streams show a sync frame only after more packets (recovery points)


class Video(OpenFile):
    """An open video file. Not for several threads at once: each takes its own `reopen()`."""

    def __init__(
        self,
        source: Path | FileSource | AddressSource,
        *,
        threads: int = 1,
        stream: int = 0,
        span: TimeRange = WHOLE,
        index: PacketIndex | None = None,
        held: Local | Remote | None = None,
        twins: Twins[Video] | None = None,
    ) -> None:
        """Open the file and index its packets, without decoding (but see `vip.video.index`).

        Args:
            threads: of the decoder; 0 means as many as there are cores, which helps within a long GOP only.
            stream: which of several video streams, counted from 0.
            span: the part that is used; frames outside are not shown.
            index: of the same file, to skip reading it again.
            held: of the same file, to share what was read of it.
            twins: of the same file, among which this one waits when it is closed.

        Raises:
            InputError: missing, not a video, without a video stream, without a readable packet, or nothing in the span.
        """
        self.source = FileSource(source) if isinstance(source, Path) else source
        self._losses: list[str] = []
        self._damaged: set[int | None] = set()
        self._threads, self._threads_asked, self._which = threads, threads, stream
        self._turns: dict[int, Turn] = {}
        self._cached = PacketCache(is_near=not self._is_remote)
        self._abandoned = Event()
        self._held = held or _open_source(self.source)
        self._is_twin = held is not None
        self._twins: Twins[Video] = twins or Twins()
        self._open()
        try:
            self._take(index if index is not None else self._read_index(span))
            self._kept = FrameCache(MOST_BYTES if len(self.index) <= SHORT_FRAMES else 0)
            if index is None and not self._stream.width:
                self._check_size()
        except BaseException:
            self.close()
            raise

    def _read_index(self, span: TimeRange) -> PacketIndex:
        """Read the index in a thread of its own: Ctrl-C would be lost in the midst of FFmpeg, which asks Python for the bytes."""
        read = read_remote_index if self._is_remote else read_index
        with ThreadPoolExecutor(1, "vip-index") as pool:
            try:
                index = pool.submit(read, self, span, self._cached).result()
            except BaseException:
                self._abandoned.set()
                raise
        self._held.finish()
        return replace(index, decodes_all=self._decodes_all)

    @property
    def _is_remote(self) -> bool:
        return isinstance(self.source, AddressSource)

    @property
    def _decodes_all(self) -> bool:
        """Whether the decoder passes over no frame, whatever it is asked."""
        return self._decoder.codec.canonical_name in PASSING_OVER_NONE

    def _check_size(self) -> None:
        """Refuse an absurd size, which FFmpeg takes back: then there is none, and nothing decodes."""
        try:
            self._first_frame()
        except InputError as exc:
            raise InputError(TOO_LARGE.format(self.source)) from exc

    def _take(self, index: PacketIndex) -> None:
        self.index = index
        self._order, self._sync = index.by_time, index.sync_rows

    def _is_shown(self, pts: int) -> bool:
        """Return whether a packet is not hidden by an edit list, and within --start and --end."""
        found = int(np.searchsorted(self.index.pts, pts, sorter=self._order))
        return found < len(self._order) and bool(self.index.is_shown[self._order[found]])

    def reopen(self, *, threads: int = 1) -> Video:
        """Return the same file with a reader and a decoder of its own, sharing the index and the packets and frames that are kept.

        One that was closed is used again, as long as the first reader is open.
        """
        if (waiting := self._twins.take(threads)) is not None:
            return waiting
        if len(self.index) > LONG_FRAMES:
            for other in self._twins.give_up_others(threads):
                other._close_container()
        twin = Video(self.source, threads=threads, stream=self._which, index=self.index, held=self._held, twins=self._twins)
        twin._losses, twin._damaged, twin._turns = self._losses, self._damaged, self._turns
        twin._cached, twin._kept = self._cached, self._kept
        return twin

    def close(self) -> None:
        if not self._is_twin:
            for twin in (self, *self._twins.end()):
                twin._close_container()
            self._held.close()
            return
        may_wait = not (self._is_remote or self._hurt or self._cannot_open)  # connections may not, nor may a decoder that saw damage
        if not (may_wait and self._twins.leave(self, self._threads_asked)):
            self._close_container()

    def __enter__(self) -> Video:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Video({self.source.name!r}, {self.index!r})"

    # ------------------------------------------------------------ what the file says

    @property
    def losses(self) -> list[str]:
        """Losses so far, by this reader and its twins, one sentence each."""
        lost = len(self._damaged)
        damaged = f"{lost} damaged frame{'s were' if lost > 1 else ' was'} passed over."
        return [*dict.fromkeys(self._losses), *([damaged] if lost else [])]

    @property
    def time_base(self) -> Fraction:
        return self.index.time_base

    @property
    def pixel_aspect(self) -> Fraction:
        """Width of a stored pixel in units of its height."""
        return pixel_aspect_of(self._stream)

    def info(self) -> VideoInfo:
        """Return what the container says, the hash, and the size as displayed, for which the first readable frame is decoded.

        Raises:
            InputError: not one frame can be decoded, or the file has gone.
        """
        first = self._first_frame()
        width, height = shown_size(first, self.pixel_aspect, self._turn_of(first))
        shown = self.index.shown_pts
        state = self._held.state
        if state is None:
            raise InputError(f"{self.source} was there and is not any more. {again()} once it is back.")
        return VideoInfo(
            path=self.source.location,
            sha256=self._held.sha256(),
            size_bytes=state.size_bytes,
            modified_ns=state.modified_ns,
            container=self._container.format.name,
            codec=self._stream.codec_context.codec.canonical_name,
            pixel_format=first.format.name,
            width_px=width,
            height_px=height,
            rotation_deg=degrees_of(self._turn_of(first)),
            pixel_aspect_ratio=self.pixel_aspect,
            frame_rate=self._stream.average_rate or None,
            duration_s_from_header=self.header.duration_s,
            start_time_s=float(int(shown[0]) * self.time_base),
            end_time_s=float(int(shown[-1]) * self.time_base),
            frames=None if self.index.is_sparse else len(shown),
            sync_frames=len(self.index.sync_pts),
        )

    def _first_frame(self) -> VideoFrame:
        shown = self.index.shown_pts
        for pts in [*self.index.sync_pts[:8].tolist(), *shown[:: max(1, len(shown) // 16)].tolist()]:
            for frame in self._decode_frames([pts]):
                return frame
        raise InputError(NOTHING_DECODES.format(self.source))

    # ------------------------------------------------------------ what the index needs

    def all_frames(self) -> Iterator[VideoFrame]:
        """Yield all frames, by decoding from the start of the file; PTS and DTS as the decoder gives them."""
        self._rewind()
        yield from self._decode_all()

    def starts_at(self, index: PacketIndex, position: int) -> bool:
        """Return whether the decoder calls all it gives for this packet alone key frames."""
        self._take(index)
        frames = list(self._decode_packets(position, position))
        return bool(frames) and all(frame.key_frame for frame in frames)

    # ------------------------------------------------------------ decoding

    def frames(self, pts: Sequence[int], *, longest_side_px: int | None = None, keeper: PictureKeeper | None = None) -> Iterator[Frame]:
        """Decode the frames with these PTS, in time order; those that cannot be decoded are left out.

        Stop iterating early and what comes behind is not decoded.

        Args:
            keeper: is given each frame that it wants at full size, just before the small one is yielded.
        """
        self._check_decoder()
        for frame in self._decode_frames(sorted(set(pts))):
            yield from self._convert(frame, longest_side_px, keeper)

    def frames_near(
        self, pts: Sequence[int], *, longest_side_px: int | None = None, keeper: PictureKeeper | None = None
    ) -> Iterator[Frame]:
        """Yield a frame at or soon after each of these PTS, whichever needs the least work: frames that no other needs are skipped."""
        if self.index.by_decoding:
            yield from self.frames(pts, longest_side_px=longest_side_px, keeper=keeper)
            return
        self._check_decoder()
        reached = -math.inf
        for asked in self.groups(sorted(set(pts))):
            group = [stamp for stamp in asked if stamp > reached]
            if not group:
                continue
            positions = self._positions(group)
            self._decoder.skip_frame = "DEFAULT" if self._decodes_all else "NONREF"
            try:
                for frame in self._decode_packets(self._start_packet(positions[0]), max(positions)):
                    if group and frame.pts is not None and frame.pts >= group[0] and self._is_shown(frame.pts):
                        reached = frame.pts
                        group = [stamp for stamp in group if stamp > reached]
                        yield from self._convert(frame, longest_side_px, keeper)
            finally:
                self._decoder.skip_frame = "DEFAULT"
            yield from self.frames(group, longest_side_px=longest_side_px, keeper=keeper)

    def best_frames(
        self,
        windows: Sequence[Sequence[int]],
        rate: Callable[[GreyPicture], float],
        *,
        longest_side_px: int,
        keeper: PictureKeeper | None = None,
        glance: Glance | None = None,
    ) -> Iterator[Frame]:
        """Yield of each window of PTS the frame that is rated highest by its lightness, in time order; of equal ones the first.

        Those of a short video are kept in memory as far as there is room: they are not decoded again.
        """
        self._check_decoder()
        window_of = {pts: number for number, window in enumerate(windows) for pts in window}
        best: VideoFrame | None = None
        number, highest = -1, -math.inf
        for frame in self._decode_frames(sorted(window_of)):
            if best is not None and window_of[cast(int, frame.pts)] != number:
                yield from self._convert_best(best, longest_side_px, keeper)
                best, highest = None, -math.inf
            rating = self._rate(frame, rate, longest_side_px)
            if glance is not None:
                for small in self._convert(frame, GLANCE_SIDE_PX, None):
                    glance(small, rating)
            if rating > highest:
                best, number, highest = frame, window_of[cast(int, frame.pts)], rating
        if best is not None:
            yield from self._convert_best(best, longest_side_px, keeper)

    def _convert_best(self, frame: VideoFrame, longest_side_px: int, keeper: PictureKeeper | None) -> Iterator[Frame]:
        self._kept.keep(cast(int, frame.pts), frame)
        yield from self._convert(frame, longest_side_px, keeper)

    def _rate(self, frame: VideoFrame, rate: Callable[[GreyPicture], float], longest_side_px: int) -> float:
        try:
            return rate(to_grey(frame, self._reformatter, longest_side_px=longest_side_px))
        except (av.error.FFmpegError, MemoryError):
            self._damaged.add(frame.pts)
            return -math.inf

    def _convert(self, frame: VideoFrame, longest_side_px: int | None, keeper: PictureKeeper | None) -> Iterator[Frame]:
        """Yield the frame as a picture; nothing where damage made its format or its shape one that cannot be shown."""
        try:
            if keeper is not None and cast(int, frame.pts) not in self._kept and keeper.wants(cast(int, frame.pts)):
                keeper.keep(self._picture(frame, None))
            picture = self._picture(frame, longest_side_px)
        except (av.error.FFmpegError, MemoryError):
            self._damaged.add(frame.pts)
        else:
            yield picture

    def _picture(self, frame: VideoFrame, longest_side_px: int | None) -> Frame:
        image = to_image(frame, self.pixel_aspect, self._turn_of(frame), self._reformatter, longest_side_px=longest_side_px)
        return Frame(cast(int, frame.pts), self.time_base, image)

    def effort(self, pts: int) -> int:
        """Return how many packets have to be decoded to show the frame with this PTS, itself included."""
        if self.index.by_decoding:
            return int(np.searchsorted(self.index.pts, pts)) + 1
        position = self._positions([pts])[0]
        return position - self._start_packet(position) + 1

    def _turn_of(self, frame: VideoFrame) -> Turn:
        rotation = frame.rotation
        if rotation not in self._turns:
            self._turns[rotation] = turn_of(frame)
        return self._turns[rotation]

    def groups(self, pts: Sequence[int]) -> list[list[int]]:
        """Split sorted PTS where decoding starts anew: the frames of one group share a sync frame."""
        anchors = [self._start_packet(position) for position in self._positions(pts)]
        rows = groupby(zip(anchors, pts, strict=True), key=lambda row: row[0])
        return [[stamp for _, stamp in group] for _, group in rows]

    def _positions(self, pts: Sequence[int]) -> list[int]:
        found = np.searchsorted(self.index.pts, np.asarray(pts, np.int64), sorter=self._order)
        return cast(list[int], self._order[found].tolist())

    def _start_packet(self, position: int) -> int:
        """Return the sync packet to start from. Frames that an open GOP shows before its sync frame need the one before."""
        which = int(np.searchsorted(self._sync, position, side="right")) - 1
        if which > 0 and self.index.pts[position] < self.index.pts[self._sync[which]]:
            which -= 1
        return int(self._sync[which]) if which >= 0 else 0

    def _decode_frames(self, pts: Sequence[int]) -> Iterator[VideoFrame]:
        for group in [list(pts)] if self.index.by_decoding else self.groups(pts):
            kept = [frame for stamp in group if (frame := self._kept.get(stamp)) is not None]
            if len(kept) == len(group):
                yield from kept
            elif self.index.by_decoding:
                yield from self._decode_by_count(set(group))
            else:
                yield from self._decode_group(group)

    def _decode_group(self, group: Sequence[int]) -> Iterator[VideoFrame]:
        positions = self._positions(group)
        first, last = self._start_packet(positions[0]), max(positions)
        done = 0
        for frame in self._decode_wanted(first, last, frozenset(group)):
            place = len(group) if frame.pts is None else bisect_left(group, frame.pts, done)
            if place < len(group) and group[place] == frame.pts:
                yield from self._decode_missing(group[done:place], first, last)
                yield frame
                done = place + 1
        yield from self._decode_missing(group[done:], first, last)

    def _decode_wanted(self, first: int, last: int, wanted: frozenset[int]) -> Iterator[VideoFrame]:
        """Yield the frames of a GOP with these PTS among others, without those that no other frame needs, about half of them in H.264.

        From the first damage on none is left out, since the decoder hides damage by frames that it has; some frames then come again.
        """
        if not self._hurt and not self._decodes_all:
            with closing(self._decode_packets(first, last, wanted=wanted)) as frames:
                for frame in frames:
                    if self._hurt or frame.is_corrupt:
                        break
                    yield frame
                else:
                    if not self._hurt:
                        return
        yield from self._decode_packets(first, last)

    def _decode_missing(self, missing: Sequence[int], first: int, last: int) -> Iterator[VideoFrame]:
        """Yield frames of a GOP that decoding it alone did not show: some need more packets, or, with intra refresh, the GOP before."""
        if not missing:
            return
        earlier = int(self._sync[max(0, int(np.searchsorted(self._sync, first)) - 1)]) if len(self._sync) else 0
        wanted = set(missing)
        with self.reopen() as twin:
            for frame in twin._decode_packets(min(earlier, first), last + LATE_PACKETS):
                if frame.pts in wanted:
                    wanted.discard(frame.pts)
                    yield frame
                if not wanted:
                    return

    def _decode_by_count(self, wanted: set[int]) -> Iterator[VideoFrame]:
        self._rewind()
        for frame, stamp in zip(self._decode_all(), self.index.pts.tolist(), strict=False):
            if stamp in wanted:
                frame.pts = stamp
                wanted.discard(stamp)
                yield frame
            if not wanted:
                return

    def _decode_packets(self, first: int, last: int, *, wanted: frozenset[int] | None = None) -> Generator[VideoFrame, None, None]:
        """Yield everything that the decoder gives for the packets first … last of the index; a damaged one is passed over.

        Args:
            wanted: PTS; of the others, frames that no other frame needs are left out.
        """
        return self._decode_reliably(partial(self._decode_stretch, first, last, wanted))

    def _decode_reliably(self, decode: Callable[[], Iterator[VideoFrame]]) -> Generator[VideoFrame, None, None]:
        """Yield what `decode` gives; from the first damage on what it gives with one thread.

        Threads meet damage in another order each time, so what they make of it differs from run to run, and some crash.
        """
        whole = 0
        if self._threads != 1:
            held: deque[VideoFrame] = deque()
            for frame in decode():
                if self._hurt or frame.is_corrupt:
                    break
                held.append(frame)
                if len(held) > MOST_REORDERED:
                    yield held.popleft()
                    whole += 1
            else:
                if not self._hurt:
                    yield from held
                    return
            held.clear()
            skipped = self._decoder.skip_frame
            self._threads = 1
            self._rewind()
            self._decoder.skip_frame = skipped
        yield from islice(decode(), whole, None)

    def _decode_stretch(self, first: int, last: int, wanted: frozenset[int] | None) -> Iterator[VideoFrame]:
        if self._decoder.name in NEVER_EMPTIED:
            self._rewind()
        if first > 0 and not self._primed:
            self._prime()
        try:
            for packet in self._read(first, last):
                if wanted is not None:
                    self._decoder.skip_frame = "NONREF" if packet.pts is not None and packet.pts not in wanted else "DEFAULT"
                yield from self._decode(packet)
            yield from self._decode(None)
        finally:
            if wanted is not None:
                self._decoder.skip_frame = "DEFAULT"
            self._decoder.flush_buffers()

    def _prime(self) -> None:
        """Show the decoder the first packet: some streams say only there how the rest is to be read (x264's version for 4:4:4)."""
        self._primed = True
        if self._decoder.name != "h264":
            return
        for _ in self._decode_packets(0, 0):
            pass

    def _decode_all(self) -> Iterator[VideoFrame]:
        """Yield everything from where a container just opened stands."""
        return self._decode_reliably(self._decode_rest)

    def _decode_rest(self) -> Iterator[VideoFrame]:
        for packet in self._packets:
            yield from self._decode(packet)
        yield from self._decode(None)

    def _check_decoder(self) -> None:
        """Refuse to touch a decoder that could not be opened: no other packet opens it, and PyAV 19 crashes.

        Raises:
            InputError: it could not.
        """
        if self._cannot_open:
            raise InputError(NOTHING_DECODES.format(self.source))

    def _decode(self, packet: Packet[VideoStream] | None) -> list[VideoFrame]:
        try:
            with inside_ffmpeg:
                return self._decoder.decode(packet)
        except EOFError:
            return []
        except av.error.FFmpegError as exc:
            if not self._decoder.is_open:
                self._cannot_open = True
                raise InputError(NOTHING_DECODES.format(self.source)) from exc
            if self._threads == 1:
                self._damaged.add(packet.pts if packet else None)
            self._hurt = True
            return []


def _open_source(source: FileSource | AddressSource) -> Local | Remote:
    if isinstance(source, FileSource):
        return Local(source)
    from vip.video.remote import Remote  # HTTP is needed for few videos

    return Remote(source)
