"""A reply is read within bounds, and what is no JSON is told from what is no answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest

from tests.hostile_server import HostileServer, http
from tests.llm.clockwork import Clockwork
from vip.errors import BusyError, ReplyError
from vip.models.openai import transport
from vip.models.openai.errors import ServerIdentity
from vip.models.openai.transport import _limit_size, decode_json, http_client, with_timeout

SERVER = ServerIdentity("http://box/v1", "m", None, 1.0)


@pytest.mark.parametrize(
    ("kind", "error"), [("application/json; charset=utf-8", ReplyError), ("application/json", ReplyError), ("text/html", BusyError)]
)
def test_json_that_does_not_end_costs_one_item_and_a_page_is_no_answer(kind: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        decode_json(SimpleNamespace(content=b'{"choices": [', headers={"content-type": kind}), SERVER)


def test_a_reply_may_have_as_many_bytes_as_are_allowed_and_no_more() -> None:
    async def read(*pieces: bytes) -> bytes:
        async def stream() -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece

        return b"".join([piece async for piece in _limit_size(stream(), 3, SERVER)])

    assert asyncio.run(read(b"ab", b"c")) == b"abc"
    with pytest.raises(ReplyError, match="larger than 3 bytes"):
        asyncio.run(read(b"ab", b"cd"))


@pytest.mark.parametrize(("limit_s", "in_time_s"), [(None, 1.4), (0.5, 0.9), (60.0, 60.4)])
def test_a_limit_of_its_own_holds_whether_it_is_shorter_or_longer_than_that_of_the_server(limit_s: float | None, in_time_s: float) -> None:
    async def answer(after_s: float) -> str:
        await asyncio.sleep(after_s)
        return "here"

    with Clockwork() as clock:
        assert clock.run(with_timeout(SERVER, answer(in_time_s), limit_s)) == "here"
        with pytest.raises(BusyError, match=rf"within {limit_s or 1:g} s"):
            clock.run(with_timeout(SERVER, answer(in_time_s + 0.2), limit_s))


def test_the_connection_of_a_bounded_reply_is_closed_with_it() -> None:
    class Stream:
        closed = False

        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b"abcd"

        async def aclose(self) -> None:
            self.closed = True

    async def go() -> None:
        bounded = _limit_size(stream := Stream(), 3, SERVER)
        with pytest.raises(ReplyError):
            _ = [piece async for piece in bounded]
        await bounded.aclose()
        assert stream.closed

    asyncio.run(go())


@pytest.mark.parametrize(
    ("path", "most_bytes"), [("/v1/files/file-1/content", 20), ("/v1/batches/batch_1", 10), ("/v1/content/models", 10)]
)
@pytest.mark.parametrize("more", [0, 1])
def test_files_of_a_batch_may_be_larger_than_replies(path: str, most_bytes: int, more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MOST_REPLY_BYTES", 10)
    monkeypatch.setattr(transport, "MOST_FILE_BYTES", 20)
    heard = list[str]()

    async def get(address: str) -> bytes:
        server = ServerIdentity(f"{address}/v1", "m", None, 1.0)
        async with http_client(server, lambda headers: heard.append(headers["x-left"])) as client:
            return bytes((await client.get(f"{address}{path}")).content)

    body = b"x" * (most_bytes + more)
    with HostileServer(http(body, X_Left="7")) as server:
        if more:
            with pytest.raises(ReplyError, match=f"larger than {most_bytes} bytes"):
                asyncio.run(get(server.address))
        else:
            assert asyncio.run(get(server.address)) == body
    assert heard == ["7"]


@pytest.mark.parametrize("is_of_environment", [True, False])
def test_a_server_is_asked_for_an_answer_that_is_not_packed(is_of_environment: bool) -> None:
    """Most servers pack what they may, and what is packed is refused."""

    async def get(address: str) -> None:
        async with http_client(
            ServerIdentity(address, "m", None, 1.0, is_of_environment=is_of_environment), lambda headers: None
        ) as client:
            await client.get(address)

    with HostileServer(http(b"{}")) as server:
        asyncio.run(get(server.address))
    assert [line for line in server.requests[0].lower().split(b"\r\n") if b"encoding" in line] == [b"accept-encoding: identity"]
