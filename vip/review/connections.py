"""How a server on this machine takes connections. One over which no request comes is closed, and only so many are open.

Each connection is an open file, of which a process has about a thousand: whoever may connect could use them up without the token.
`vip review` and `vip mcp` share it.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_WITHIN_S = 10.0  # the head of a request, from when the connection is made or the last answer is given
MOST_CONNECTIONS = 100  # a browser opens six
WAITING = 32  # connections that are not taken yet; so many are taken at once
SHUTDOWN_S = 1  # for connections that clients keep open at the end: a browser does so with a video that is paused
FULL = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


def serve(app: ASGIApp, sock: socket.socket) -> None:
    """Serve an application at a bound socket until Ctrl-C."""
    config = uvicorn.Config(
        app,
        http=PromptConnection,
        log_level="error",  # warnings are about requests that are none: anybody may send any number of these
        ws="none",
        lifespan="on",
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_S,
        backlog=WAITING,
    )
    _Server(config).run(sockets=[sock])


class _Server(uvicorn.Server):
    """A server that says nothing of connections that cannot be taken, as asyncio tries again, nor of what it cuts off at its end."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(_report)
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for name in ("uvicorn.error", "mcp"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        await super().shutdown(sockets)


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    exc = context.get("exception")
    if not (isinstance(exc, OSError) and exc.errno in FULL):
        loop.default_exception_handler(context)


class PromptConnection(H11Protocol):
    """A connection that is closed where no request comes in time, and before that where too many are open."""

    _due: asyncio.TimerHandle | None = None
    """When it is closed; None before the connection is made and after it was dropped."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_request()
        self._make_room()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request, and let the application that has begun with its head say nothing more."""
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait_for_request()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._due is not None:
            self._due.cancel()

    def _wait_for_request(self) -> None:
        if self._due is not None:
            self._due.cancel()
        self._due = self.loop.call_later(REQUEST_WITHIN_S, self._close_if_idle)

    @property
    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _close_if_idle(self) -> None:
        if self._is_idle:
            self.transport.close()

    def _make_room(self) -> None:
        """Drop the connection that has waited for a request the longest, where too many are open; this one, where all others have one."""
        due = {one: one._due.when() for one in self.connections if isinstance(one, PromptConnection) and one._due}
        if len(due) > MOST_CONNECTIONS:
            min((one for one in due if one._is_idle), key=due.__getitem__)._drop()

    def _drop(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
        self.transport.abort()
