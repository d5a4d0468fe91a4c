"""Connections over which no request comes are closed; requests are answered however long that takes."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

pytest.importorskip("uvicorn")

pytestmark = [pytest.mark.extra("uvicorn"), pytest.mark.slow]

SERVER = """
import asyncio, socket
from vip.review import connections

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        for name in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{name}.complete"})
        return
    await asyncio.sleep(1.0 if scope["path"] == "/slow" else 0.0)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})

connections.REQUEST_WITHIN_S = 0.3
sock = socket.create_server(("127.0.0.1", 0))
print(sock.getsockname()[1], flush=True)
connections.serve(app, sock, shutdown_s=1)
"""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.kill()


@pytest.fixture
def connection(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as found:
        yield found


def request(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


def answer(connection: socket.socket) -> bytes:
    found = b""
    while not found.endswith(b"\r\n\r\nok"):
        found += connection.recv(1000) or b"(closed)\r\n\r\nok"
    return found


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n"])
def test_a_connection_without_a_whole_request_is_closed(connection: socket.socket, sent: bytes) -> None:
    connection.sendall(sent)
    assert connection.recv(1000) == b""


def test_a_second_request_that_never_ends_is_not_waited_for(connection: socket.socket) -> None:
    connection.sendall(request("/"))
    assert answer(connection).startswith(b"HTTP/1.1 200")
    connection.sendall(b"GET / HT")
    assert connection.recv(1000) == b""


def test_an_answer_may_take_longer_and_another_request_follow(connection: socket.socket) -> None:
    for path in ("/slow", "/", "/slow"):
        connection.sendall(request(path))
        assert answer(connection).startswith(b"HTTP/1.1 200")
