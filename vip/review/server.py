"""The server of the review page, on this machine, for one folder.

In: items and their log. Out: a Starlette application that answers the page's requests as JSON. What is asked for is named by the number
of an item, never by a path.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any, ClassVar, cast, get_args

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from vip.errors import InputError, StoreError, UsageError
from vip.html.layout import templates
from vip.review.fields import ALL_TEXTS, COMMENT, FINAL, PACKAGE, STAGES, TEXTS, VERDICT_FIELDS, WRONG, clean_reviewer
from vip.review.items import ReviewItem
from vip.review.log import Action
from vip.review.log_server import LogServer, read_body, text_of, uid_of, video_response
from vip.review.presence import Presence
from vip.review.replace import Change, batches, find_changes, replacing_actions, rollback_actions
from vip.review.rich import CHOICES
from vip.review.state import Queue, ReviewState, View

MOST_SHOWN_CHANGES = 200
MOST_HISTORY = 500  # the last actions on an item


@dataclass(slots=True)
class ReviewServer(LogServer):
    """The server of described keyframes."""

    state: ReviewState
    stage: str | None = None
    is_blind: bool = True
    report: Callable[[ReviewState], str] | None = None
    """Makes the page of the agreement."""
    presence: Presence = field(default_factory=Presence)

    scripts: ClassVar[dict[str, str]] = {"review.js": "text/javascript", "review.css": "text/css", "page.css": "text/css"}

    @property
    def locked_fields(self) -> Collection[str]:
        """The texts, where the server was started for the first stage, which only classifies."""
        return ALL_TEXTS if self.stage == "1" else ()

    def routes(self) -> list[Route]:
        return [
            Route("/agreement", self.agreement),
            Route("/api/session", self.session),
            Route("/api/queue", self.queue),
            Route("/api/items/{number:int}", self.item),
            Route("/api/history/{number:int}", self.history),
            Route("/api/batches", self.batches),
            Route("/api/here/{number:int}", self.here, methods=["POST"]),
            Route("/picture/{number:int}", self.picture),
            Route("/video/{number:int}", self.video),
            Route("/api/replace", self.replace, methods=["POST"]),
            Route("/api/rollback", self.roll_back, methods=["POST"]),
        ]

    # ------------------------------------------------------------ the page

    async def page(self, request: Request) -> Response:
        context = {"title": self.title, "token": self.token, "fields": self.state.index.fields, "choices": CHOICES, "texts": TEXTS}
        return HTMLResponse(templates(PACKAGE).get_template("page.html.jinja").render(**context))

    async def agreement(self, request: Request) -> Response:
        if self.report is None:
            raise HTTPException(404)
        report = self.report

        def make() -> str:
            self.state.catch_up()
            return report(self.state)

        return HTMLResponse(await self.run(make))

    async def session(self, request: Request) -> Response:
        def read() -> dict[str, Any]:
            self.state.catch_up()
            videos = list(dict.fromkeys(item.video for item in self.state.index.items))
            return {
                "title": self.title,
                "stage": self.stage,
                "judgements": self.state.judgements,
                "is_blind": self.is_blind,
                "fields": self.state.index.fields,
                "videos": videos[:1000],
                "items": len(self.state.index.items),
                "reviewers": list(self.state.reviewers()),
            }

        return JSONResponse(await self.run(read))

    # ------------------------------------------------------------ reading

    async def queue(self, request: Request) -> Response:
        asked = _queue_of(request.query_params)

        def read() -> dict[str, Any]:
            self.state.catch_up()
            return {"numbers": self.state.numbers(asked), "progress": self.state.progress(asked), **self.can_undo(asked.reviewer)}

        return JSONResponse(await self.run(read))

    async def item(self, request: Request) -> Response:
        number, asked = self.number_of(request), _queue_of(request.query_params)

        def read() -> dict[str, Any]:
            self.state.catch_up()
            return self._describe(number, asked)

        return JSONResponse(await self.run(read))

    def _describe(self, number: int, asked: Queue) -> dict[str, Any]:
        state, item = self.state, self.state.index.items[number]
        wrong = [name for name in item.fields if state.value(item.id, f"{WRONG}:{name}", asked.reviewer)]
        own = {
            "verdict": state.verdict_of(item.id, asked.reviewer, asked.stage),
            "wrong": wrong,
            "comment": state.value(item.id, COMMENT, asked.reviewer),
        }
        by = {name: one.reviewer for name in item.fields if (one := state.shared.get((item.id, name)))}
        return {
            **{name: getattr(item, name) for name in ("id", "video", "time_s", "engine", "width_px", "height_px", "flagged")},
            **json.loads(item.details),
            "number": number,
            "verdict_field": VERDICT_FIELDS[asked.stage],
            "texts": state.texts(item.id),
            "original": item.original,
            "changed_by": by,
            "rewritten": _shown_rewrite(state.rewrites.get(item.id)),
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
        state = self.state
        if self.is_blind and not (
            asked.view == "disagreed" or (state.is_disputed(item.id) and state.is_done(item.id, asked.reviewer, asked.stage))
        ):
            return None
        verdicts, comments = state.verdicts(item.id, asked.stage), state.said(item.id, COMMENT)
        marks = {name: [text for text in item.fields if name in state.said(item.id, f"{WRONG}:{text}")] for name in verdicts}
        names = sorted((verdicts.keys() | comments.keys()) - {asked.reviewer})
        return [
            {"reviewer": name, "verdict": verdicts.get(name), "wrong": marks.get(name, []), "comment": comments.get(name)} for name in names
        ]

    async def history(self, request: Request) -> Response:
        number, asked = self.number_of(request), _queue_of(request.query_params)

        def read() -> list[dict[str, Any]]:
            shown = (
                action._asdict()
                for action in self.state.log.read_back(self.state.index.items[number].id)
                if action.field in ALL_TEXTS or action.reviewer == asked.reviewer or not self.is_blind
            )
            return list(islice(shown, MOST_HISTORY))[::-1]

        return JSONResponse(await self.run(read))

    async def here(self, request: Request) -> Response:
        """Answer a page that says which item it shows: who else has it open, and its texts as they are now."""
        number, body = self.number_of(request), await read_body(request)
        others = self.presence.note(clean_reviewer(body.get("reviewer")), number, is_editing=body.get("is_editing") is True)

        def read() -> dict[str, Any]:
            self.state.catch_up()
            item = self.state.index.items[number].id
            by = {name: one.reviewer for name in self.state.fields(item) if (one := self.state.shared.get((item, name)))}
            return {"others": [one._asdict() for one in others], "texts": self.state.texts(item), "changed_by": by}

        return JSONResponse(await self.run(read))

    async def batches(self, request: Request) -> Response:
        def read() -> list[dict[str, object]]:
            self.state.catch_up()
            return batches(self.state)

        return JSONResponse(await self.run(read))

    async def picture(self, request: Request) -> Response:
        item = self.state.index.items[self.number_of(request)]
        if item.media_type is None:
            raise HTTPException(415)
        try:
            data = await asyncio.to_thread(item.read_picture)
        except (InputError, StoreError) as exc:
            return PlainTextResponse(f"{exc}\n", 404)
        return Response(data, media_type=item.media_type, headers={"cache-control": "private, max-age=3600"})

    async def video(self, request: Request) -> Response:
        return video_response(self.state.index.video_file(self.number_of(request)))

    # ------------------------------------------------------------ writing

    async def replace(self, request: Request) -> Response:
        body = await read_body(request)
        reviewer, uid, asked = clean_reviewer(body.get("reviewer")), uid_of(body), _queue_of(body)
        find, put = (text_of(body, name) for name in ("find", "put"))

        def search() -> list[Change]:
            self.state.catch_up()
            return find_changes(self.state, asked, find, put, whole_words=body.get("whole_words") is True)

        changes = await self.run(search)
        actions = replacing_actions(self.state, changes, reviewer=reviewer, batch=uid) if body.get("apply") is True else []
        shown = [asdict(one) for one in changes[:MOST_SHOWN_CHANGES]]
        return JSONResponse({"count": len(changes), "written": await self.write_in_pieces(actions), "changes": shown})

    async def roll_back(self, request: Request) -> Response:
        body = await read_body(request)
        reviewer, uid, batch = clean_reviewer(body.get("reviewer")), uid_of(body), text_of(body, "batch")
        actions = await self.run(lambda: rollback_actions(self.state, batch, reviewer=reviewer, new_batch=uid))
        return JSONResponse({"written": await self.write_in_pieces(actions)})


def _shown_rewrite(action: Action | None) -> dict[str, Any] | None:
    """Return what the page shows of a caption that an engine wrote again."""
    return None if action is None else {"by": action.reviewer, "before": action.before or "", "after": action.after or ""}


def _queue_of(given: Any) -> Queue:
    stage, view = given.get("stage") or None, given.get("view") or "all"
    if stage not in (None, *STAGES) or view not in get_args(View):
        raise UsageError("There is no such queue. Reload the page.")
    words = {name: given.get(name) or "" for name in ("video", "word")}
    if not all(isinstance(word, str) and len(word) <= 500 for word in words.values()):
        raise UsageError("A search has at most 500 letters.")
    return Queue(reviewer=clean_reviewer(given.get("reviewer")), stage=stage, view=cast(View, view), **words)
