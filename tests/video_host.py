"""A host of videos in a thread of this process, with all the ways in which such hosts fail; also an HTTP proxy to itself."""

from __future__ import annotations

import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import urlsplit

BLOCK = bytes(range(256)) * 256


@dataclass
class Answer:
    """What is said to one request.

    Args:
        way: whole; `reset`: half of the body, then the connection is cut; `short`: half of it, then a proper end; `hang`: half of it,
            then silence; `endless`: the body, then more for ever, and no length told; `unsized`: the body, and no length told;
            `mute`: nothing at all; `drip`: half of it, then a byte now and then.
        pause_s: before each block of 64 kB.
    """

    body: bytes = b""
    type: str = "text/html"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    way: Literal["whole", "reset", "short", "hang", "endless", "unsized", "mute", "drip"] = "whole"
    pause_s: float = 0.0


@dataclass
class VideoHost:
    """Change `answers` while it runs: path, or path with query, -> what is said, one after the other if there are several."""

    answers: dict[str, Answer | list[Answer]] = field(default_factory=dict)
    address: str = ""
    asked: list[str] = field(default_factory=list)
    """What was asked for, as it stood in the request: an address where it was asked as a proxy."""
    cookies: list[str | None] = field(default_factory=list)
    sent_bytes: int = 0
    closing: threading.Event = field(default_factory=threading.Event)

    def put(self, path: str, body: bytes | str = b"", type: str = "text/html", **others: Any) -> str:  # noqa: A002 - as the header
        """Say this at the path; the whole address."""
        self.answers[path] = Answer(body.encode() if isinstance(body, str) else body, type, **others)
        return self.address + path

    def answer(self, target: str) -> Answer:
        parts = urlsplit(target)
        path = parts.path
        found = self.answers.get(f"{path}?{parts.query}", self.answers.get(path, Answer(b"no such page", status=404)))
        if isinstance(found, list):
            return found.pop(0) if len(found) > 1 else found[0]
        return found


@contextmanager
def hosting() -> Iterator[VideoHost]:
    host = VideoHost()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            host.asked.append(self.path)
            host.cookies.append(self.headers.get("Cookie"))
            with suppress(OSError):  # the client hung up
                _say(self, host, host.answer(self.path))

        do_CONNECT = do_GET  # noqa: N815 - as http.server wants it

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass

    running = Server(("127.0.0.1", 0), Handler)
    host.address = f"http://127.0.0.1:{running.server_port}"
    thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield host
    finally:
        host.closing.set()
        running.shutdown()
        thread.join()
        running.server_close()


def _say(handler: Any, host: VideoHost, answer: Answer) -> None:
    if answer.way == "mute":
        host.closing.wait(60)
        return
    start = _start(handler, answer)
    body = answer.body[start:]
    handler.send_response(206 if start else answer.status)
    handler.send_header("Content-Type", answer.type)
    for name, value in answer.headers.items():
        handler.send_header(name, value)
    if start:
        handler.send_header("Content-Range", f"bytes {start}-{len(answer.body) - 1}/{len(answer.body)}")
    if answer.way not in {"endless", "unsized"}:
        handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    body = body if answer.way in {"whole", "endless", "unsized"} else body[: len(body) // 2]
    for block in range(0, len(body), len(BLOCK)) if answer.pause_s else ():
        time.sleep(answer.pause_s)
        _send(handler, host, body[block : block + len(BLOCK)])
    if not answer.pause_s:
        _send(handler, host, body)
    if answer.way == "whole":
        return
    handler.close_connection = True
    if answer.way == "hang":
        host.closing.wait(60)
    while answer.way == "drip" and not host.closing.wait(0.02):
        _send(handler, host, b" ")
    while answer.way == "endless" and not host.closing.is_set():
        _send(handler, host, BLOCK)
    if answer.way == "reset":
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing sends a reset
        for one in (handler.rfile, handler.wfile, handler.connection):
            one.close()


def _start(handler: Any, answer: Answer) -> int:
    """Where a range begins; 0 for the whole."""
    found = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
    return int(found[1]) if found and answer.status == 200 and 0 < int(found[1]) < len(answer.body) else 0


def _send(handler: Any, host: VideoHost, data: bytes) -> None:
    handler.wfile.write(data)
    host.sent_bytes += len(data)
