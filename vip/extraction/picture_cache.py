"""Candidates at full size on disk while a run is being made, so that those that become keyframes are not decoded again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from vip import files, store
from vip.cores import cores
from vip.errors import StoreError
from vip.records import Frame

EXPENSIVE_PACKETS = 24  # frames that need more packets decoded are kept: encoding a JPEG costs less than decoding these again
EXPENSIVE_IF_LIKELY = 12  # the same for frames of which four in five become keyframes, so that few are encoded in vain


class PictureCache:
    """A `PictureKeeper` in a run folder. While frames are selected pictures are encoded in threads, and the decoder goes on meanwhile.

    Only frames deep inside a GOP are kept: others are decoded again faster than they are written. Lossless formats wait
    as quickly packed PNG files. Where there is no room for all, none is kept: the run itself may need what room there is.
    """

    def __init__(self, folder: Path, suffix: str, effort: Callable[[int], int] = lambda _: 0) -> None:
        self._run, self._folder, self._suffix, self._effort = folder, folder / store.DECODED, suffix, effort
        self._has_room = True
        self._pool: ThreadPoolExecutor | None = None
        self._writing: deque[Future[None]] = deque()
        self._lock = Lock()

    @contextmanager
    def while_selecting(self) -> Iterator[PictureCache]:
        """Begin with none, and leave none behind where the work fails: it would begin anew."""
        self.clear()
        try:
            with ThreadPoolExecutor(cores(), "vip-keep") as self._pool:
                yield self
                self._wait(0)
        except BaseException:
            self._writing.clear()
            self.clear()
            raise
        finally:
            self._pool = None

    @property
    def for_likely(self) -> LikelyKeeper:
        return LikelyKeeper(self)

    def wants(self, pts: int, *, least_packets: int = EXPENSIVE_PACKETS) -> bool:
        return self._has_room and self._effort(pts) > least_packets

    def keep(self, frame: Frame) -> None:
        if self._pool is None:
            self._write(frame)
            return
        self._wait(cores())  # so many pictures at full size wait in memory
        with self._lock:
            self._writing.append(self._pool.submit(self._write, frame))

    def _wait(self, most: int) -> None:
        """Wait until at most so many pictures are being written; raise what went wrong."""
        while True:
            with self._lock:
                if len(self._writing) <= most:
                    return
                oldest = self._writing.popleft()
            oldest.result()

    def _write(self, frame: Frame) -> None:
        try:
            store.make_folder(self._folder, inside=self._run)
            store.write_picture(self._path(frame.pts), frame.image, inside=self._run, png_compression=1)
        except StoreError:
            self._has_room = False
            files.remove_folder(self._folder)

    def has(self, pts: int) -> bool:
        """Return whether the picture waits; a link in its place, or in that of the folder, is none."""
        self._wait(0)
        try:
            files.open_file(self._path(pts), inside=self._run).close()
        except OSError:
            return False
        return True

    def move(self, pts: int, path: Path) -> None:
        """Make the picture a keyframe's."""
        kept = self._path(pts)
        if kept.suffix == path.suffix == ".jpg":
            kept.replace(path)
        else:
            store.write_picture(path, store.read_picture(kept, inside=self._run), inside=self._run)

    def clear(self) -> None:
        self._wait(0)
        files.remove_folder(self._folder)

    def _path(self, pts: int) -> Path:
        return self._folder / f"{pts}.{'jpg' if self._suffix == 'jpg' else 'png'}"


class LikelyKeeper:
    """A `PictureKeeper` of frames that will probably be keyframes: those less deep inside a GOP are kept too."""

    def __init__(self, cache: PictureCache) -> None:
        self._cache = cache

    @property
    def for_likely(self) -> LikelyKeeper:
        return self

    def wants(self, pts: int) -> bool:
        return self._cache.wants(pts, least_packets=EXPENSIVE_IF_LIKELY)

    def keep(self, frame: Frame) -> None:
        self._cache.keep(frame)
