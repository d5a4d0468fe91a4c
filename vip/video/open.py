"""The one way in: what was named, a file, an address or pictures, opened as something that gives frames by their PTS."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from types import TracebackType
from typing import Protocol

from vip.protocols import Glance, PictureKeeper
from vip.records import Frame, GreyPicture, PacketIndex, VideoInfo
from vip.video.reader import Video
from vip.video.source import FileSource, PicturesSource, Source
from vip.video.time_range import TimeRange


class Reader(Protocol):
    """An open video, whatever it is made of. Not for several threads at once: each takes its own `reopen()`."""

    @property
    def source(self) -> Source: ...

    @property
    def index(self) -> PacketIndex: ...

    @property
    def time_base(self) -> Fraction: ...

    @property
    def losses(self) -> list[str]:
        """Losses so far, by this reader and its twins, one sentence each."""

    def info(self) -> VideoInfo:
        """Return what is known about the video as a whole.

        Raises:
            InputError: not one frame can be decoded.
        """

    def frames(self, pts: Sequence[int], *, longest_side_px: int | None = None, keeper: PictureKeeper | None = None) -> Iterator[Frame]:
        """Decode the frames with these PTS, in time order; those that cannot be decoded are left out.

        `keeper` is given each frame that it wants at full size.
        """

    def frames_near(
        self, pts: Sequence[int], *, longest_side_px: int | None = None, keeper: PictureKeeper | None = None
    ) -> Iterator[Frame]:
        """Yield a frame at or soon after each of these PTS, whichever needs the least work."""

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

        Args:
            windows: in time order; they share no PTS.
            glance: is given each frame of the windows that is decoded, very small where that costs less, and its rating.
        """

    def effort(self, pts: int) -> int:
        """Return how many packets have to be decoded to show the frame with this PTS, itself included."""

    def groups(self, pts: Sequence[int]) -> list[list[int]]:
        """Split sorted PTS where decoding starts anew."""

    def reopen(self, *, threads: int = 1) -> Reader:
        """Return the same video for another thread, sharing the index."""

    def close(self) -> None: ...

    def __enter__(self) -> Reader: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


def open_video(source: Source, *, stream: int = 0, start_s: float | None = None, end_s: float | None = None) -> Reader:
    """Open what the user named.

    Args:
        stream: which of several video streams, counted from 0.
        start_s: use the frames from this time on; `end_s`: up to this time.

    Raises:
        InputError: one sentence for each way in which it can be no video, or has nothing in that time.
    """
    span = TimeRange(start_s, end_s)
    if isinstance(source, PicturesSource):
        from vip.video.pictures import Pictures  # Pillow is needed for few videos

        return Pictures(source, stream=stream, span=span)
    if isinstance(source, FileSource) and source.is_animated_webp():
        from vip.video.webp import AnimatedWebp

        return AnimatedWebp(source, stream=stream, span=span)
    return Video(source, stream=stream, span=span)
