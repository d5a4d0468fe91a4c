"""Servers that keep a connection open and send little or nothing of what was asked for, for which no time limit of a library ever comes.

Only what was asked for counts: a server can go on for days with `100 Continue`, headers, sizes of chunks and trailers. So a server has a
minute for the head of an answer, and again for each `PIECE_BYTES` of a body. Then all connections of this process are broken off. This is
done on Linux alone, and connections of libraries in C, such as curl_cffi, are not seen.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any, ClassVar

from vip.errors import ItemError
from vip.video.http import LEAST_BYTES, TIMEOUT_S

PERIODS = 3  # of TIMEOUT_S: redirects, and a host with several addresses, take some
PIECE_BYTES = PERIODS * LEAST_BYTES
LOOKS = 20  # in each; they are counted, because a clock goes on while the process is stopped


@dataclass(eq=False, slots=True)
class _Wait:
    looks: int = 0


class ConnectionWatch:
    """A watch over the servers that are waited for, in a thread of its own, as long as the `with` lasts."""

    _connections: ClassVar[dict[int, int]] = {}  # number -> inode; of all watches, as connections are kept for the next download

    def __init__(self) -> None:
        self.slow: ItemError | None = None
        """Why all connections were broken off."""
        self._waits: list[_Wait] = []
        self._over = Event()
        self._thread = Thread(target=self._watch, name="vip-slow-servers", daemon=True)

    def __enter__(self) -> ConnectionWatch:
        if sys.platform == "linux":
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def add(self, connection: Any, address: Any) -> None:
        """Note a socket that is about to be connected to an address (host, port, …)."""
        if isinstance(address, tuple) and (number := connection.fileno()) >= 0:
            self._connections[number] = os.fstat(number).st_ino

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Mark the time in which a server is waited for, in this thread.

        Raises:
            TimeoutError: it was broken off.
        """
        self._waits.append(wait := _Wait())
        try:
            yield
        finally:
            self._waits.remove(wait)
        if self.slow:  # what there is reads like a whole answer, if its length was not stated
            raise TimeoutError(str(self.slow))

    def _watch(self) -> None:
        while not self._over.wait(TIMEOUT_S / LOOKS):
            for wait in list(self._waits):
                wait.looks += 1
                if wait.looks > PERIODS * LOOKS:
                    self._break_off()

    def _break_off(self) -> None:
        limit = f"within {PERIODS * TIMEOUT_S:g} s, or sends fewer than {PIECE_BYTES:,} bytes in them"
        self.slow = ItemError(f"The server does not answer {limit}. Try again later.", "network")
        for number, inode in list(self._connections.items()):
            with suppress(OSError), _twin(number, inode) as twin:  # it may be closed
                twin.shutdown(socket.SHUT_RDWR)


def _twin(number: int, inode: int) -> socket.socket:
    """Return the socket under another number, which means nothing else before it is closed.

    Raises:
        OSError: it is closed by now, and the number may mean something else.
    """
    copy = os.dup(number)
    try:
        if os.fstat(copy).st_ino != inode:
            raise OSError(errno.EBADF, "closed")
        return socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        raise
