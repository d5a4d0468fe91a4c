"""How a server on this machine takes connections. One over which no request comes is closed.

Each connection is an open file, of which a process has about a thousand: whoever may connect could use them up without the token.
`vip review` and `vip mcp` share it.
"""

from __future__ import annotations

import asyncio
import socket

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_WITHIN_S = 10.0  # the head of a request, from when the connection is made or the last answer is given


def serve(app: ASGIApp, sock: socket.socket, *, shutdown_s: int | None = None) -> None:
    """Serve an application at a bound socket until Ctrl-C.

    Args:
        shutdown_s: how long connections that clients keep open are waited for at the end; None waits until they close.
    """
    config = uvicorn.Config(
        app,
        http=PromptConnection,
        log_level="warning",
        ws="none",
        lifespan="on",
        server_header=False,
        timeout_graceful_shutdown=shutdown_s,
    )
    uvicorn.Server(config).run(sockets=[sock])


class PromptConnection(H11Protocol):
    """A connection that is closed where no request comes in time."""

    _due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_request()

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

    def _close_if_idle(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
