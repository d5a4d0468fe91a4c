"""A server of files in this process that counts the bytes it sends, and fails in the ways in which servers fail."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


@dataclass
class FileServer:
    """What it serves and how; change it while it runs."""

    folder: Path
    address: str = ""
    ranges: bool = True
    size: str | None = None
    """The size that it states of each file; by default the true one."""
    status: int | None = None
    """Answer everything with this status."""
    redirects: dict[str, str] = field(default_factory=dict)
    """Path -> where it leads."""
    breaks_after: int | None = None
    """Close the connection without an answer from this request on."""
    most_bytes: int = 10**9
    """It sends no more at once, whatever is asked for."""
    broken: int = 10**9
    """How many times it does so."""
    sent_bytes: int = 0
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """Path and Range of each request."""
    logins: list[str | None] = field(default_factory=list)


@contextmanager
def serving(folder: Path) -> Iterator[FileServer]:
    """Serve the files of a folder on this machine."""
    server = FileServer(folder)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            _answer(self, server)

        def log_message(self, *_: object) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.daemon_threads = True
    server.address = f"http://127.0.0.1:{running.server_port}"
    thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        running.shutdown()
        thread.join()
        running.server_close()


def _answer(handler: Any, server: FileServer) -> None:
    wanted = handler.headers.get("Range")
    server.asked.append((handler.path, wanted))
    server.logins.append(handler.headers.get("Authorization"))
    if server.breaks_after is not None and len(server.asked) > server.breaks_after and server.broken > 0:
        server.broken -= 1
        handler.close_connection = True
        return
    path = server.folder / unquote(urlsplit(handler.path).path).lstrip("/")
    if handler.path in server.redirects:
        _head(handler, 302, 0, Location=server.redirects[handler.path])
    elif server.status is not None or not path.is_file():
        _head(handler, server.status or 404, 0)
    else:
        _send(handler, server, path.read_bytes(), re.fullmatch(r"bytes=(\d+)-(\d+)", wanted or "") if server.ranges else None)


def _send(handler: Any, server: FileServer, data: bytes, found: re.Match[str] | None) -> None:
    if found is None:
        _head(handler, 200, len(data))
        part = data
    elif int(found[1]) >= len(data):
        _head(handler, 416, 0, Content_Range=f"bytes */{len(data)}")
        return
    else:
        part = data[int(found[1]) : int(found[2]) + 1][: server.most_bytes]
        last = int(found[1]) + len(part) - 1
        _head(
            handler,
            206,
            len(part),
            Content_Range=f"bytes {found[1]}-{last}/{server.size or len(data)}",
            Last_Modified="Tue, 01 Jul 2025 10:00:00 GMT",
        )
    server.sent_bytes += len(part)  # before the client can look
    try:
        handler.wfile.write(part)
    except OSError:
        handler.close_connection = True


def _head(handler: Any, status: int, length: int, **headers: str) -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(length))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
