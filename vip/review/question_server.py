"""The server of questions with options: one at a time, the clip where it is at hand, and each person's own answers or marks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from vip.html.layout import templates
from vip.review.fields import PACKAGE, clean_reviewer
from vip.review.log_server import LogServer, video_response
from vip.review.question_state import QuestionState, shown_question
from vip.review.videos import check_clip


@dataclass(slots=True)
class QuestionServer(LogServer):
    """The server of questions."""

    state: QuestionState

    scripts: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("saving.js", "questions.js"), "text/javascript"),
        **dict.fromkeys(("page.css", "blanks.css", "questions.css"), "text/css"),
    }

    def routes(self) -> list[Route]:
        return [Route("/api/question", self.question), Route("/video/{number:int}", self.video)]

    async def page(self, request: Request) -> Response:
        context = {"title": self.title, "token": self.token, "way": self.state.way}
        return HTMLResponse(templates(PACKAGE).get_template("questions.html.jinja").render(**context))

    async def question(self, request: Request) -> Response:
        """Answer with a question and what the person said of it; without a number the first that is asked of them."""
        reviewer = clean_reviewer(request.query_params.get("reviewer"))
        asked = request.query_params.get("number", "")

        def read() -> dict[str, Any]:
            self.state.catch_up()
            last = len(self.state.items) - 1
            number = min(int(asked[:9]), last) if asked.isascii() and asked.isdigit() else self.state.next_open(reviewer)
            number = last if number is None else number
            return {
                **shown_question(self.state, number, reviewer),
                "questions": last + 1,
                "next_open": self.state.next_open(reviewer, number),
                "progress": self.state.progress(reviewer),
                **self.can_undo(reviewer),
            }

        return JSONResponse(await self.run(read))

    async def video(self, request: Request) -> Response:
        path = self.state.items[self.number_of(request)].clip
        return video_response(path if path is not None and check_clip(path) else None)
