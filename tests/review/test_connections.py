"""Connections over which no request comes are closed, and those beyond a number; requests are answered however long that takes."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

pytest.importorskip("uvicorn")

pytestmark = [pytest.mark.extra("uvicorn")]

SERVER = """
import asyncio, socket, sys
from vip.review import connections

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        for name in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{name}.complete"})
        return
    await asyncio.sleep({"/slow": 1.0, "/never": 1e6}.get(scope["path"], 0.0))
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})

connections.REQUEST_WITHIN_S, connections.MOST_CONNECTIONS, files = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
if files:
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
sock = socket.create_server(("127.0.0.1", 0))
print(sock.getsockname()[1], flush=True)
connections.serve(app, sock)
"""


@contextmanager
def serving(within_s: float = 60.0, *, most: int = 100, files: int = 0) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Yield the port of a server and its process."""
    command = [sys.executable, "-c", SERVER, str(within_s), str(most), str(files)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline()), process
        finally:
            process.kill()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(0.3) as (port, _):
        yield port


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


@pytest.mark.slow
@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n"])
def test_a_connection_without_a_whole_request_is_closed(connection: socket.socket, sent: bytes) -> None:
    connection.sendall(sent)
    assert connection.recv(1000) == b""


@pytest.mark.slow
def test_a_second_request_that_never_ends_is_not_waited_for(connection: socket.socket) -> None:
    connection.sendall(request("/"))
    assert answer(connection).startswith(b"HTTP/1.1 200")
    connection.sendall(b"GET / HT")
    assert connection.recv(1000) == b""


@pytest.mark.slow
def test_an_answer_may_take_longer_and_another_request_follow(connection: socket.socket) -> None:
    for path in ("/slow", "/", "/slow"):
        connection.sendall(request(path))
        assert answer(connection).startswith(b"HTTP/1.1 200")


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1000) == b""
    except ConnectionResetError:
        return True


def is_answered(connection: socket.socket, path: str = "/") -> bool:
    connection.sendall(request(path))
    return answer(connection).startswith(b"HTTP/1.1 200")


@contextmanager
def connected(port: int, count: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20)) for _ in range(count)]


def test_of_too_many_connections_the_one_that_has_waited_the_longest_is_closed() -> None:
    with serving(most=3) as (port, _), connected(port, 3) as (asks, first, second):
        assert is_answered(asks), "it waits anew since then"
        with connected(port, 2) as more:
            assert is_closed(first)
            assert is_closed(second)
            assert all(map(is_answered, [*more, asks]))


def test_connections_with_a_request_stay_and_one_too_many_is_closed() -> None:
    with serving(most=3) as (port, _), connected(port, 3) as busy:
        assert all(map(is_answered, busy)), "the server has taken them all"
        for one in busy:
            one.sendall(request("/slow"))
        with connected(port, 1) as (more,):
            assert is_closed(more)
        assert all(answer(one).startswith(b"HTTP/1.1 200") for one in busy)
        with connected(port, 1) as (later,):
            assert is_answered(later)


@pytest.mark.skipif(sys.platform == "win32", reason="has no bound of open files")
def test_more_connections_than_files_fill_no_terminal() -> None:
    with serving(files=40) as (port, process):
        with connected(port, 60) as some:
            assert is_answered(some[0])
        with connected(port, 1) as (later,):
            assert is_answered(later)
        process.kill()
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
        b"\x16\x03\x01 a client of TLS\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\nContent-Length: -1\r\n\r\n",
    ],
)
def test_requests_that_are_none_fill_no_terminal(head: bytes) -> None:
    with serving() as (port, process):
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
                connection.sendall(head)
                assert connection.recv(1000)
        process.terminate()
        assert process.communicate(timeout=20) == ("", "")


BAD_CHUNK = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n"


def test_a_body_that_is_none_is_answered_once_and_fills_no_terminal() -> None:
    with serving() as (port, process):
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
                connection.sendall(BAD_CHUNK)
                found = b""
                while more := connection.recv(1000):
                    found += more
                assert found.startswith(b"HTTP/1.1 400"), found
                assert found.count(b"HTTP/1.1") == 1
        process.terminate()
        assert process.communicate(timeout=20) == ("", "")


def test_a_request_that_is_not_done_holds_up_no_end_and_fills_no_terminal() -> None:
    with serving() as (port, process), connected(port, 2) as (asks, waits):
        waits.sendall(request("/never"))
        assert is_answered(asks)
        start = time.monotonic()
        process.terminate()
        assert process.communicate(timeout=20) == ("", "")
        assert time.monotonic() - start < 10
