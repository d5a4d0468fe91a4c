"""Messages between an embedding server and its clients: JSON and plain arrays; nothing is unpickled.

Both ends prove that they know the key before the first word (`multiprocessing.connection`). Then the server sends an `EmbedderInfo`,
and answers each `EmbeddingRequest` with an `EmbeddingReply`. The bytes of its arrays, which may be none, follow each message.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterable
from multiprocessing.connection import Connection
from typing import Annotated, Any, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import Field, NonNegativeInt, PositiveInt

from vip.protocols import EmbedderCapabilities
from vip.records import RecordPart

GREETING_S = 30.0  # for the first words; who does not know the key cannot keep anybody longer
SILENT_S, PROBE_S, PROBES = 30, 10, 3  # a machine that vanished is noticed after a minute
HEADER_BYTES, ARRAYS_BYTES, TEXTS = 2**24, 2**30, 1024  # the most that is taken

PartT = TypeVar("PartT", bound=RecordPart)


class ResizeSteps(RecordPart):
    """The steps of `vip.models.clip.preprocessing`, as its `Preprocessing` takes them."""

    size: tuple[PositiveInt, PositiveInt]
    resize_mode: str
    interpolation: str
    fill_color: int
    mean: tuple[float, ...]
    std: tuple[float, ...]


class EmbedderInfo(RecordPart):
    """The embedder that is served."""

    name: str
    dim: PositiveInt
    capabilities: EmbedderCapabilities
    """Without `prepare`, which is code."""
    resize_steps: ResizeSteps | None = None
    """Those of `prepare`, where it is a `Preprocessing`."""


EmbedderInfo.model_rebuild(_types_namespace={"np": np, "npt": npt})  # `prepare` takes and gives arrays


class EmbeddingRequest(RecordPart):
    """Texts; or the heights and widths of the pictures (H, W, 3) that follow one after the other."""

    texts: Annotated[tuple[str, ...], Field(max_length=TEXTS)] | None = None
    shapes: tuple[tuple[PositiveInt, PositiveInt], ...] = ()


class EmbeddingReply(RecordPart):
    """The shape of the float32 that follow; or why there are none."""

    shape: tuple[NonNegativeInt, NonNegativeInt] = (0, 0)
    error: str | None = None


def send(connection: Connection, message: RecordPart, arrays: Iterable[npt.NDArray[Any]] = ()) -> None:
    connection.send_bytes(message.model_dump_json(exclude_unset=True).encode())
    connection.send_bytes(b"".join(np.ascontiguousarray(array).data for array in arrays))


def receive(connection: Connection, kind: type[PartT]) -> tuple[PartT, bytes]:
    """Return the message and the arrays that the other end sent.

    Raises:
        EOFError, OSError: it is gone, silent for too long, or says too much.
        ValueError: it says something else.
    """
    return kind.model_validate_json(connection.recv_bytes(HEADER_BYTES)), connection.recv_bytes(ARRAYS_BYTES)


def wrap_socket(sock: socket.socket) -> Connection:
    """Return a connection that takes the socket over. It sends what it has at once, and notices when the other machine vanishes."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    probing = {"TCP_KEEPIDLE": SILENT_S, "TCP_KEEPINTVL": PROBE_S, "TCP_KEEPCNT": PROBES}
    for name, value in {**probing, "TCP_USER_TIMEOUT": (SILENT_S + PROBE_S * PROBES) * 1000}.items():
        if hasattr(socket, name):  # on Linux all of them are there
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    sock.settimeout(None)
    return Connection(sock.detach())


def set_read_timeout(connection: Connection, seconds: float) -> None:
    """Let reads fail with OSError after so many seconds of silence; 0: never."""
    limit = struct.pack("l", int(seconds * 1000)) if sys.platform == "win32" else struct.pack("ll", int(seconds), 0)
    with socket.socket(fileno=socket.dup(connection.fileno())) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
