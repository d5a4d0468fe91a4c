"""The server of samples that are answered in words: one at a time, what is given of it, and each person's own texts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, ClassVar

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from vip.errors import InputError, StoreError
from vip.html.layout import templates
from vip.review.fields import PACKAGE, clean_reviewer
from vip.review.log_server import LogServer, video_response
from vip.review.videos import check_clip
from vip.review.written import WrittenState, shown_sample
from vip.tasks.sample_pictures import PictureSources, load_picture, pictures_of

LONGEST_SIDE_PX = 1024


@dataclass(slots=True)
class WrittenServer(LogServer):
    """The server of samples."""

    state: WrittenState
    sources: PictureSources = field(kw_only=True)

    scripts: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("saving.js", "written.js"), "text/javascript"),
        **dict.fromkeys(("page.css", "blanks.css", "questions.css", "written.css"), "text/css"),
    }

    def routes(self) -> list[Route]:
        return [
            Route("/api/sample", self.sample),
            Route("/picture/{number:int}/{place:int}", self.picture),
            Route("/video/{number:int}", self.video),
        ]

    async def page(self, request: Request) -> Response:
        has_keyframes = self.state.items[0].sample.ask.kind == "describe_keyframes"
        context = {"title": self.title, "token": self.token, "has_keyframes": has_keyframes}
        return HTMLResponse(templates(PACKAGE).get_template("written.html.jinja").render(**context))

    async def sample(self, request: Request) -> Response:
        """Answer with a sample and what the person wrote; without a number the first that is asked of them."""
        reviewer = clean_reviewer(request.query_params.get("reviewer"))
        asked = request.query_params.get("number", "")

        def read() -> dict[str, Any]:
            self.state.catch_up()
            last = len(self.state.items) - 1
            number = min(int(asked[:9]), last) if asked.isascii() and asked.isdigit() else self.state.next_open(reviewer)
            number = last if number is None else number
            return {
                **shown_sample(self.state, number, reviewer),
                "samples": last + 1,
                "next_open": self.state.next_open(reviewer, number),
                "progress": self.state.progress(reviewer),
                **self.can_undo(reviewer),
            }

        return JSONResponse(await self.run(read))

    async def picture(self, request: Request) -> Response:
        sample = self.state.items[self.number_of(request)].sample
        pictures, place = list(pictures_of(sample)), int(request.path_params["place"])
        if not 0 <= place < len(pictures):
            raise HTTPException(404)
        try:
            found = await asyncio.to_thread(load_picture, pictures[place], sample.id, LONGEST_SIDE_PX, self.sources)
        except (InputError, StoreError) as exc:
            return PlainTextResponse(f"{exc}\n", 404)
        return Response(found.data, media_type="image/jpeg", headers={"cache-control": "private, max-age=3600"})

    async def video(self, request: Request) -> Response:
        path = self.state.items[self.number_of(request)].clip
        return video_response(path if path is not None and check_clip(path) else None)
