from __future__ import annotations

import os
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import vip.download.slow_servers
from tests.download.conftest import Fetch
from tests.download.pages import page, video
from tests.hostile_server import HostileServer, http
from tests.video_host import VideoHost
from vip.download.slow_servers import ConnectionWatch, _twin
from vip.errors import ItemError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="on Linux a socket can be reached by its number")
TIMEOUT_S = 0.2
Connect = Callable[[Callable[[socket.socket], object]], socket.socket]


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[ConnectionWatch]:
    monkeypatch.setattr(vip.download.slow_servers, "TIMEOUT_S", TIMEOUT_S)
    with ConnectionWatch() as running:
        yield running


@pytest.fixture
def connect(watch: ConnectionWatch) -> Iterator[Connect]:
    """A watched connection to a server that does what is given."""
    opened: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def serve(server: socket.socket, act: Callable[[socket.socket], object]) -> None:
        connection, _ = server.accept()
        with connection, suppress(OSError):
            act(connection)

    def get(act: Callable[[socket.socket], object]) -> socket.socket:
        server, client = socket.create_server(("127.0.0.1", 0)), socket.socket()
        opened.extend([server, client])
        threads.append(threading.Thread(target=serve, args=(server, act), daemon=True))
        threads[-1].start()
        watch.add(client, server.getsockname())
        client.connect(server.getsockname())
        return client

    yield get
    for one in opened:
        one.close()
    for thread in threads:
        thread.join()


def drip(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"x")
        time.sleep(0.01)


# ---------------------------------------------------------------- downloads


LIMIT = "does not answer within 0.6 s, or sends fewer than 6,000 bytes in them. Try again later."
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("part", ["page", "video"])
def test_a_server_that_sends_a_byte_now_and_then(
    host: VideoHost, refused: Callable[..., ItemError], mp4: bytes, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vip.download.slow_servers, "TIMEOUT_S", TIMEOUT_S)
    address = host.put("/v.mp4", mp4, "video/mp4", way="drip" if part == "video" else "whole")
    address = host.put("/page", page(video("/v.mp4")), way="drip") if part == "page" else address
    error = refused(address)
    assert (error.kind, str(error)) == ("network", f"The server {LIMIT}")
    assert len(host.asked) <= 2, "it is not asked again, to hang as long"


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\nX: " + b"x" * 3000 + b"\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\n", b"X: " + b"x" * 3000 + b"\r\n"),
        (CHUNKED + b"1;", b"x" * 3000),
        (CHUNKED + b"4\r\n\0\0\0\0\r\n0\r\n", b"X: " + b"x" * 3000 + b"\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n" + bytes(9000), b"x"),  # broken off, it reads like the whole
    ],
)
def test_a_server_that_sends_much_but_nothing_of_the_video(
    refused: Callable[..., ItemError], begin: bytes, more: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vip.download.slow_servers, "TIMEOUT_S", TIMEOUT_S)
    with HostileServer(lambda _: [begin, *[more] * 40]) as server:  # 4 s
        error = refused(f"{server.address}/v.mp4", ytdlp_opts="--socket-timeout 5 --retries 1")
        assert (error.kind, str(error)) == ("network", f"The server {LIMIT}")
        assert len(server.requests) <= 2


def test_a_server_that_sends_enough_may_take_as_long_as_it_likes(fetched: Fetch, mp4: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vip.download.slow_servers, "TIMEOUT_S", TIMEOUT_S)
    data = mp4.ljust(30_000, b"\0")
    answer = http(data, Content_Type="video/mp4")
    with HostileServer([answer[place : place + 3000] for place in range(0, len(answer), 3000)]) as server:
        begin_s = time.monotonic()
        assert fetched(f"{server.address}/v.mp4").path.read_bytes() == data
        assert time.monotonic() - begin_s > 4 * TIMEOUT_S


# ---------------------------------------------------------------- connections


def wait_for(watch: ConnectionWatch, client: socket.socket) -> None:
    def read_all() -> None:
        with watch.waiting(), suppress(ConnectionError):
            while client.recv(100):
                pass

    client.settimeout(20)
    with pytest.raises(TimeoutError, match=re.escape(LIMIT)):
        read_all()
    assert watch.slow is not None


def test_all_are_broken_off_where_a_server_is_waited_for_too_long(watch: ConnectionWatch, connect: Connect) -> None:
    silent, slow = connect(lambda connection: connection.recv(1)), connect(drip)
    wait_for(watch, slow)
    silent.settimeout(0)
    with suppress(ConnectionError):
        assert not silent.recv(1)


def test_one_that_was_kept_from_an_earlier_download_is_broken_off_too(watch: ConnectionWatch, connect: Connect) -> None:
    kept = connect(drip)
    with ConnectionWatch() as later:
        wait_for(later, kept)


def test_a_connection_over_which_nothing_is_asked_is_left_alone(watch: ConnectionWatch, connect: Connect) -> None:
    client = connect(lambda connection: connection.recv(1))
    for _ in range(3):
        with watch.waiting():
            time.sleep(1.5 * TIMEOUT_S)
    client.settimeout(0)
    with pytest.raises(BlockingIOError):
        client.recv(1)
    assert watch.slow is None


def test_what_takes_the_number_of_a_closed_connection_is_left_alone(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        free = os.dup(file.fileno())
        os.close(free)
        for inode in (0, os.fstat(file.fileno()).st_ino):
            with pytest.raises(OSError, match=r"closed|socket"):
                _twin(file.fileno(), inode)
        assert os.dup(file.fileno()) == free, "no copy stays open"
        os.close(free)
