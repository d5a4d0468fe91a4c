"""How clients reach the server: over stdin and stdout, or over HTTP on this machine with a token.

Both end when the client or the user ends them, and leave no process and no temporary folder.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vip.mcp.calls import Calls
from vip.mcp.results import ServerSettings
from vip.mcp.server import GONE, make_server
from vip.review.connections import serve
from vip.review.guard import Guard

HOST, PATH = "127.0.0.1", "/mcp"


@contextmanager
def work_folder(given: Path | None) -> Iterator[Path]:
    """Yield the folder for the runs of the server: the one that was given, or a temporary one that is deleted at the end."""
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given.resolve()
        return
    folder = Path(tempfile.mkdtemp(prefix="vip-mcp-")).resolve()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def serve_stdio(settings: ServerSettings, work: Path | None) -> None:
    """Serve one client over stdin and stdout until it is gone."""
    with work_folder(work) as folder:
        try:
            asyncio.run(_serve_stdio(Calls(replace(settings, work=folder)), None if work else folder))
        except* (BrokenPipeError, ConnectionError):
            pass  # the client went in the middle of an answer


async def _serve_stdio(calls: Calls, temporary: Path | None) -> None:
    def end(code: int) -> None:
        calls.end_all()
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)
        os._exit(code)  # a thread waits for stdin, and cannot be ended

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # on Windows
            loop.add_signal_handler(number, end, 128 + number)
    server = make_server(calls)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def serve_http(settings: ServerSettings, work: Path | None, sock: socket.socket, token: str) -> None:
    """Serve clients over HTTP until Ctrl-C. Each request needs the token."""
    port = sock.getsockname()[1]
    with work_folder(work) as folder:
        calls = Calls(replace(settings, work=folder))
        app = http_app(calls, port, token)
        try:
            serve(app, sock)
        finally:
            calls.end_all()


def http_app(calls: Calls, port: int, token: str) -> ASGIApp:
    """Return the application, behind the guard that the page of `vip review` has too."""
    hosts = [f"{HOST}:{port}", f"localhost:{port}"]
    security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts])
    app = make_server(calls).streamable_http_app(streamable_http_path=PATH, transport_security=security, host=HOST)
    return Guard(_NotesDisconnect(app), token=token, hosts=hosts, shown_by="vip mcp")


class _NotesDisconnect:
    """An application that sets the event of a request when its connection is closed."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.Event()

        async def read() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect":
                gone.set()
            return message

        await self._app({**scope, GONE: gone} if scope["type"] == "http" else scope, read, send)
