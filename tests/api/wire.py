"""HTTP/1.1 as far as clients of an API need it: calls are read from a stream, answers written to it.

In: the two streams of a connection. Out: `Call`s with their whole body, in memory or, where it may be large, in a file.
"""

from __future__ import annotations

import json
import random
import tempfile
from asyncio import IncompleteReadError, LimitOverrunError, StreamReader, StreamWriter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any, Literal
from urllib.parse import parse_qsl, urlsplit

LIMIT_BYTES = 2**20  # of what a connection buffers before its client has to wait
PIECE_BYTES = 2**18
JSON = "application/json"

Manner = Literal["whole", "chunked", "short", "none"]
"""How an answer leaves: with its length; in pieces; with a length that never comes; or the connection is closed instead."""


@dataclass(slots=True)
class Call:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes = b""
    file: IO[bytes] | None = None
    """The body, where it was taken into a file."""


@dataclass(slots=True)
class Answer:
    status: int = 200
    body: bytes = b""
    kind: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    manner: Manner = "whole"
    file: Path | None = None
    """Sent instead of the body."""

    @classmethod
    def of(cls, value: object, status: int = 200) -> Answer:
        return cls(status, json.dumps(value).encode())


def failure(status: int, message: str, *, code: str | None = None, param: str | None = None, kind: str = "test") -> Answer:
    return Answer.of(error_of(message, code=code, param=param, kind=kind), status)


def error_of(message: str, *, code: str | None = None, param: str | None = None, kind: str = "test") -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def noise(seed: int, kind: str = JSON) -> Answer:
    """A stream of bytes that mean nothing."""
    return Answer(200, random.Random(seed).randbytes(3 * 4096), kind, manner="chunked")


async def read_call(reader: StreamReader, writer: StreamWriter, *, to_file: str) -> Call | None:
    """The next call of a connection; None where it ends.

    Args:
        to_file: bodies posted to paths that end so are taken into a temporary file.
    """
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        request, *lines = head[:-4].decode("latin-1").split("\r\n")
        method, target, _ = request.split(" ")
        parts = urlsplit(target)
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        call = Call(method, parts.path, dict(parse_qsl(parts.query)), headers)
        if headers.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if method == "POST" and call.path.endswith(to_file):
            call.file = tempfile.TemporaryFile()  # noqa: SIM115 - the one that takes the call closes it
            async for piece in _pieces(reader, headers):
                call.file.write(piece)
        elif "transfer-encoding" in headers:
            call.body = b"".join([piece async for piece in _pieces(reader, headers)])
        else:
            call.body = await reader.readexactly(int(headers.get("content-length", 0)))
    except (IncompleteReadError, LimitOverrunError, ConnectionError, ValueError):
        return None
    return call


async def _pieces(reader: StreamReader, headers: Mapping[str, str]) -> AsyncIterator[bytes]:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            yield await reader.readexactly(size)
            await reader.readexactly(2)
        while await reader.readuntil(b"\r\n") != b"\r\n":
            pass  # trailers
        return
    left = int(headers.get("content-length", 0))
    while left:
        piece = await reader.read(min(left, PIECE_BYTES))
        if not piece:
            raise IncompleteReadError(b"", left)
        left -= len(piece)
        yield piece


async def write_answer(writer: StreamWriter, answer: Answer, headers: Mapping[str, str]) -> bool:
    """Send it; False where the connection is over afterwards."""
    if answer.manner == "none":
        return False
    size = answer.file.stat().st_size if answer.file else len(answer.body)
    length = f"Content-Length: {2 * size + 100 if answer.manner == 'short' else size}"
    lines = [
        f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}",
        f"Content-Type: {answer.kind}",
        "Transfer-Encoding: chunked" if answer.manner == "chunked" else length,
        *(f"{name}: {value}" for name, value in {**headers, **answer.headers}.items()),
    ]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
    if answer.file:
        with answer.file.open("rb") as file:
            while piece := file.read(PIECE_BYTES):
                writer.write(piece)
                await writer.drain()
    elif answer.manner == "chunked":
        for start in range(0, size, 4096):
            piece = answer.body[start : start + 4096]
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
    else:
        writer.write(answer.body)
    await writer.drain()
    return answer.manner != "short"
