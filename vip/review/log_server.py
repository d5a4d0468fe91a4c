"""The part of a review server that every kind of review shares: the log, its one thread, what is refused, undo and redo.

In: a `LogState`. Out: a Starlette application behind its guard. All work on the log is done by one thread; actions that come at the same
time share one write to the disk. A kind of review derives its server from `LogServer` and adds its page and what the page reads.
"""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from vip.errors import UsageError, VipError
from vip.html.layout import resource
from vip.review.fields import PACKAGE, UID, clean_reviewer
from vip.review.guard import Guard
from vip.review.items import MEDIA_TYPES
from vip.review.log import Action, NewAction, StaleValueError
from vip.review.log_state import LogState
from vip.untrusted import parse_json

T = TypeVar("T")
MOST_ACTIONS = 100  # of one request


@dataclass(slots=True)
class LogServer(ABC):
    """What the requests share."""

    state: LogState
    title: str
    token: str
    hosts: Sequence[str]
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "vip review"))
    _waiting: list[tuple[list[NewAction], asyncio.Future[list[Action | StaleValueError]]]] = field(default_factory=list)
    _writer: asyncio.Task[None] | None = None

    scripts: ClassVar[dict[str, str]] = {"page.css": "text/css"}
    """The files of the page by name, with their media types."""

    @abstractmethod
    def routes(self) -> list[Route]:
        """Return the routes of this kind of review: `/`, and what its page reads."""

    @abstractmethod
    async def page(self, request: Request) -> Response:
        """Answer with the page."""

    @property
    def locked_fields(self) -> Collection[str]:
        """The fields that nobody writes here; undo still takes back what was written elsewhere."""
        return ()

    def app(self) -> Guard:
        """Return the application."""
        routes = [
            Route("/", self.page),
            Route("/static/{name}", self.static),
            Route("/api/actions", self.act, methods=["POST"]),
            Route("/api/undo", self.undo, methods=["POST"]),
            Route("/api/redo", self.redo, methods=["POST"]),
            *self.routes(),
        ]
        handlers: Any = {VipError: _answer_error}
        return Guard(Starlette(routes=routes, lifespan=self._lifespan, exception_handlers=handlers), token=self.token, hosts=self.hosts)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        yield
        if self._writer:
            await self._writer
        self._thread.shutdown()

    async def run(self, work: Callable[[], T]) -> T:
        """Return what the function returns, called in the thread of the log."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self.scripts:
            raise HTTPException(404)
        return Response(resource(name, "vip.html" if name == "page.css" else PACKAGE), media_type=self.scripts[name])

    def number_of(self, request: Request) -> int:
        """Return the number of the item that the address names; 404 where there is none."""
        number = int(request.path_params["number"])
        if not 0 <= number < len(self.state.item_numbers):
            raise HTTPException(404)
        return number

    def can_undo(self, reviewer: str) -> dict[str, bool]:
        """Return what every answer of the log says of undo and redo."""
        return dict(zip(("can_undo", "can_redo"), self.state.can_undo(reviewer), strict=True))

    async def act(self, request: Request) -> Response:
        body = await read_body(request)
        reviewer, rows = clean_reviewer(body.get("reviewer")), body.get("actions")
        if not isinstance(rows, list) or not 0 < len(rows) <= MOST_ACTIONS:
            raise UsageError(f"A request has 1 to {MOST_ACTIONS} actions.")
        actions = [self.state.clean(_action_of(row, reviewer)) for row in rows]
        if locked := next((action.field for action in actions if action.field in self.locked_fields), None):
            raise UsageError(f"{locked} is not changed in this stage. Judge it, or mark it.")
        written = await self._write(actions)
        return JSONResponse({"actions": [_result(one) for one in written], **await self.run(lambda: self.can_undo(reviewer))})

    async def _write(self, actions: list[NewAction]) -> list[Action | StaleValueError]:
        """Return the actions as they are in the log; those of several requests are written together."""
        done: asyncio.Future[list[Action | StaleValueError]] = asyncio.get_running_loop().create_future()
        self._waiting.append((actions, done))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_waiting())
        return await done

    async def write_in_pieces(self, actions: Sequence[NewAction]) -> int:
        """Return how many of many actions were written; what others do meanwhile is written between the pieces."""
        written = 0
        for start in range(0, len(actions), MOST_ACTIONS):
            written += sum(isinstance(one, Action) for one in await self._write(list(actions[start : start + MOST_ACTIONS])))
        return written

    async def _write_waiting(self) -> None:
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            together = [action for actions, _ in waiting for action in actions]
            try:
                written = await self.run(lambda together=together: self.state.record(together))  # type: ignore[misc]
            except Exception as exc:  # each request answers with it
                for _, done in waiting:
                    if not done.done():
                        done.set_exception(exc)
                continue
            place = 0
            for actions, done in waiting:
                if not done.done():  # the client is gone
                    done.set_result(written[place : place + len(actions)])
                place += len(actions)

    async def undo(self, request: Request) -> Response:
        return await self._take_back(request, self.state.undo)

    async def redo(self, request: Request) -> Response:
        return await self._take_back(request, self.state.redo)

    async def _take_back(self, request: Request, how: Callable[[str, str], Action | StaleValueError | None]) -> Response:
        body = await read_body(request)
        reviewer, uid = clean_reviewer(body.get("reviewer")), uid_of(body)

        def work() -> dict[str, Any]:
            done = how(reviewer, uid)
            result = None if done is None else _result(done)
            number = self.state.item_numbers[done.item] if isinstance(done, Action) else None
            return {"action": result, "number": number, **self.can_undo(reviewer)}

        return JSONResponse(await self.run(work))


async def _answer_error(request: Request, exc: Exception) -> Response:
    """Answer with the sentence of an error that vip raises on purpose."""
    return PlainTextResponse(f"{exc}\n", 400 if isinstance(exc, UsageError) else 500)


def video_response(path: Path | None) -> Response:
    """Answer with a video that a browser plays; 404 where there is none, or none that may be read."""
    if path is None or not os.access(path, os.R_OK):
        raise HTTPException(404)
    return FileResponse(path, media_type=MEDIA_TYPES[path.suffix.lower()])


async def read_body(request: Request) -> dict[str, Any]:
    """Return the JSON object of a request.

    Raises:
        UsageError: it is none.
    """
    try:
        body = parse_json(await request.body())
    except ValueError as exc:
        raise UsageError(f"The request is no JSON: {exc}.") from exc
    if not isinstance(body, dict):
        raise UsageError("The request is no JSON object.")
    return body


def _action_of(row: Any, reviewer: str) -> NewAction:
    if not isinstance(row, dict) or not all(isinstance(row.get(name), str) for name in ("uid", "item", "field")):
        raise UsageError("An action names its uid, item and field.")
    if not all(row.get(name) is None or isinstance(row[name], str) for name in ("before", "after")):
        raise UsageError("A value is a text or null.")
    return NewAction(
        uid=row["uid"], reviewer=reviewer, item=row["item"], field=row["field"], before=row.get("before"), after=row.get("after")
    )


def uid_of(body: dict[str, Any]) -> str:
    """Return the id of an action that a request states; UsageError where it is none."""
    uid = body.get("uid")
    if not isinstance(uid, str) or not UID.fullmatch(uid):
        raise UsageError("The id of an action is 1 to 64 letters, digits and ._-")
    return uid


def text_of(body: dict[str, Any], name: str) -> str:
    """Return a text of a request; UsageError where it is none."""
    value = body.get(name)
    if not isinstance(value, str):
        raise UsageError(f"{name} is a text.")
    return value


def _result(written: Action | StaleValueError) -> dict[str, Any]:
    if isinstance(written, Action):
        return {"saved": True, "number": written.number, "field": written.field, "value": written.after, "created_utc": written.created_utc}
    return {"saved": False, "current": written.current}
