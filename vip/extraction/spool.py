"""Bytes that wait on disk until they are needed once: memory does not grow with what waits."""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from dataclasses import dataclass
from typing import IO


class Spool:
    """A file without a name, which goes with the process. For several threads at once."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._lock = threading.Lock()

    def put(self, data: bytes) -> Spooled:
        """Write the bytes, and return where they are: in memory where the disk is full."""
        with self._lock:
            try:
                file = self._opened()
                start = file.seek(0, os.SEEK_END)
                if file.write(data) == len(data):
                    return Spooled(self, start, len(data))
            except OSError:
                pass
        return Spooled(self, 0, 0, data)

    def read(self, start: int, size: int) -> bytes:
        """Return the bytes at this place."""
        with self._lock:
            file = self._opened()
            file.seek(start)
            return file.read(size)

    def _opened(self) -> IO[bytes]:
        if self._file is None:
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - it is closed when nobody has the spool any more
            weakref.finalize(self, self._file.close)
        return self._file


@dataclass(frozen=True, slots=True)
class Spooled:
    """Bytes in a spool."""

    spool: Spool
    start: int
    size: int
    held: bytes = b""
    """The bytes themselves, where they are not in the file."""

    def read(self) -> bytes:
        """Return the bytes."""
        return self.held or self.spool.read(self.start, self.size)
