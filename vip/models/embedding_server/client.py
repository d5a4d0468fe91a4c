"""The embedder of another process: many that decode share the few that have the model on a GPU.

In: the address `HOST:PORT:KEY` that `vip.models.embedding_server.server` gave, whose key is a secret. Out: an `Embedder` with the
name, the width and the identity of the one that is served: results and records are the same as with the model in this process.
Pictures are shrunk here, exactly as the model would.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import NamedTuple

import numpy as np

from vip.errors import BackendError
from vip.models.clip import weight_files
from vip.models.clip.preprocessing import Preprocessing
from vip.models.embedding_server.protocol import (
    GREETING_S,
    TEXTS,
    EmbedderInfo,
    EmbeddingReply,
    EmbeddingRequest,
    ResizeSteps,
    receive,
    send,
    set_read_timeout,
    wrap_socket,
)
from vip.records import Image, Vectors

ANSWER_S = 600.0  # it waits for the questions of all others that came before, on a slow CPU too
PICTURE_BYTES = 16 * 2**20  # in one question; the server has one of each client in memory
SHORT_NAMES = {"clip": f"clip:{weight_files.DEFAULT_ARCH}/{weight_files.DEFAULT_TAG}"}


class ServerAddress(NamedTuple):
    """Host, port and key of a server; the key is never shown."""

    host: str
    port: int
    key: bytes

    @classmethod
    def parse(cls, text: str) -> ServerAddress:
        """Read `HOST:PORT:KEY`.

        Raises:
            BackendError: the text is not of that kind.
        """
        try:
            host, port, key = text.strip().rsplit(":", 2)
            return cls(host, int(port), bytes.fromhex(key))
        except ValueError:
            raise BackendError(
                "VIP_EMBEDDING_SERVER is not HOST:PORT:KEY. Set it to the address that the server gave, or unset it."
            ) from None

    def __repr__(self) -> str:
        return f"{self.host}:{self.port}"


class ServedEmbedder:
    """An embedder in another process. It has the name, the width and the capabilities of the embedder there.

    Raises:
        BackendError: there is no server, or it does not take the key.
    """

    def __init__(self, address: str) -> None:
        self._address = ServerAddress.parse(address)
        self._idle: list[Connection] = []
        self._pid = os.getpid()
        with _translate_errors(self._address):
            connection, info = _connect(self._address)
        connection.close()  # this process may be forked, and may itself never ask
        self.name, self.dim = info.name, info.dim
        self.capabilities = replace(info.capabilities, prepare=_preprocessing(info.resize_steps))

    def embed_images(self, images: Sequence[Image]) -> Vectors:
        """Return float32 (N, dim), rows of length 1.

        Raises:
            BackendError: the server is gone, or the embedder there raised an error.
        """
        parts = [
            self._request(EmbeddingRequest(shapes=tuple(image.shape[:2] for image in part)), part) for part in self._split_batches(images)
        ]
        return np.concatenate([np.zeros((0, self.dim), np.float32), *parts])

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """Return float32 (N, any), rows of length 1. Raises what `embed_images` does."""
        starts = range(0, max(1, len(texts)), TEXTS)
        return np.concatenate([self._request(EmbeddingRequest(texts=tuple(texts[start : start + TEXTS]))) for start in starts])

    def _split_batches(self, images: Sequence[Image]) -> Iterator[list[Image]]:
        part: list[Image] = []
        size = 0
        for image in images:
            if part and (len(part) == self.capabilities.batch or size + image.nbytes > PICTURE_BYTES):
                yield part
                part, size = [], 0
            part.append(image)
            size += image.nbytes
        if part:
            yield part

    def _request(self, request: EmbeddingRequest, images: Sequence[Image] = ()) -> Vectors:
        """Return the rows that the server answers; connect again once if it hung up."""
        with _translate_errors(self._address):
            try:
                reply, data = self._exchange(request, images)
            except (EOFError, OSError):
                self._idle.clear()
                reply, data = self._exchange(request, images)
            if reply.error is None:
                return np.frombuffer(data, np.float32).reshape(reply.shape)
        raise BackendError(reply.error)

    def _exchange(self, request: EmbeddingRequest, images: Sequence[Image]) -> tuple[EmbeddingReply, bytes]:
        if self._pid != os.getpid():  # a fork must not speak over the connections of its parent
            self._idle, self._pid = [], os.getpid()
        try:
            connection = self._idle.pop()
        except IndexError:  # other threads have them
            connection, _ = _connect(self._address)
        with _close_on_error(connection):
            send(connection, request, images)
            reply = receive(connection, EmbeddingReply)
        self._idle.append(connection)
        return reply


@cache
def _embedder_at(address: str) -> ServedEmbedder:
    return ServedEmbedder(address)


def served_embedder(address: str, name: str, device: str, precision: str) -> ServedEmbedder | None:
    """Return the embedder that is served at an address, if it has this name, device and precision; else None.

    The number of a device (`cuda:1`) does not count: it is one of the machine that asks.
    """
    embedder = _embedder_at(address)
    at, _, has = (embedder.capabilities.device or "cpu").partition(" in ")
    same_place = device.partition(":")[0] in ("auto", at.partition(":")[0]) and precision in ("auto", has)
    return embedder if same_place and embedder.name == SHORT_NAMES.get(name, name) else None


def _preprocessing(steps: ResizeSteps | None) -> Preprocessing | None:
    """Return the preprocessing of the model there, to shrink pictures here; None without torch, or for another kind of model."""
    if steps is None:
        return None
    try:
        import torch  # noqa: F401 - here, or each fork would load it again
    except ImportError:
        return None
    return Preprocessing(steps.model_dump())


def _connect(address: ServerAddress) -> tuple[Connection, EmbedderInfo]:
    """Return a connection whose other end knows the key, and what is served there."""
    connection = wrap_socket(socket.create_connection((address.host, address.port), GREETING_S))
    with _close_on_error(connection):
        set_read_timeout(connection, GREETING_S)
        answer_challenge(connection, address.key)
        deliver_challenge(connection, address.key)
        info, _ = receive(connection, EmbedderInfo)
        set_read_timeout(connection, ANSWER_S)
    return connection, info


@contextmanager
def _close_on_error(connection: Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise


@contextmanager
def _translate_errors(address: ServerAddress) -> Iterator[None]:
    """Raise errors on the way to the server and back as a BackendError."""
    server = f"The embedding server at {address}"
    try:
        yield
    except (AuthenticationError, AssertionError) as exc:  # up to Python 3.11 an assertion looks for the first words
        raise BackendError(f"{server} refuses the key. Set VIP_EMBEDDING_SERVER to the address that it gave, or unset it.") from exc
    except (EOFError, OSError) as exc:
        why = "it is silent" if isinstance(exc, BlockingIOError) else getattr(exc, "strerror", None) or "it hung up"
        raise BackendError(f"{server} cannot be asked: {why}. Start it again, or unset VIP_EMBEDDING_SERVER.") from exc
    except ValueError as exc:
        raise BackendError(f"{server} gives answers that make no sense. Use the same version of vip at both ends.") from exc
