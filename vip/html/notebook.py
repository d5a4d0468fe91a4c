"""Notebook display of a run and of a keyframe: small pictures and captions, escaped, without style sheet or script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from vip.html.axes import evenly_spaced
from vip.html.format import plural, time_code
from vip.html.layout import templates
from vip.html.pictures import Jpeg, shrink
from vip.records import Description, Image, Keyframe

MAX_PICTURES = 24
SIDE_PX = 240
MAX_BYTES = 24 * 2**10  # of a picture; base64 adds a third: 24 of them have 770 kB at most


class NotebookPicture(NamedTuple):
    """A keyframe as a notebook shows it; the picture is None where its file is missing or damaged."""

    name: str
    picture: Jpeg | None
    caption: str


def notebook_picture(keyframe: Keyframe, image: Image | None, description: Description | None) -> NotebookPicture:
    """Return a keyframe with its picture scaled down."""
    name = keyframe.image_path if keyframe.time_s is None else time_code(keyframe.time_s)
    jpeg = None if image is None else shrink(image, longest_side_px=SIDE_PX, max_bytes=MAX_BYTES)
    return NotebookPicture(name, jpeg, description.dense_caption if description else "")


def keyframe_html(shown: NotebookPicture) -> str:
    """Return the picture of a keyframe with its time and caption."""
    return str(_macros().keyframe(shown))


def contact_sheet(title: str, count: int, described: int, pictures: Callable[[int], NotebookPicture]) -> str:
    """Return small pictures of at most `MAX_PICTURES` keyframes, evenly chosen; `pictures` returns that of a place from 0."""
    places: Sequence[int] = evenly_spaced(count, MAX_PICTURES)
    counts = f"{plural(count, 'keyframe')}, {plural(described, 'description')}"
    hidden = f"{len(places)} of {count} are shown, evenly chosen." if len(places) < count else ""
    return str(_macros().sheet(title, counts, hidden, [pictures(place) for place in places]))


def _macros() -> Any:
    return templates("vip.html").get_template("notebook.html.jinja").module
