"""HTTP transport: headers from the environment go to their own server only, and a reply is read within bounds.

In: a request of the openai library. Out: the JSON of its reply. A reply that is too large, packed, nested too deep, or that would lead
to another address is an error of vip's own; see `docs/security.md`.
"""

from __future__ import annotations

import asyncio
import importlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import cache
from typing import Any, TypeVar

import openai

from vip.errors import BusyError, RejectedError, ReplyError, UsageError
from vip.models.openai.errors import ServerIdentity, broken_json_error, invalid_reply_error
from vip.untrusted import parse_json

MOST_REPLY_BYTES = 16 * 2**20  # of an answer, a list of models, a page of jobs
MOST_FILE_BYTES = 4 * 2**30  # of the answers of a batch
LATE_S = 0.5  # so much later than the library's own limit, which names the reason
SENT = frozenset(
    {"accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "host", "idempotency-key"}
    | {"transfer-encoding", "user-agent"}
)
"""Headers that go to any server; what else the library takes from the environment goes where the key of the environment goes."""

ResultT = TypeVar("ResultT")


@cache
def http_library() -> Any:
    """Return the library below the openai library: httpx or httpx2."""
    return importlib.import_module(openai.DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0])


@cache
def _default_tls_context() -> Any:
    """Return the certificates of the HTTP library, read once for all clients."""
    return http_library().create_ssl_context()


def _tls_context(address: str) -> ssl.SSLContext:
    """Return the trusted certificates: none for an address without TLS, which must not lead to one with it."""
    return _default_tls_context() if address.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def http_client(server: ServerIdentity, on_headers: Callable[[Mapping[str, str]], None]) -> Any:
    """Return the HTTP client for the openai library.

    Args:
        on_headers: called with the headers of each reply.

    Raises:
        UsageError: a proxy of the environment cannot be used.
    """

    async def filter_headers(request: Any) -> None:
        if not server.is_of_environment:
            for name in [name for name in request.headers if name not in SENT and not name.startswith("x-stainless-")]:
                del request.headers[name]

    async def check_response(response: Any) -> None:
        on_headers(response.headers)
        most_bytes = MOST_FILE_BYTES if response.request.url.path.endswith("/content") else MOST_REPLY_BYTES
        if response.headers.get("content-encoding", "identity") != "identity":
            raise _bad_reply_error(server, "is packed, though that was not asked for")
        if response.has_redirect_location:
            place = server.redact(response.headers["location"])
            raise RejectedError(f"{server.address} sends on to {place}, where nothing is sent unasked. Give that address if you trust it.")
        response.stream = _limit_size(response.stream, most_bytes, server)

    try:
        return openai.DefaultAsyncHttpxClient(
            event_hooks={"request": [filter_headers], "response": [check_response]},
            follow_redirects=False,  # who answers elsewhere was not asked
            headers={"Accept-Encoding": "identity"},
            verify=_tls_context(server.base_url),
        )
    except ImportError as exc:
        raise UsageError("The proxy of the environment is one of SOCKS: pip install socksio, or unset ALL_PROXY.") from exc
    except (ValueError, http_library().InvalidURL) as exc:  # it may quote a password
        raise UsageError("HTTPS_PROXY, HTTP_PROXY or ALL_PROXY is no address of a proxy. Write http://host:3128, or unset it.") from exc


def _limit_size(stream: Any, most_bytes: int, server: ServerIdentity) -> Any:
    """Return the stream, which ends with an error once it is too long."""

    class BoundedStream(http_library().AsyncByteStream):  # type: ignore[misc]
        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = most_bytes
            async for piece in stream:
                left -= len(piece)
                if left < 0:
                    raise _bad_reply_error(server, f"is larger than {most_bytes:,} bytes")
                yield piece

        async def aclose(self) -> None:
            await stream.aclose()

    return BoundedStream()


def _bad_reply_error(server: ServerIdentity, why: str) -> ReplyError:
    return ReplyError(f"The answer of {server.address} {why}. Is it an OpenAI-compatible server?", kind="broken")


async def with_timeout(server: ServerIdentity, awaitable: Awaitable[ResultT], limit_s: float | None = None) -> ResultT:
    """Await a reply, no longer than the time limit, even if the server sends a byte now and then.

    Raises:
        BusyError: the time is over.
    """
    limit_s = server.timeout_s if limit_s is None else limit_s
    try:
        async with asyncio.timeout(limit_s + LATE_S):
            return await awaitable
    except TimeoutError as exc:
        raise BusyError(f"{server.address} did not end its answer within {limit_s:g} s.", kind="timeout") from exc


def decode_json(response: Any, server: ServerIdentity) -> Any:
    """Return the JSON of a reply.

    Args:
        response: of the HTTP library, read to its end.

    Raises:
        ReplyError: it is JSON that cannot be read.
        BusyError: it is something else, such as a web page.
    """
    try:
        return parse_json(response.content)
    except ValueError as exc:
        is_json = "json" in response.headers.get("content-type", "")
        raise (broken_json_error(server) if is_json else invalid_reply_error(server)) from exc
