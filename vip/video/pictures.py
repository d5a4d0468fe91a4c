"""Pictures in a row as a video: a folder, a pattern, several files, or a single one. Each has its own size, and all are sync frames."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from types import TracebackType

import numpy as np

from vip.errors import InputError
from vip.protocols import Glance, PictureKeeper
from vip.records import Frame, GreyPicture, PacketIndex, VideoInfo
from vip.video.order import MILLISECONDS, in_time_order
from vip.video.pillow import ROTATIONS, best_of_each, open_picture, orientation_of, shown, shown_size, taken_ms_of
from vip.video.source import PicturesSource
from vip.video.time_range import WHOLE, TimeRange


class Pictures:
    """A `vip.video.Reader` of picture files. Nothing is kept of a picture but its time."""

    def __init__(self, source: PicturesSource, *, stream: int = 0, span: TimeRange = WHOLE) -> None:
        """Read the header of each picture, and order them by time.

        Raises:
            InputError: none can be read, or none lies in the span.
        """
        if stream:
            raise InputError(f"{source} has no video stream {stream}: pictures are one stream, 0.")
        self.source = source
        self._damaged: set[Path] = set()
        taken = {path: when for path in source.paths for when in self._taken(path)}
        if not taken:
            for path in source.paths:
                open_picture(path, str(path))  # raises for a single one what is wrong with it
        timed = in_time_order(list(taken), list(taken.values()))
        self._path_of = dict(zip(timed.times_ms, timed.paths, strict=True))
        self.index = span.restrict(_index(timed.times_ms, [path.stat().st_size for path in timed.paths]), str(source))

    def _taken(self, path: Path) -> Iterator[int | None]:
        """Return when the picture was taken; nothing at all for one that cannot be read."""
        try:
            with closing(open_picture(path, str(path))) as opened:
                yield taken_ms_of(opened)
        except InputError:
            self._damaged.add(path)

    def reopen(self, *, threads: int = 1) -> Pictures:
        """Open them for another thread; the pictures that cannot be read are counted together."""
        return copy.copy(self)

    def close(self) -> None:
        pass

    def __enter__(self) -> Pictures:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Pictures({self.source.name!r}, {len(self.index)})"

    @property
    def time_base(self) -> Fraction:
        return self.index.time_base

    @property
    def losses(self) -> list[str]:
        names = sorted(path.name for path in self._damaged)
        if not names:
            return []
        first = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        could = f"{len(names)} pictures could not be read and were" if len(names) > 1 else "1 picture could not be read and was"
        return [f"{could} passed over: {first}."]

    def info(self) -> VideoInfo:
        """Return the facts of the whole; size and format are those of the first picture.

        Raises:
            InputError: not one can be read, or they have gone.
        """
        stamps = self.index.shown_pts.tolist()
        state = self.source.state()
        first = next((path for path in map(self._path_of.__getitem__, stamps) if path not in self._damaged), None)
        if first is None or state is None:
            raise InputError(f"{self.source}: not one picture can be read.")
        with closing(open_picture(first, str(first))) as opened:
            width, height = shown_size(opened)
            return VideoInfo(
                path=self.source.location,
                sha256=self.source.sha256(),
                size_bytes=state.size_bytes,
                modified_ns=state.modified_ns,
                container="pictures",
                codec=(opened.format or "unknown").lower(),
                pixel_format=opened.mode,
                width_px=width,
                height_px=height,
                rotation_deg=ROTATIONS.get(orientation_of(opened), 0),
                pixel_aspect_ratio=Fraction(1),
                frame_rate=None,
                duration_s_from_header=None,
                start_time_s=stamps[0] / MILLISECONDS,
                end_time_s=stamps[-1] / MILLISECONDS,
                frames=len(stamps),
                sync_frames=len(stamps),
            )

    def frames(self, pts: Sequence[int], *, longest_side_px: int | None = None, keeper: PictureKeeper | None = None) -> Iterator[Frame]:
        """Yield the pictures with these times in milliseconds, in time order; those that cannot be read are left out."""
        for stamp in sorted(set(pts)):
            path = self._path_of[stamp]
            try:
                with closing(open_picture(path, str(path))) as opened:
                    yield Frame(stamp, self.time_base, shown(opened, longest_side_px=longest_side_px))
            except InputError:
                self._damaged.add(path)

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
        return [[stamp] for stamp in pts]


def _index(times_ms: Sequence[int], sizes: Sequence[int]) -> PacketIndex:
    times = np.array(times_ms, np.int64)
    yes = np.ones(len(times), bool)
    return PacketIndex(times, times, yes, np.array(sizes, np.int64), yes, Fraction(1, MILLISECONDS))
