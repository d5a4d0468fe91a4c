"""A server on localhost that sends the very bytes it is told, and keeps what it was sent."""

from __future__ import annotations

import json
import socket
import socketserver
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from threading import Thread
from types import TracebackType
from typing import Any, Self

PAUSE_S = 0.1
Answer = bytes | Iterable[bytes]


def http(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    """An answer of HTTP with a length."""
    lines = {
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Connection": "close",  # each gets one answer: a client that does not know may ask again where nobody listens any more
        **{name.replace("_", "-"): v for name, v in headers.items()},
    }
    return b"\r\n".join(
        [f"HTTP/1.1 {status}".encode(), *(f"{name}: {value}".encode("latin-1") for name, value in lines.items()), b"", body]
    )


def completion(content: Any = "A dog runs on a beach.", **fields: Any) -> bytes:
    """An answer like those of OpenAI, with other fields where they are given."""
    message = {"role": "assistant", "content": content}
    whole = {
        **{"id": "chatcmpl-1", "object": "chat.completion", "model": "tiny-vlm"},
        **{"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]},
        **{"usage": {"prompt_tokens": 11, "completion_tokens": 7}},
        **fields,
    }
    return http(json.dumps(whole).encode())


class HostileServer:
    """Each connection gets one answer: bytes, or pieces of it with a pause after each; or what a function makes of the request."""

    def __init__(self, answer: Answer | Callable[[bytes], Answer]) -> None:
        self.answer = answer
        self.requests: list[bytes] = []
        """Head and body of each request."""

    def __enter__(self) -> Self:
        outer = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                outer._handle(self.request)

        socketserver.ThreadingTCPServer.allow_reuse_address = True
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, args=[0.02], daemon=True)
        self._thread.start()
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.base_url = f"{self.address}/v1"
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handle(self, connection: socket.socket) -> None:
        with suppress(OSError):
            request = _request(connection)
            self.requests.append(request)
            for piece in self._pieces(self.answer(request) if callable(self.answer) else self.answer):
                connection.sendall(piece)

    def _pieces(self, answer: Answer) -> Iterator[bytes]:
        if isinstance(answer, bytes):
            yield answer.replace(b"{address}", self.address.encode())
            return
        for piece in answer:
            yield piece
            time.sleep(PAUSE_S)


def _request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return data
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = next((int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    while len(body) < length:
        piece = connection.recv(65536)
        if not piece:
            break
        body += piece
    return head + b"\r\n\r\n" + body
