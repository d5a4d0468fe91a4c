"""Servers that keep a connection open with a byte now and then, for which no time limit of a library ever comes.

Linux counts what a connection received. One that was asked for nothing new and gave some bytes, but fewer than 2,000, in 20 s and again
in the next 20 s is broken off. One that is silent is left alone: it may wait for the next request, and else the limit of the library comes.
Connections of libraries in C, such as curl_cffi, are not seen.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any

from vip.errors import ItemError
from vip.video.http import LEAST_BYTES, TIMEOUT_S

LOOKS = 20  # within the time; they are counted, because a clock goes on while the process is stopped
SLOW_TIMES = 2  # a small answer that comes late is not one that goes on
TCP_INFO_BYTES = 136


@dataclass(slots=True)
class _Connection:
    """A connection, and what it had sent and received when it was last asked for something, or the last 20 s were over."""

    inode: int
    name: str
    sent: int = 0
    received: int = 0
    looks: int = 0
    slow_times: int = 0


class ConnectionWatch:
    """A watch over the connections that are added, in a thread of its own, as long as the `with` lasts."""

    def __init__(self) -> None:
        self.slow: ItemError | None = None
        """Why a connection was broken off."""
        self._connections: dict[int, _Connection] = {}
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
        """Watch a socket that is about to be connected to an address (host, port, …)."""
        if isinstance(address, tuple) and (number := connection.fileno()) >= 0:
            self._connections[number] = _Connection(os.fstat(number).st_ino, f"{address[0]}:{address[1]}")

    def _watch(self) -> None:
        while not self._over.wait(TIMEOUT_S / LOOKS):
            for number, connection in list(self._connections.items()):
                try:
                    with _twin(number, connection.inode) as twin:
                        if self._is_slow(twin, connection):
                            why = f"The server at {connection.name} sends fewer than {LEAST_BYTES:,} bytes in {TIMEOUT_S:g} s."
                            self.slow = ItemError(f"{why} Try again later.", "network")
                            twin.shutdown(socket.SHUT_RDWR)
                except OSError:  # it is closed, or not of TCP
                    self._connections.pop(number, None)

    def _is_slow(self, twin: socket.socket, connection: _Connection) -> bool:
        sent, received = _counts(twin)
        if sent > connection.sent:
            connection.sent, connection.received, connection.looks, connection.slow_times = sent, received, 0, 0
        connection.looks += 1
        if connection.looks > LOOKS:
            is_slow = 0 < received - connection.received < LEAST_BYTES
            connection.received, connection.looks = received, 1
            connection.slow_times = connection.slow_times + 1 if is_slow else 0
        return connection.slow_times == SLOW_TIMES


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


def _counts(connection: socket.socket) -> tuple[int, int]:
    """Return how many bytes a connection of TCP sent and received."""
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
    sent, received = struct.unpack_from("=QQ", info, 120)  # tcpi_bytes_acked, tcpi_bytes_received
    return sent, received
