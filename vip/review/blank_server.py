"""The server of FIBER's page: five blanks at a time, the clips that are at hand, and everybody's own answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from vip.html.layout import resource, templates
from vip.review.blanks import BlankState, shown_item
from vip.review.fields import COMMENT, PACKAGE, clean_reviewer
from vip.review.log_server import LogServer, video_response
from vip.review.videos import check_clip
from vip.tasks.fiber.hits import LEAST_ANSWERS, UNAVAILABLE
from vip.tasks.fiber.hits import PACKAGE as FIBER
from vip.tasks.fiber.records import BLANK

SHARED = {"answers.js": "text/javascript", "annotation.css": "text/css"}
"""Files that Mechanical Turk's page has too."""


@dataclass(slots=True)
class BlankServer(LogServer):
    """The server of blanks."""

    state: BlankState

    scripts: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("saving.js", "blanks.js"), "text/javascript"),
        **dict.fromkeys(("page.css", "blanks.css"), "text/css"),
    }

    def routes(self) -> list[Route]:
        return [
            Route("/shared/{name}", self.shared),
            Route("/api/hit", self.hit),
            Route("/video/{number:int}", self.video),
        ]

    async def page(self, request: Request) -> Response:
        from markupsafe import Markup

        instructions = templates(FIBER).get_template("instructions.html.jinja").render(blank=BLANK, unavailable=UNAVAILABLE)
        context = {"title": self.title, "token": self.token, "instructions": Markup(instructions), "least": LEAST_ANSWERS}  # a file of vip
        return HTMLResponse(templates(PACKAGE).get_template("blanks.html.jinja").render(**context))

    async def shared(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in SHARED:
            raise HTTPException(404)
        return Response(resource(name, FIBER), media_type=SHARED[name])

    async def hit(self, request: Request) -> Response:
        """Answer with the blanks of a HIT and what the person filled them with; without a number the first that is not finished."""
        reviewer = clean_reviewer(request.query_params.get("reviewer"))
        asked = request.query_params.get("number", "")

        def read() -> dict[str, Any]:
            self.state.catch_up()
            hits = self.state.hits
            place = int(asked[:9]) if asked.isdecimal() else self.state.first_open(reviewer)
            place = min(place, len(hits) - 1)
            first = place * self.state.per_hit
            return {
                "number": place,
                "hits": len(hits),
                "blanks": len(self.state.items),
                "done": sum(self.state.is_done(item, reviewer) for item in self.state.items),
                "items": [
                    {
                        **shown_item(self.state, first + offset, offset + 1),
                        "answers": self.state.answers(item, reviewer),
                        "comment": self.state.value(item.id, COMMENT, reviewer),
                    }
                    for offset, item in enumerate(hits[place])
                ],
                **self.can_undo(reviewer),
            }

        return JSONResponse(await self.run(read))

    async def video(self, request: Request) -> Response:
        path = self.state.items[self.number_of(request)].video
        return video_response(path if path is not None and check_clip(path) else None)
