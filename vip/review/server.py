"""The server of the review page, on this machine, for one folder.

In: items and their log. Out: a Starlette application that answers the page's requests as JSON. All work on the log is done by one thread;
actions that come at the same time share one write to the disk. What is asked for is named by the number of an item, never by a path.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar, cast, get_args

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from vip.errors import InputError, StoreError, UsageError, VipError
from vip.html.layout import resource, templates
from vip.review.fields import COMMENT, FINAL, STAGES, TEXTS, UID, VERDICT_FIELDS, WRONG, clean_reviewer
from vip.review.guard import Guard
from vip.review.items import MEDIA_TYPES, ReviewItem
from vip.review.log import Action, NewAction, StaleValueError
from vip.review.replace import apply_changes, batches, find_changes, roll_back
from vip.review.state import Queue, ReviewState, View
from vip.untrusted import parse_json

T = TypeVar("T")
PACKAGE = "vip.review"
MOST_ACTIONS = 100  # of one request
MOST_SHOWN_CHANGES = 200
SCRIPTS = {"review.js": "text/javascript", "review.css": "text/css", "page.css": "text/css"}


@dataclass(slots=True)
class ReviewServer:
    """What the requests share."""

    state: ReviewState
    title: str
    token: str
    hosts: Sequence[str]
    stage: str | None = None
    is_blind: bool = True
    report: Callable[[ReviewState], str] | None = None
    """Makes the page of the agreement."""
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "vip review"))
    _waiting: list[tuple[list[NewAction], asyncio.Future[list[Action | StaleValueError]]]] = field(default_factory=list)
    _writer: asyncio.Task[None] | None = None

    def app(self) -> Guard:
        """Return the application."""
        routes = [
            Route("/", self.page),
            Route("/agreement", self.agreement),
            Route("/static/{name}", self.static),
            Route("/api/session", self.session),
            Route("/api/queue", self.queue),
            Route("/api/items/{number:int}", self.item),
            Route("/api/history/{number:int}", self.history),
            Route("/api/batches", self.batches),
            Route("/picture/{number:int}", self.picture),
            Route("/video/{number:int}", self.video),
            Route("/api/actions", self.act, methods=["POST"]),
            Route("/api/undo", self.undo, methods=["POST"]),
            Route("/api/redo", self.redo, methods=["POST"]),
            Route("/api/replace", self.replace, methods=["POST"]),
            Route("/api/rollback", self.roll_back, methods=["POST"]),
        ]
        handlers: Any = {VipError: _answer_error}
        return Guard(Starlette(routes=routes, lifespan=self._lifespan, exception_handlers=handlers), token=self.token, hosts=self.hosts)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        yield
        if self._writer:
            await self._writer
        self._thread.shutdown()

    async def _run(self, work: Callable[[], T]) -> T:
        """Return what the function returns, called in the thread of the log."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    # ------------------------------------------------------------ the page

    async def page(self, request: Request) -> Response:
        context = {"title": self.title, "token": self.token, "fields": TEXTS}
        return HTMLResponse(templates(PACKAGE).get_template("page.html.jinja").render(**context))

    async def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in SCRIPTS:
            raise HTTPException(404)
        return Response(resource(name, "vip.html" if name == "page.css" else PACKAGE), media_type=SCRIPTS[name])

    async def agreement(self, request: Request) -> Response:
        if self.report is None:
            raise HTTPException(404)
        report = self.report

        def make() -> str:
            self.state.catch_up()
            return report(self.state)

        return HTMLResponse(await self._run(make))

    async def session(self, request: Request) -> Response:
        def read() -> dict[str, Any]:
            self.state.catch_up()
            videos = list(dict.fromkeys(item.video for item in self.state.index.items))
            return {
                "title": self.title,
                "stage": self.stage,
                "is_blind": self.is_blind,
                "fields": TEXTS,
                "videos": videos[:1000],
                "items": len(self.state.index.items),
                "reviewers": list(self.state.reviewers()),
            }

        return JSONResponse(await self._run(read))

    # ------------------------------------------------------------ reading

    async def queue(self, request: Request) -> Response:
        asked = _queue_of(request.query_params)

        def read() -> dict[str, Any]:
            self.state.catch_up()
            return {"numbers": self.state.numbers(asked), "progress": self.state.progress(asked), **self._can_undo(asked.reviewer)}

        return JSONResponse(await self._run(read))

    async def item(self, request: Request) -> Response:
        number, asked = self._number(request), _queue_of(request.query_params)

        def read() -> dict[str, Any]:
            self.state.catch_up()
            return self._describe(number, asked)

        return JSONResponse(await self._run(read))

    def _describe(self, number: int, asked: Queue) -> dict[str, Any]:
        state, item = self.state, self.state.index.items[number]
        verdict_field = VERDICT_FIELDS[asked.stage]
        wrong = [name for name in TEXTS if state.value(item.id, f"{WRONG}:{name}", asked.reviewer)]
        own = {
            "verdict": state.value(item.id, verdict_field, asked.reviewer),
            "wrong": wrong,
            "comment": state.value(item.id, COMMENT, asked.reviewer),
        }
        by = {name: one.reviewer for name in TEXTS if (one := state.shared.get((item.id, name)))}
        return {
            **{name: getattr(item, name) for name in ("id", "video", "time_s", "engine", "width_px", "height_px", "flagged")},
            **json.loads(item.details),
            "number": number,
            "verdict_field": verdict_field,
            "texts": state.texts(item.id),
            "original": dict(zip(TEXTS, item.texts, strict=True)),
            "changed_by": by,
            "own": own,
            "others": self._others(item, asked),
            "disputes": state.disputes(item.id),
            "final": {name: state.value(item.id, f"{FINAL}{name}") for name in state.disputes(item.id)},
            "neighbours": [{"number": one, "time_s": state.index.items[one].time_s} for one in state.index.neighbours(number)],
            "has_video": state.index.video_file(number) is not None,
            "has_picture": item.media_type is not None,
        }

    def _others(self, item: ReviewItem, asked: Queue) -> list[dict[str, Any]] | None:
        """Return what other reviewers say, in the order of their names; None where the reviewer is to judge without knowing it."""
        field, state = VERDICT_FIELDS[asked.stage], self.state
        if self.is_blind and not (
            asked.view == "disagreed" or (state.is_disputed(item.id) and state.is_done(item.id, asked.reviewer, asked.stage))
        ):
            return None
        verdicts, comments = state.said(item.id, field), state.said(item.id, COMMENT)
        marks = {name: [text for text in TEXTS if name in state.said(item.id, f"{WRONG}:{text}")] for name in verdicts}
        names = sorted((verdicts.keys() | comments.keys()) - {asked.reviewer})
        return [
            {"reviewer": name, "verdict": verdicts.get(name), "wrong": marks.get(name, []), "comment": comments.get(name)} for name in names
        ]

    async def history(self, request: Request) -> Response:
        number, asked = self._number(request), _queue_of(request.query_params)

        def read() -> list[dict[str, Any]]:
            item = self.state.index.items[number].id
            return [
                asdict(action)
                for action in self.state.log.read()
                if action.item == item and (action.field in TEXTS or action.reviewer == asked.reviewer or not self.is_blind)
            ]

        return JSONResponse(await self._run(read))

    async def batches(self, request: Request) -> Response:
        def read() -> list[dict[str, object]]:
            self.state.catch_up()
            return batches(self.state)

        return JSONResponse(await self._run(read))

    async def picture(self, request: Request) -> Response:
        item = self.state.index.items[self._number(request)]
        if item.media_type is None:
            raise HTTPException(415)
        try:
            data = await asyncio.to_thread(item.read_picture)
        except (InputError, StoreError) as exc:
            return PlainTextResponse(f"{exc}\n", 404)
        return Response(data, media_type=item.media_type, headers={"cache-control": "private, max-age=3600"})

    async def video(self, request: Request) -> Response:
        path = self.state.index.video_file(self._number(request))
        if path is None:
            raise HTTPException(404)
        return FileResponse(path, media_type=MEDIA_TYPES[path.suffix.lower()])

    def _number(self, request: Request) -> int:
        number = int(request.path_params["number"])
        if not 0 <= number < len(self.state.index.items):
            raise HTTPException(404)
        return number

    def _can_undo(self, reviewer: str) -> dict[str, bool]:
        return dict(zip(("can_undo", "can_redo"), self.state.can_undo(reviewer), strict=True))

    # ------------------------------------------------------------ writing

    async def act(self, request: Request) -> Response:
        body = await _body(request)
        reviewer, rows = clean_reviewer(body.get("reviewer")), body.get("actions")
        if not isinstance(rows, list) or not 0 < len(rows) <= MOST_ACTIONS:
            raise UsageError(f"A request has 1 to {MOST_ACTIONS} actions.")
        actions = [self.state.clean(_action_of(row, reviewer)) for row in rows]
        written = await self._write(actions)
        return JSONResponse({"actions": [_result(one) for one in written], **await self._run(lambda: self._can_undo(reviewer))})

    async def _write(self, actions: list[NewAction]) -> list[Action | StaleValueError]:
        """Return the actions as they are in the log; those of several requests are written together."""
        done: asyncio.Future[list[Action | StaleValueError]] = asyncio.get_running_loop().create_future()
        self._waiting.append((actions, done))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_waiting())
        return await done

    async def _write_waiting(self) -> None:
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            together = [action for actions, _ in waiting for action in actions]
            try:
                written = await self._run(lambda together=together: self.state.record(together))  # type: ignore[misc]
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
        body = await _body(request)
        reviewer, uid = clean_reviewer(body.get("reviewer")), _uid_of(body)

        def work() -> dict[str, Any]:
            done = how(reviewer, uid)
            result = None if done is None else _result(done)
            number = self.state.index.numbers[done.item] if isinstance(done, Action) else None
            return {"action": result, "number": number, **self._can_undo(reviewer)}

        return JSONResponse(await self._run(work))

    async def replace(self, request: Request) -> Response:
        body = await _body(request)
        reviewer, uid, asked = clean_reviewer(body.get("reviewer")), _uid_of(body), _queue_of(body)
        find, put = (_text_of(body, name) for name in ("find", "put"))

        def work() -> dict[str, Any]:
            self.state.catch_up()
            changes = find_changes(self.state, asked, find, put, whole_words=body.get("whole_words") is True)
            written = apply_changes(self.state, changes, reviewer=reviewer, batch=uid) if body.get("apply") is True else 0
            return {"count": len(changes), "written": written, "changes": [asdict(one) for one in changes[:MOST_SHOWN_CHANGES]]}

        return JSONResponse(await self._run(work))

    async def roll_back(self, request: Request) -> Response:
        body = await _body(request)
        reviewer, uid, batch = clean_reviewer(body.get("reviewer")), _uid_of(body), _text_of(body, "batch")
        return JSONResponse({"written": await self._run(lambda: roll_back(self.state, batch, reviewer=reviewer, new_batch=uid))})


async def _answer_error(request: Request, exc: Exception) -> Response:
    """Answer with the sentence of an error that vip raises on purpose."""
    return PlainTextResponse(f"{exc}\n", 400 if isinstance(exc, UsageError) else 500)


async def _body(request: Request) -> dict[str, Any]:
    try:
        body = parse_json(await request.body())
    except ValueError as exc:
        raise UsageError(f"The request is no JSON: {exc}.") from exc
    if not isinstance(body, dict):
        raise UsageError("The request is no JSON object.")
    return body


def _queue_of(given: Any) -> Queue:
    stage, view = given.get("stage") or None, given.get("view") or "all"
    if stage not in (None, *STAGES) or view not in get_args(View):
        raise UsageError("There is no such queue. Reload the page.")
    words = {name: given.get(name) or "" for name in ("video", "word")}
    if not all(isinstance(word, str) and len(word) <= 500 for word in words.values()):
        raise UsageError("A search has at most 500 letters.")
    return Queue(reviewer=clean_reviewer(given.get("reviewer")), stage=stage, view=cast(View, view), **words)


def _action_of(row: Any, reviewer: str) -> NewAction:
    if not isinstance(row, dict) or not all(isinstance(row.get(name), str) for name in ("uid", "item", "field")):
        raise UsageError("An action names its uid, item and field.")
    if not all(row.get(name) is None or isinstance(row[name], str) for name in ("before", "after")):
        raise UsageError("A value is a text or null.")
    return NewAction(
        uid=row["uid"], reviewer=reviewer, item=row["item"], field=row["field"], before=row.get("before"), after=row.get("after")
    )


def _uid_of(body: dict[str, Any]) -> str:
    uid = body.get("uid")
    if not isinstance(uid, str) or not UID.fullmatch(uid):
        raise UsageError("The id of an action is 1 to 64 letters, digits and ._-")
    return uid


def _text_of(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise UsageError(f"{name} is a text.")
    return value


def _result(written: Action | StaleValueError) -> dict[str, Any]:
    if isinstance(written, Action):
        return {"saved": True, "number": written.number, "field": written.field, "value": written.after, "created_utc": written.created_utc}
    return {"saved": False, "current": written.current}
