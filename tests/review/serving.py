"""The review server in a thread, and plain requests to it."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn

from vip.review.log_server import LogServer
from vip.review.log_state import LogState
from vip.review.server import ReviewServer

TOKEN = "a-token-of-this-test"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Served:
    port: int
    state: Any

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/?token={TOKEN}"

    def ask(
        self, path: str, body: Any = None, *, headers: dict[str, str] | None = None, method: str = "", token: str | None = TOKEN
    ) -> Answer:
        """`body` is sent as JSON; bytes as they are."""
        sent = {} if token is None else {"X-Review-Token": token}
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        if data is not None:
            sent["Content-Type"] = "application/json"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method or ("GET" if data is None else "POST"), path, data, {**sent, **(headers or {})})
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()


@contextmanager
def serve(state: LogState, kind: Callable[..., LogServer] = ReviewServer, **options: Any) -> Iterator[Served]:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        review = kind(state, title="sample", token=TOKEN, hosts=(f"127.0.0.1:{port}", f"localhost:{port}"), **options)
        server = uvicorn.Server(uvicorn.Config(review.app(), log_level="warning", ws="none", lifespan="on"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
        thread.start()
        try:
            while not server.started and thread.is_alive():
                thread.join(0.01)
            yield Served(port, state)
        finally:
            server.should_exit = True
            thread.join(20)
            state.log.close()
