"""The page of a search: moments as cards, best first, each with its picture and why it was found.

In: moments. Out: one HTML file that needs nothing else. Pictures are read once more from their runs and shards.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from vip import store
from vip.errors import UsageError
from vip.html.format import plural, time_code, whole_number
from vip.html.layout import is_page, render_page, resource
from vip.html.parts import Fact
from vip.html.pictures import Jpeg, shrink
from vip.report.video_link import VideoLink, video_link
from vip.search.moments import Moment, Moments
from vip.search.pictures import pictures_of
from vip.wording import option

LONGEST_SIDE_PX = 640
PICTURES_BYTES = 6 * 2**20
PICTURES_AT_ONCE = 32  # decoded


@dataclass(frozen=True, slots=True)
class MomentCard:
    """A moment as the page shows it."""

    number: int
    moment: Moment
    picture: Jpeg | None
    link: str
    """Where a browser plays the video from this moment; empty where it finds none."""

    @property
    def span(self) -> str:
        """`0:58.1 to 1:10.0`; the id of the keyframe where it has no time."""
        start_s, end_s = self.moment.start_s, self.moment.end_s
        return self.moment.keyframe_id if start_s is None or end_s is None else f"{time_code(start_s)} to {time_code(end_s)}"

    @property
    def place(self) -> str:
        """The source, and the shard in it."""
        return f"{self.moment.source}, shard {self.moment.part}" if self.moment.part else self.moment.source


def write_page(found: Moments, path: Path) -> None:
    """Write the page.

    Raises:
        UsageError: the file is not a page of vip.
        StoreError: the page cannot be written, or a shard is damaged.
    """
    if store.exists(path) and not is_page(path):
        raise UsageError(f"{path} is not a page that vip wrote, and is left as it is. Name another file with {option('page')}.")
    text = page(found, path.parent)
    with store.replacing(path) as file:
        file.write(text.encode())


def page(found: Moments, folder: Path) -> str:
    """Return the page; links to videos are relative to the folder that it will lie in."""
    searched = found.query if found.query is not None else f"like {found.like}"
    facts = [
        Fact("Moments", whole_number(len(found.moments))),
        Fact("Searched", plural(found.keyframes, "keyframe")),
        Fact(
            "By",
            f"words and pictures ({found.embedder})"
            if found.embedder and found.query
            else f"pictures ({found.embedder})"
            if found.embedder
            else "words",
        ),
    ]
    style = resource("search.css", "vip.search")
    return render_page("vip.search", "search.html.jinja", style=style, title=searched, facts=facts, cards=_cards(found.moments, folder))


def _cards(moments: Sequence[Moment], folder: Path) -> list[MomentCard]:
    cards: list[MomentCard] = []
    for start in range(0, len(moments), PICTURES_AT_ONCE):
        some = moments[start : start + PICTURES_AT_ONCE]
        for moment, image in zip(some, pictures_of(some), strict=True):
            share = PICTURES_BYTES // len(moments)
            picture = None if image is None else shrink(image, longest_side_px=LONGEST_SIDE_PX, max_bytes=share)
            cards.append(MomentCard(len(cards) + 1, moment, picture, moment.link or _link(moment, folder)))
    return cards


def _link(moment: Moment, folder: Path) -> str:
    """Return the link to the video of a run, from the folder of the page."""
    link = video_link(store.Run(Path(moment.source))) if not moment.part and moment.time_s is not None else None
    if link is None:
        return ""
    if "://" not in link.address:
        below = os.path.relpath(Path(moment.source).absolute(), folder.absolute()).replace(os.sep, "/")
        link = VideoLink(f"{quote(os.fsencode(below))}/{link.address}")
    return link.at(moment.time_s or 0.0)
