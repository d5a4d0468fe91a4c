"""An embedder of this process for others to use: the side of the GPU, to which `vip.models.embedding_server.client` is the other.

In: an embedder, and the address of this machine by which others reach it. Out: what to give them, with a fresh key. A thread for each
client reads its questions, and one embeds what waits, of several clients together. What a client does, or a stranger, costs another
one no more than the time that its pictures take. Nothing is encrypted but the proof of the key.
"""

from __future__ import annotations

import logging
import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate, pairwise
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

import numpy as np

from vip.errors import BackendError, VipError
from vip.models.clip.preprocessing import Preprocessing
from vip.models.embedding_server.batcher import EmbeddingBatcher
from vip.models.embedding_server.protocol import (
    GREETING_S,
    EmbedderInfo,
    EmbeddingReply,
    EmbeddingRequest,
    ResizeSteps,
    receive,
    send,
    set_read_timeout,
    wrap_socket,
)
from vip.protocols import Embedder
from vip.records import Image, Vectors

KEY_BYTES = 32
POLL_S = 0.1


def serve(embedder: Embedder, host: str) -> tuple[str, Callable[[], None]]:
    """Serve clients in threads until the returned function is called.

    Args:
        host: where it listens, and nowhere else: `127.0.0.1`, or the address of this machine in its network.

    Returns:
        `HOST:PORT:KEY`, a secret, for the environment variable VIP_EMBEDDING_SERVER of those who ask; and what ends it.

    Raises:
        BackendError: it cannot listen there.
    """
    key = secrets.token_bytes(KEY_BYTES)
    try:
        server = _EmbeddingServer(host, key, embedder)
    except OSError as exc:
        raise BackendError(f"The embedding server cannot listen at {host} ({exc.strerror}). Give an address of this machine.") from exc
    threading.Thread(target=server.serve_forever, args=[POLL_S], daemon=True).start()
    return f"{host}:{server.server_address[1]}:{key.hex()}", server.stop


def info_of(embedder: Embedder) -> EmbedderInfo:
    """Return what clients need to know of an embedder."""
    prepare, steps = embedder.capabilities.prepare, None
    if isinstance(prepare, Preprocessing):
        resize = {"resize_mode": prepare.mode, "interpolation": prepare.interpolation, "fill_color": prepare.fill}
        steps = ResizeSteps(size=(prepare.height, prepare.width), mean=prepare.mean, std=prepare.std, **resize)
    return EmbedderInfo(name=embedder.name, dim=embedder.dim, capabilities=replace(embedder.capabilities, prepare=None), resize_steps=steps)


class _EmbeddingServer(ThreadingTCPServer):
    """A TCP server with a thread for each client."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, host: str, key: bytes, embedder: Embedder) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, 0), _ClientConnection)
        self.key, self.info, self.batcher = key, info_of(embedder), EmbeddingBatcher(embedder)
        self._connected: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connected.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connected.discard(request)
        super().shutdown_request(request)

    def stop(self) -> None:
        self.shutdown()
        self.server_close()
        self.batcher.close()
        for client_socket in list(self._connected):
            with suppress(OSError):  # it has just hung up
                client_socket.shutdown(socket.SHUT_RDWR)


class _ClientConnection(BaseRequestHandler):
    """The connection of one client, until it hangs up, vanishes, or sends something invalid."""

    server: _EmbeddingServer

    def handle(self) -> None:
        gone = (EOFError, OSError, ValueError, AuthenticationError, AssertionError)  # the last: what authentication raises in Python 3.11
        with suppress(*gone), wrap_socket(self.request.dup()) as connection:
            set_read_timeout(connection, GREETING_S)
            deliver_challenge(connection, self.server.key)
            answer_challenge(connection, self.server.key)
            set_read_timeout(connection, 0)
            send(connection, self.server.info)
            with self.server.batcher.register_client():
                while True:
                    self._answer(connection)

    def _answer(self, connection: Connection) -> None:
        request, data = receive(connection, EmbeddingRequest)
        items = decode_pictures(request, data, self.server.info.capabilities.batch) if request.texts is None else request.texts
        try:
            rows: Vectors = self.server.batcher.embed(items, are_texts=request.texts is not None)
        except VipError as exc:
            send(connection, EmbeddingReply(error=str(exc)))
        except Exception as exc:
            logging.getLogger(__name__).exception("The embedder %s failed", self.server.info.name)
            why = f"{type(exc).__name__}: {exc}".splitlines()[0]
            send(
                connection,
                EmbeddingReply(error=f"The embedder {self.server.info.name} failed in its server ({why}). Look at what that printed."),
            )
        else:
            rows = np.asarray(rows, np.float32)
            send(connection, EmbeddingReply(shape=(len(rows), rows.shape[1])), [rows])


def decode_pictures(request: EmbeddingRequest, data: bytes, most: int) -> list[Image]:
    """Return the pictures of a request, uint8 (H, W, 3) each.

    Raises:
        ValueError: more than a client sends at once, or other bytes than it says.
    """
    ends = list(accumulate((height * width * 3 for height, width in request.shapes), initial=0))
    if len(request.shapes) > most or ends[-1] != len(data):
        raise ValueError(f"{len(request.shapes)} pictures in {len(data)} bytes")
    pixels = np.frombuffer(data, np.uint8)
    return [pixels[start:end].reshape(*shape, 3) for (start, end), shape in zip(pairwise(ends), request.shapes, strict=True)]
