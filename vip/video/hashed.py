"""Hash a file while it is read for another purpose, so that a slow or distant disk gives its bytes only once."""

from __future__ import annotations

import hashlib
import io
from concurrent.futures import Future
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import TypeAlias

WAITING_CHUNKS = 32  # of at most 64 KiB each: what the reader may be ahead of the hash
REST_BYTES = 2**20  # read at once where nobody but the hash wants the bytes
MOST_SKIPPED_BYTES = 2**18  # that are read over while the file is opened: FFmpeg looks at its end there, and comes back

Chunks: TypeAlias = "Queue[bytes | None]"


class HashedFile(io.RawIOBase):
    """A local file for reading, whose SHA-256 is taken of the bytes as they pass in order; the rest is read behind that.

    For one thread. `finish` says that nothing more comes in order, `sha256` waits for the digest.
    """

    def __init__(self, path: Path) -> None:
        self.name = f"file:{path.absolute()}"  # FFmpeg knows raw streams by their suffix
        self._file = path.open("rb", buffering=0)
        self._place = 0
        self._hashed = 0  # each byte up to here was handed over once
        self._opening = True
        self._chunks: Chunks | None = Queue(WAITING_CHUNKS)
        self._digest: Future[str] = Future()
        Thread(target=_hash, args=(path, self._chunks, self._digest), name="vip-hash", daemon=True).start()

    def opened(self) -> None:
        """From now on the file is read from its start to its end, and what the reader skips is read for the hash."""
        self._opening = False

    def finish(self) -> None:
        """Nothing more comes in order: hash the rest, in a thread."""
        if self._chunks is not None:
            self._chunks.put(None)
            self._chunks = None

    def sha256(self) -> str:
        """Hex digest of the whole file.

        Raises:
            OSError: it cannot be read to its end.
        """
        self.finish()
        return self._digest.result()

    def read(self, size: int = -1) -> bytes:
        if self._chunks is not None and self._place > self._hashed:
            self._read_over()
        self._file.seek(self._place)
        data = self._file.read(size)
        start, self._place = self._place, self._place + len(data)
        if start <= self._hashed < self._place:
            self._hand_over(data[self._hashed - start :])
        return data

    def _read_over(self) -> None:
        """What was skipped: sound between pictures, padding."""
        if self._opening and self._place - self._hashed > MOST_SKIPPED_BYTES:
            return
        self._file.seek(self._hashed)
        while self._hashed < self._place:
            skipped = self._file.read(min(REST_BYTES, self._place - self._hashed))
            if not skipped:
                return
            self._hand_over(skipped)

    def _hand_over(self, data: bytes) -> None:
        if self._chunks is not None:
            self._chunks.put(data)
            self._hashed += len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        self._place = self._file.seek(offset, whence) if whence == 2 else offset + (self._place if whence == 1 else 0)
        return self._place

    def tell(self) -> int:
        return self._place

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        """Close the file; a hash that nobody has waited for is given up."""
        if not self.closed:
            self._digest.cancel()
            self.finish()
            self._file.close()
        super().close()


def _hash(path: Path, chunks: Chunks, digest: Future[str]) -> None:
    sha256 = hashlib.sha256()
    hashed = 0
    failure: OSError | None = None
    while (chunk := chunks.get()) is not None:
        sha256.update(chunk)
        hashed += len(chunk)
    try:
        with path.open("rb", buffering=0) as file:
            file.seek(hashed)
            while not digest.cancelled() and (rest := file.read(REST_BYTES)):
                sha256.update(rest)
    except OSError as exc:
        failure = exc
    if not digest.set_running_or_notify_cancel():
        return
    if failure is not None:
        digest.set_exception(failure)
    else:
        digest.set_result(sha256.hexdigest())
