from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import vip.download.slow_servers
from tests.download.pages import page, video
from tests.video_host import VideoHost
from vip.download.slow_servers import ConnectionWatch, _twin
from vip.errors import ItemError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux counts what a connection received")
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


def drip(connection: socket.socket, data: bytes = b"x", pause_s: float = 0.01) -> None:
    while True:
        connection.sendall(data)
        time.sleep(pause_s)


# ---------------------------------------------------------------- downloads


@pytest.mark.parametrize("part", ["page", "video"])
def test_a_server_that_sends_a_byte_now_and_then(
    host: VideoHost, refused: Callable[..., ItemError], mp4: bytes, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vip.download.slow_servers, "TIMEOUT_S", TIMEOUT_S)
    address = host.put("/v.mp4", mp4, "video/mp4", way="drip" if part == "video" else "whole")
    address = host.put("/page", page(video("/v.mp4")), way="drip") if part == "page" else address
    error = refused(address)
    assert (error.kind, str(error)) == (
        "network",
        f"The server at {host.address[7:]} sends fewer than 2,000 bytes in {TIMEOUT_S} s. Try again later.",
    )
    assert len(host.asked) <= 2, "it is not asked again, to hang as long"


# ---------------------------------------------------------------- connections


def test_one_that_drips_is_broken_off_and_the_others_go_on(watch: ConnectionWatch, connect: Connect) -> None:
    silent, slow = connect(lambda connection: connection.recv(1)), connect(drip)
    name = "{}:{}".format(*slow.getpeername())
    slow.settimeout(20)
    with suppress(ConnectionError):
        while slow.recv(100):
            pass
    assert watch.slow is not None
    assert name in str(watch.slow)
    silent.settimeout(0)
    with pytest.raises(BlockingIOError):
        silent.recv(1)


def late(connection: socket.socket) -> None:
    time.sleep(TIMEOUT_S / 2)
    connection.sendall(b"small")
    connection.recv(1)


def answering(connection: socket.socket) -> None:
    while asked := connection.recv(1):
        connection.sendall(asked)


@pytest.mark.parametrize("act", [late, answering, lambda connection: drip(connection, bytes(3000), TIMEOUT_S / 3)])
def test_a_small_answer_that_comes_late_questions_without_end_and_enough_bytes_are_left_alone(
    watch: ConnectionWatch, connect: Connect, act: Callable[[socket.socket], object]
) -> None:
    client = connect(act)
    client.settimeout(TIMEOUT_S / 20)
    due_s = time.monotonic() + 5 * TIMEOUT_S
    while time.monotonic() < due_s:
        if act is answering:
            client.sendall(b"x")
        with suppress(TimeoutError):
            assert client.recv(4000)
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
