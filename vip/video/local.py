"""A local file that gives its bytes once: hashed while it is indexed, and what was read to open it is not read again by others.

Disks may be slow or far away. The SHA-256 is taken of the bytes as they pass in order; what lies behind them, or was never
wanted, is read for it afterwards.
"""

from __future__ import annotations

import errno
import hashlib
import io
from concurrent.futures import Future
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import TypeAlias

from vip.errors import InputError
from vip.video.source import FileSource, FileState

HANDED_BYTES = 2**19  # at once to the thread that hashes: waking it costs as much as hashing half of that
WAITING_CHUNKS = 4  # of that size and what was read last: what the reader may be ahead of the hash
REST_BYTES = 2**20  # read at once where nobody but the hash wants the bytes
MOST_SKIPPED_BYTES = 2**18  # that are read over while the file is opened: FFmpeg looks at its end there, and comes back
MOST_HEAD_BYTES = 2**20  # kept of what was read to open it: the table of half an hour

Chunks: TypeAlias = "Queue[bytes | None]"


class Local:
    """A local file and its hash; its readers in several threads share what was read to open it."""

    def __init__(self, source: FileSource) -> None:
        self.source = source
        self._head: dict[int, bytes] = {}  # by where it begins
        self._hash: RunningHash | None = None

    def open(self) -> LocalFile:
        """Return a reader of its own for a thread; the first one hashes as it reads.

        Raises:
            InputError: the file is missing or empty.
            OSError: it cannot be opened.
        """
        path = self.source.path
        if path.is_dir():
            raise InputError(f"{path} is a folder, not a video.")
        if not path.exists():
            raise InputError(f"{path} does not exist. Check the path.")
        if not path.is_file():  # reading a FIFO would never end
            raise InputError(f"{path} is no regular file. Give a video file.")
        if path.stat().st_size == 0:
            raise InputError(f"{path} is empty (0 bytes). Copy or download it again.")
        if self._hash is not None:
            return LocalFile(self, None)
        self._hash = RunningHash(path)
        return LocalFile(self, self._hash)

    def read_head(self, place: int, size: int) -> bytes:
        """Return what was read at this place to open the file, at most `size` bytes; nothing where that is not known."""
        for start, data in self._head.items():
            if start <= place < start + len(data):
                return data[place - start : place - start + size]
        return b""

    def keep_head(self, place: int, data: bytes) -> None:
        """Keep what was read to open the file, while there is room."""
        if place not in self._head and sum(map(len, self._head.values())) + len(data) <= MOST_HEAD_BYTES:
            self._head = {**self._head, place: data}  # other threads may be looking at the old one

    def finish(self) -> None:
        """Hash the rest in a thread: nothing more is read in order."""
        if self._hash is None:
            return
        while known := self.read_head(self._hash.place, MOST_HEAD_BYTES):
            if not self._hash.add(known):
                return
        self._hash.finish()

    @property
    def state(self) -> FileState | None:
        return self.source.state()

    def sha256(self) -> str | None:
        """Return the hex digest of the whole file.

        Raises:
            InputError: it cannot be read to its end.
        """
        try:
            return self._hash.result() if self._hash is not None else self.source.sha256()
        except OSError as exc:
            raise InputError(f"{self.source} cannot be read to its end ({exc.strerror}).") from exc

    def close(self) -> None:
        """Give up a hash that nobody has waited for."""
        if self._hash is not None:
            self._hash.cancel()


class RunningHash:
    """The SHA-256 of a file, in a thread, of the bytes that it is handed in order and then of the rest of the file."""

    def __init__(self, path: Path) -> None:
        self.place = 0  # each byte up to here was given once
        self._gathered: list[bytes] = []  # what was given and not handed over yet
        self._chunks: Chunks | None = Queue(WAITING_CHUNKS)
        self._digest: Future[str] = Future()
        Thread(target=_hash, args=(path, self._chunks, self._digest), name="vip-hash", daemon=True).start()

    def add(self, data: bytes) -> bool:
        """Hash these bytes next; False behind `finish`, when all is read without help."""
        if self._chunks is None:
            return False
        self._gathered.append(data)
        self.place += len(data)
        if sum(map(len, self._gathered)) >= HANDED_BYTES:
            self._hand_over(self._chunks)
        return True

    def finish(self) -> None:
        if self._chunks is not None:
            self._hand_over(self._chunks)
            self._chunks.put(None)
            self._chunks = None

    def _hand_over(self, chunks: Chunks) -> None:
        chunks.put(b"".join(self._gathered))
        self._gathered = []

    def result(self) -> str:
        self.finish()
        return self._digest.result()

    def cancel(self) -> None:
        self._digest.cancel()
        self.finish()

    def __del__(self) -> None:
        self.cancel()


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


class LocalFile(io.RawIOBase):
    """The file as FFmpeg reads it. For one thread."""

    def __init__(self, local: Local, running: RunningHash | None) -> None:
        self._file = local.source.path.open("rb", buffering=0)
        self.name = f"file:{local.source.path.absolute()}"  # FFmpeg knows raw streams by their suffix
        self._local = local
        self._hash = running
        self._opening = True
        self._place = 0

    def mark_opened(self) -> None:
        """Note that FFmpeg has seen what the file is; from here on the one that hashes is read from its start to its end."""
        self._opening = False

    def read(self, size: int = -1) -> bytes:
        """Return at most `size` bytes; fewer where what is known ends."""
        if size < 0:
            size = self._local.source.path.stat().st_size - self._place
        if self._hash is not None and self._hash.place < self._place:
            self._read_skipped(self._hash)
        data = self._bytes(self._place, size)
        self._feed_hash(self._place, data)
        self._place += len(data)
        return data

    def _bytes(self, place: int, size: int) -> bytes:
        if known := self._local.read_head(place, size):
            return known
        self._file.seek(place)
        data = self._file.read(size)
        if self._opening:
            self._local.keep_head(place, data)
        return data

    def _feed_hash(self, place: int, data: bytes) -> None:
        """Give the hash what it has not had yet."""
        if self._hash is not None and place <= self._hash.place:
            self._hash.add(data[self._hash.place - place :])

    def _read_skipped(self, running: RunningHash) -> None:
        """Read what was skipped: sound between pictures, padding."""
        if self._opening and self._place - running.place > MOST_SKIPPED_BYTES:
            return
        while running.place < self._place:
            skipped = self._bytes(running.place, min(REST_BYTES, self._place - running.place))
            if not skipped or not running.add(skipped):
                return

    def seek(self, offset: int, whence: int = 0) -> int:
        """Return the place it has now; negative where damage names one that no file has. FFmpeg bears that, but no exception."""
        try:
            self._place = self._file.seek(offset + (self._place if whence == 1 else 0), 2 if whence == 2 else 0)
        except OSError:
            return -errno.EINVAL
        return self._place

    def tell(self) -> int:
        return self._place

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed and hasattr(self, "_file"):  # it could be opened
            self._file.close()
        super().close()
