"""Bytes that wait on disk until they are needed once: memory does not grow with what waits."""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from dataclasses import dataclass

from vip.errors import StoreError

ADVICE = "Free some space there, or set TMPDIR to another folder."


class Spool:
    """A file without a name, which goes with the process. For several threads at once."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - it is closed when nobody has the spool any more
        weakref.finalize(self, self._file.close)
        self._lock = threading.Lock()

    def put(self, data: bytes) -> Spooled:
        """Write the bytes, and return where they are.

        Raises:
            StoreError: the disk is full.
        """
        with self._lock:
            start = self._file.seek(0, os.SEEK_END)
            try:
                written = self._file.write(data)
            except OSError as exc:
                raise StoreError(f"{tempfile.gettempdir()}: {exc.strerror}. {ADVICE}") from exc
            if written != len(data):
                raise StoreError(f"{tempfile.gettempdir()} is full. {ADVICE}")
        return Spooled(self, start, len(data))

    def read(self, start: int, size: int) -> bytes:
        """Return the bytes at this place."""
        with self._lock:
            self._file.seek(start)
            return self._file.read(size)


@dataclass(frozen=True, slots=True)
class Spooled:
    """Bytes in a spool."""

    spool: Spool
    start: int
    size: int

    def read(self) -> bytes:
        """Return the bytes."""
        return self.spool.read(self.start, self.size)
