"""What stands before the page: a body is counted as it comes, whatever its header states."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("starlette")

from vip.review.guard import MOST_BODY_BYTES, MOST_QUERY_BYTES, TOKEN_HEADER, Guard

HEADERS = [(b"host", b"127.0.0.1:1"), (b"content-type", b"application/json"), (TOKEN_HEADER.encode(), b"secret")]


def read_in_pieces(*pieces: dict[str, Any]) -> tuple[list[bytes], list[int]]:
    """Return the bodies that the application got, and the statuses of refusals. The length is not stated."""
    taken: list[bytes] = []
    statuses: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        taken.append((await receive())["body"])
        assert (await receive())["type"] == "http.disconnect"

    messages = iter([*pieces, {"type": "http.disconnect"}])

    async def receive() -> dict[str, Any]:
        return next(messages)

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {"type": "http", "method": "POST", "path": "/api/actions", "query_string": b"", "headers": HEADERS}
    asyncio.run(Guard(app, token="secret", hosts=["127.0.0.1:1"])(scope, receive, send))
    return taken, statuses


def piece(size: int, *, last: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": b"x" * size, "more_body": not last}


def test_a_body_in_pieces_ends_at_its_bound() -> None:
    half = MOST_BODY_BYTES // 2
    assert read_in_pieces(piece(half), piece(half, last=True)) == ([b"x" * MOST_BODY_BYTES], [])
    assert read_in_pieces(piece(half), piece(half), piece(1, last=True)) == ([], [413])


def test_an_application_sees_nothing_of_a_client_that_hangs_up_in_the_middle() -> None:
    assert read_in_pieces() == ([], [])
    assert read_in_pieces(piece(3), piece(3)) == ([], [])


def status_of(
    changed: dict[str, str] | None = None,
    *,
    method: str = "GET",
    query: bytes = b"",
    without: bytes = b"",
    more: Sequence[tuple[bytes, bytes]] = (),
    closes: bool = False,
) -> int:
    """Return the status of the answer to a request with other headers; 200 where the application answers."""
    statuses: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])
            assert not closes or (b"connection", b"close") in message["headers"]

    headers = {name: value for name, value in HEADERS if name != without}
    headers |= {name.replace("_", "-").encode(): value.encode() for name, value in (changed or {}).items()}
    scope = {"type": "http", "method": method, "path": "/", "query_string": query, "headers": [*headers.items(), *more]}
    asyncio.run(Guard(app, token="secret", hosts=["127.0.0.1:1", "localhost:1"])(scope, receive, send))
    (status,) = statuses
    return status


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({}, 200),
        ({"host": "localhost:1"}, 200),
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1:2"}, 421),
        ({"origin": "http://localhost:1"}, 200),
        ({"origin": "http://127.0.0.1:2"}, 403),
        ({"origin": "https://127.0.0.1:1"}, 403),
        ({"origin": "null"}, 403),
        ({"sec_fetch_site": "same-origin"}, 200),
        ({"sec_fetch_site": "none"}, 200),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"x_review_token": "Secret"}, 401),
        ({"x_review_token": "secre"}, 401),
    ],
)
def test_another_host_another_site_and_another_token_are_refused(changed: dict[str, str], status: int) -> None:
    assert status_of(changed) == status


def test_the_token_may_stand_in_the_address_and_must_stand_somewhere() -> None:
    assert status_of(without=TOKEN_HEADER.encode()) == 401
    assert status_of(query=b"token=secret", without=TOKEN_HEADER.encode()) == 200
    assert status_of(query=b"token=other&token=secret", without=TOKEN_HEADER.encode()) == 401
    assert status_of(query=b"a" * MOST_QUERY_BYTES) == 200
    assert status_of(query=b"a" * (MOST_QUERY_BYTES + 1)) == 414


def test_a_request_without_a_host_is_refused() -> None:
    assert status_of(without=b"host") == 421


def test_behind_every_refusal_the_connection_is_closed() -> None:
    long = b"a" * (MOST_QUERY_BYTES + 1)
    assert status_of(query=long, without=TOKEN_HEADER.encode(), closes=True) == 414
    for changed, method in (({"host": "x"}, "GET"), ({"x_review_token": "x"}, "GET"), ({"content_type": "x"}, "POST")):
        assert status_of(changed, method=method, closes=True) > 400


def test_a_second_host_is_refused() -> None:
    for second in (b"evil.example", b"127.0.0.1:1"):
        assert status_of(more=[(b"host", second)]) == 421


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({}, 200),
        ({"content_type": "application/json; charset=utf-8"}, 200),
        ({"content_type": "text/plain"}, 415),  # what a form of another site can send unasked
        ({"content_type": "text/plain; application/json"}, 415),
        ({"content_length": str(MOST_BODY_BYTES)}, 200),
        ({"content_length": str(MOST_BODY_BYTES + 1)}, 413),
        ({"content_length": "9" * 5000}, 413),
        ({"content_length": "-1"}, 413),
        ({"content_length": "²"}, 413),
    ],
)
def test_what_is_sent_is_json_of_a_bounded_length(changed: dict[str, str], status: int) -> None:
    assert status_of(changed, method="POST") == status


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_request_that_states_its_length_twice_is_refused(method: str) -> None:
    assert status_of({"content_length": "4"}, method=method) == 200
    assert status_of({"transfer_encoding": "chunked"}, method=method) == 200
    assert status_of({"content_length": "4", "transfer_encoding": "chunked"}, method=method) == 400
