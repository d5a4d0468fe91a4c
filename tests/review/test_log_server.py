"""Actions that are written together: each request gets its own. Clients that break off or trick leave no traceback."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from starlette.exceptions import HTTPException

from tests.review.corpora import action, make_described, open_state
from tests.review.serving import TOKEN, Served, serve
from vip.review.log import Action, StaleValueError
from vip.review.log_server import video_response
from vip.review.server import ReviewServer


def test_a_client_that_is_gone_leaves_the_others_their_own_results(tmp_path: Path) -> None:
    server = ReviewServer(open_state(make_described(tmp_path / "a", 3)), title="a", token="t", hosts=())

    async def write_three() -> list[Action | StaleValueError]:
        gone, _, last = (
            asyncio.create_task(server._write(actions))
            for actions in (
                [action("k0", "verdict", "good"), action("k1", "verdict", "good")],
                [action("k0", "comment", "see left")],
                [action("k2", "verdict", "unusable")],
            )
        )
        await asyncio.sleep(0)  # all three wait for the thread of the log
        gone.cancel()
        return await last

    (written,) = asyncio.run(write_three())
    assert isinstance(written, Action)
    assert (written.item, written.after) == ("k2", "unusable")
    assert len(list(server.state.log.read())) == 4, "what was sent is written, though nobody waits for it"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serve(open_state(make_described(tmp_path / "a", 1))) as running:
        yield running


def sent(port: int, *headers: str, body: str = "", token: str = TOKEN) -> bytes:
    head = (f"POST /api/undo HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX-Review-Token: {token}\r\nContent-Type: application/json\r\n").encode()
    return head + "".join(f"{header}\r\n" for header in headers).encode() + b"\r\n" + body.encode()


def answer_to(port: int, data: bytes) -> bytes:
    """All that comes until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(data)
        return b"".join(iter(lambda: connection.recv(10_000), b""))


def test_a_client_that_hangs_up_in_the_middle_of_a_body_leaves_no_traceback(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), socket.create_connection(("127.0.0.1", served.port)) as connection:
        connection.sendall(sent(served.port, "Content-Length: 50", body='{"a"'))
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1000) == b""
        assert served.ask("/api/session").status == 200
    assert not caplog.records


def test_nothing_is_read_behind_a_request_that_states_its_length_twice_or_has_no_token(served: Served) -> None:
    behind = sent(served.port, "Content-Length: 2", "Connection: close", body="{}")
    both = sent(served.port, "Content-Length: 4", "Transfer-Encoding: chunked", body="0\r\n\r\n")
    unknown = sent(served.port, "Content-Length: 2", body="{}", token="wrong")
    assert answer_to(served.port, behind * 2).count(b"HTTP/1.1 400 ") == 1, "it has no reviewer"
    for refused, status in ((both, b"HTTP/1.1 400 "), (unknown, b"HTTP/1.1 401 ")):
        answer = answer_to(served.port, refused + behind)
        assert answer.startswith(status)
        assert answer.count(b"HTTP/1.1") == 1


def test_a_video_that_may_not_be_read_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(b"x")
    assert video_response(path).media_type == "video/mp4"
    monkeypatch.setattr("os.access", lambda asked, how: not (asked == path and how == os.R_OK))  # root may read everything
    for missing in (None, path):
        with pytest.raises(HTTPException) as found:
            video_response(missing)
        assert found.value.status_code == 404
