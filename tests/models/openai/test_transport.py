"""A reply is read within bounds, and what is no JSON is told from what is no answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest

from vip.errors import BusyError, ReplyError
from vip.models.openai.errors import ServerIdentity
from vip.models.openai.transport import _limit_size, decode_json

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
