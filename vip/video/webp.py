"""Animated WebP, which FFmpeg here cannot decode: times from the headers of its frames, pictures by Pillow, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate
from types import TracebackType

import numpy as np

from vip.errors import InputError
from vip.protocols import Glance, PictureKeeper
from vip.records import Frame, GreyPicture, PacketIndex, VideoInfo
from vip.video.order import MILLISECONDS
from vip.video.pillow import BROKEN, ROTATIONS, best_of_each, open_picture, orientation_of, shown, shown_size
from vip.video.source import FileSource
from vip.video.time_range import WHOLE, TimeRange

FRAME_HEADER_BYTES = 16  # at the start of a chunk ANMF: place, size, duration, flags
DURATION = slice(12, 15)  # of it, in milliseconds


class AnimatedWebp:
    """A `vip.video.Reader` of an animated WebP file. Each frame is drawn over the one before: only the first is a sync frame."""

    def __init__(self, source: FileSource, *, stream: int = 0, span: TimeRange = WHOLE, twin_of: AnimatedWebp | None = None) -> None:
        """Read the headers of all frames, without decoding one.

        Args:
            twin_of: the one whose index is used, and with which the damaged frames are counted together.

        Raises:
            InputError: the file is damaged, too large, or has nothing in the span.
        """
        if stream:
            raise InputError(f"{source} has no video stream {stream}: an animated picture is one stream, 0.")
        self.source = source
        self._damaged: set[int] = twin_of._damaged if twin_of else set()
        self.index: PacketIndex = twin_of.index if twin_of else span.restrict(_read_index(source), str(source))
        self._opened = open_picture(source.path, str(source))

    def reopen(self, *, threads: int = 1) -> AnimatedWebp:
        return AnimatedWebp(self.source, twin_of=self)

    def close(self) -> None:
        self._opened.close()

    def __enter__(self) -> AnimatedWebp:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"AnimatedWebp({self.source.name!r}, {self.index!r})"

    @property
    def time_base(self) -> Fraction:
        return self.index.time_base

    @property
    def losses(self) -> list[str]:
        lost = len(self._damaged)
        return [f"{lost} damaged frame{'s were' if lost > 1 else ' was'} passed over."] if lost else []

    def info(self) -> VideoInfo:
        stamps = self.index.shown_pts.tolist()
        state = self.source.state()
        if state is None or next(self.frames(stamps), None) is None:
            raise InputError(f"{self.source}: not one frame can be decoded. The file is damaged.")
        width, height = shown_size(self._opened)
        return VideoInfo(
            path=self.source.location,
            sha256=self.source.sha256(),
            size_bytes=state.size_bytes,
            modified_ns=state.modified_ns,
            container="webp",
            codec="webp",
            pixel_format=self._opened.mode,
            width_px=width,
            height_px=height,
            rotation_deg=ROTATIONS.get(orientation_of(self._opened), 0),
            pixel_aspect_ratio=Fraction(1),
            frame_rate=None,
            duration_s_from_header=None,
            start_time_s=stamps[0] / MILLISECONDS,
            end_time_s=stamps[-1] / MILLISECONDS,
            frames=len(stamps),
            sync_frames=len(self.index.sync_pts),
        )

    def frames(self, pts: Sequence[int], *, longest_side_px: int | None = None, keeper: PictureKeeper | None = None) -> Iterator[Frame]:
        """Decode the frames with these PTS, in time order; those that cannot be decoded are left out."""
        for stamp in sorted(set(pts)):
            try:
                self._opened.seek(int(np.searchsorted(self.index.pts, stamp)))
                image = shown(self._opened, longest_side_px=longest_side_px)
            except (InputError, *BROKEN):
                self._damaged.add(stamp)
            else:
                yield Frame(stamp, self.time_base, image)

    frames_near = frames

    def best_frames(
        self,
        windows: Sequence[Sequence[int]],
        rate: Callable[[GreyPicture], float],
        *,
        longest_side_px: int,
        keeper: PictureKeeper | None = None,
        glance: Glance | None = None,
    ) -> Iterator[Frame]:
        """Return of each window of times the picture that is rated highest by its lightness, in time order; of equal ones the first."""
        return best_of_each((self.frames(window, longest_side_px=longest_side_px) for window in windows), rate, glance)

    def effort(self, pts: int) -> int:
        return 1  # so a `keeper` never has anything to keep

    def groups(self, pts: Sequence[int]) -> list[list[int]]:
        return [list(pts)]


def _read_index(source: FileSource) -> PacketIndex:
    """Return the frames by walking over the chunks of the file: start, duration and size of each."""
    durations: list[int] = []
    sizes: list[int] = []
    with source.path.open("rb") as file:
        file.seek(12)
        while len(head := file.read(8)) == 8:
            size = int.from_bytes(head[4:], "little")
            start = file.read(FRAME_HEADER_BYTES) if head[:4] == b"ANMF" else b""
            if len(start) == FRAME_HEADER_BYTES:
                durations.append(max(1, int.from_bytes(start[DURATION], "little")))  # 0 would show two frames at once
                sizes.append(size)
            file.seek(size + size % 2 - len(start), 1)
    if not durations:
        raise InputError(f"{source} is an animation without frames. The file is cut off or damaged.")
    pts = np.array([0, *accumulate(durations[:-1])], np.int64)
    return PacketIndex(pts, pts, np.arange(len(pts)) == 0, np.array(sizes, np.int64), np.ones(len(pts), bool), Fraction(1, MILLISECONDS))
