"""A file behind http(s), read in parts: only those bytes are asked for that FFmpeg wants, and none twice while there is room.

FFmpeg's own reader asks for everything behind the place where it begins to read, and a server has sent megabytes of it
before it notices that nobody reads on. Here each request names its end, and one connection serves many of them.
"""

from __future__ import annotations

import errno
import io
from calendar import timegm
from collections import OrderedDict
from dataclasses import replace
from email.utils import parsedate
from threading import Lock
from time import monotonic

from vip.errors import InputError
from vip.video.http import LEAST_BYTES, TIMEOUT_S, Connection
from vip.video.source import AddressSource, FileState
from vip.wording import again

BLOCK_BYTES = 2**16  # asked for after a jump: about a sync frame
MOST_BLOCKS_AT_ONCE = 32  # 2 MiB: where blocks are read in a row, each request asks for twice as many as the one before
KEPT_BLOCKS = 256  # 16 MiB: each reader reads the headers again, and sync frames lie across the border of two blocks


class Remote:
    """A file on a server, and the parts of it that were read lately; its readers in several threads share them."""

    def __init__(self, source: AddressSource) -> None:
        """Ask for the first part.

        Raises:
            InputError: one sentence for each way in which it cannot be read in parts.
        """
        self.source = source
        self._lock = Lock()
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        connection = Connection(source.address, str(source))
        try:
            first = connection.part(0, BLOCK_BYTES)
        finally:
            connection.close()
        self.first = replace(first, data=b"")
        changed = parsedate(first.changed)
        self.state = FileState(first.size_bytes, timegm(changed) * 10**9 if changed else None)
        if len(first.data) == min(BLOCK_BYTES, first.size_bytes):  # else the block would end where the server stopped
            self.put(0, first.data)

    def open(self) -> RemoteFile:
        """Return a reader of its own for a thread."""
        return RemoteFile(self)

    def sha256(self) -> str | None:
        """Return None: for that it would have to be read whole."""
        return self.source.sha256()

    def finish(self) -> None:
        """Do nothing: once the index is read, all is done."""

    def close(self) -> None:
        """Do nothing: the connections belong to the readers."""

    def get(self, block: int) -> bytes | None:
        with self._lock:
            if block in self._blocks:
                self._blocks.move_to_end(block)
            return self._blocks.get(block)

    def put(self, block: int, data: bytes) -> None:
        """Keep the blocks that `data` holds, of which the first is `block`; those go that were not used for longest."""
        with self._lock:
            for start in range(0, len(data), BLOCK_BYTES):
                self._blocks[block + start // BLOCK_BYTES] = data[start : start + BLOCK_BYTES]
            while len(self._blocks) > KEPT_BLOCKS:
                self._blocks.popitem(last=False)


class RemoteFile(io.RawIOBase):
    """The file as FFmpeg reads it. For one thread.

    Reading raises InputError where the server fails, or has another file now.
    """

    def __init__(self, remote: Remote) -> None:
        self.name = remote.source.name  # FFmpeg knows raw streams by their suffix
        self._remote = remote
        self._connection = Connection(remote.source.address, str(remote.source))
        self._place = 0
        self._behind = -1  # the block behind the last request
        self._at_once = 1

    def mark_opened(self) -> None:
        """Note that FFmpeg has seen what the file is."""

    def read(self, size: int = -1) -> bytes:
        """Return what is left of the block in which the reader stands, at most `size` bytes."""
        block, skipped = divmod(self._place, BLOCK_BYTES)
        if self._place >= self._remote.state.size_bytes:
            return b""
        data = (self._remote.get(block) or self._fetch(block))[skipped : BLOCK_BYTES if size < 0 else skipped + size]
        self._place += len(data)
        return data

    def _fetch(self, block: int) -> bytes:
        """Ask for the block, and for more behind it the longer blocks have been read in a row."""
        self._at_once = min(2 * self._at_once, MOST_BLOCKS_AT_ONCE) if block == self._behind else 1
        whole = self._remote.state.size_bytes
        wanted = min(self._at_once * BLOCK_BYTES, whole - block * BLOCK_BYTES)
        data, begin_s, before = b"", monotonic(), 0
        while len(data) < wanted:  # a server may give less than it was asked for
            if (passed_s := monotonic() - begin_s) > TIMEOUT_S:
                if (len(data) - before) * TIMEOUT_S < LEAST_BYTES * passed_s:
                    why = f"its server sends fewer than {LEAST_BYTES:,} bytes in {TIMEOUT_S:g} s. Try again later."
                    raise InputError(f"{self._remote.source} cannot be read: {why}")
                begin_s, before = monotonic(), len(data)
            part = self._connection.part(block * BLOCK_BYTES + len(data), wanted - len(data))
            if part.is_of_another_file(self._remote.first):
                raise InputError(f"{self._remote.source} changed while it was read. {again()}.")
            data += part.data
        self._behind = block + -(-len(data) // BLOCK_BYTES)
        self._remote.put(block, data)
        return data[:BLOCK_BYTES]

    def seek(self, offset: int, whence: int = 0) -> int:
        """Return the place it has now; negative where damage names one that no file has. FFmpeg bears that, but no exception."""
        place = offset + (0, self._place, self._remote.state.size_bytes)[whence]
        if place < 0:
            return -errno.EINVAL
        self._place = place
        return place

    def tell(self) -> int:
        return self._place

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._connection.close()
        super().close()
