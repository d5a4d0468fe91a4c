"""Candidates at full size on disk while a run is being made, so that those that become keyframes are not decoded again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from vip import files, store
from vip.errors import StoreError
from vip.records import Frame

EXPENSIVE_PACKETS = 24  # frames that need more packets decoded are kept: encoding a JPEG costs less than decoding these again


class PictureCache:
    """A `PictureKeeper` in a run folder.

    Only frames deep inside a GOP are kept: others are decoded again faster than they are written. Lossless formats wait
    as quickly packed PNG files. Where there is no room for all, none is kept: the run itself may need what room there is.
    """

    def __init__(self, folder: Path, suffix: str, effort: Callable[[int], int] = lambda _: 0) -> None:
        self._run, self._folder, self._suffix, self._effort = folder, folder / store.DECODED, suffix, effort
        self._has_room = True

    @contextmanager
    def while_selecting(self) -> Iterator[PictureCache]:
        """Begin with none, and leave none behind where the work fails: it would begin anew."""
        self.clear()
        try:
            yield self
        except BaseException:
            self.clear()
            raise

    def wants(self, pts: int) -> bool:
        return self._has_room and self._effort(pts) > EXPENSIVE_PACKETS

    def keep(self, frame: Frame) -> None:
        try:
            store.make_folder(self._folder, inside=self._run)
            store.write_picture(self._path(frame.pts), frame.image, inside=self._run, png_compression=1)
        except StoreError:
            self._has_room = False
            self.clear()

    def has(self, pts: int) -> bool:
        """Return whether the picture waits; a link in its place, or in that of the folder, is none."""
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
        files.remove_folder(self._folder)

    def _path(self, pts: int) -> Path:
        return self._folder / f"{pts}.{'jpg' if self._suffix == 'jpg' else 'png'}"
