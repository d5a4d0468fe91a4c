"""What stands before every request of a server on this machine: who may ask, how much, and what a browser may do with the answer.

The page of `vip review` and `vip mcp` share it.

The server is bound to the loopback address, but every page that the user has open elsewhere can send requests there. So each request needs
the token: a page has it from its address, a program sends it in the header Authorization. Its Host must be the server's own (against DNS
rebinding); one that another site caused is refused; and bodies are bounded. The token is no cookie: no browser adds it on its own.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BODY_BYTES = 512 * 2**10
MOST_QUERY_BYTES = 8 * 2**10
MOST_PATH_LETTERS = 1000  # Python refuses numbers of more than 4300 digits
TOKEN_HEADER = "x-review-token"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
ANSWER_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


class Guard:
    """An ASGI application that refuses requests, or passes them on."""

    def __init__(self, app: ASGIApp, *, token: str, hosts: Collection[str], shown_by: str = "vip review") -> None:
        self._app, self._token, self._hosts, self._shown_by = app, token, frozenset(hosts), shown_by

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, _with_headers(send))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if refused := self._refuse(scope):
            await refused(scope, receive, send)
        elif (body := await _read_body(receive)) is None:
            pass  # the client hung up
        elif len(body) > MOST_BODY_BYTES:
            await _refusal(413, "The request is too large.")(scope, receive, send)
        else:
            await self._app(scope, _with_body(body, receive), send)

    def _refuse(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        if "content-length" in headers and "transfer-encoding" in headers:  # where it ends, servers disagree
            return _refusal(400, "The request states its length twice.")
        names = headers.getlist("host")
        if len(names) != 1 or names[0] not in self._hosts:
            return _refusal(421, f"This server has another name. Open the address that {self._shown_by} printed.")
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        if (origin is not None and origin not in {f"http://{host}" for host in self._hosts}) or site not in ("same-origin", "none"):
            return _refusal(403, "The request comes from another site.")
        if len(scope["query_string"]) > MOST_QUERY_BYTES or len(scope["path"]) > MOST_PATH_LETTERS:
            return _refusal(414, "The address is too long.")
        if not self._is_known(headers, scope):
            return _refusal(401, f"The token is missing or wrong. Use what {self._shown_by} printed.")
        if scope["method"] == "POST":
            return _refuse_body(headers)
        return None

    def _is_known(self, headers: Headers, scope: Scope) -> bool:
        kind, _, bearer = headers.get("authorization", "").partition(" ")
        given = (
            headers.get(TOKEN_HEADER)
            or (bearer.strip() if kind.lower() == "bearer" else "")
            or "".join(parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[:1])
        )
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode())


def _refuse_body(headers: Headers) -> PlainTextResponse | None:
    if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        return _refusal(415, "The request is no JSON.")
    stated = headers.get("content-length", "0")
    if not stated.isdecimal() or int(stated[:20]) > MOST_BODY_BYTES:
        return _refusal(413, "The request is too large.")
    return None


async def _read_body(receive: Receive) -> bytes | None:
    """Return the body, or more than it may have, whatever its header states; None where the client hung up in the middle."""
    body, more = bytearray(), True
    while more and len(body) <= MOST_BODY_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return bytes(body)


def _with_body(body: bytes, receive: Receive) -> Receive:
    """Return a receiver that gives the body at once, and then what comes after it."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def read() -> Message:
        return messages.pop() if messages else await receive()

    return read


def _with_headers(send: Send) -> Send:
    async def write(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in ANSWER_HEADERS.items():
                headers[name] = value
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return write


def _refusal(status: int, text: str) -> PlainTextResponse:
    """Return an answer behind which the connection is closed: nobody sends many requests over one without the token."""
    return PlainTextResponse(f"{text}\n", status, {"connection": "close"})
