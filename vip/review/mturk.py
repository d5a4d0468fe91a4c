"""Keyframes for Mechanical Turk, one a HIT: the first stage of the review, by workers (VIP paper, section 3.3, ethics, figure 9).

In: the described keyframes of a folder. Out: `hits.csv` with `item, picture, dense_caption, focus, action, mood, objects, setting`, a row a
HIT; `pictures/`, to be put where workers' browsers find them; `page.html`, into which Mechanical Turk puts a row; `preview.html`, the first
row on the same page, which sends nothing. Workers see what the engine wrote.

The contract of the page, which `mturk_results` reads: `verdict`, `wrong-<field>` of each text that is not true, `comments`. `item` is a
digest of the keyframe and its texts, so that answers to other descriptions are noticed.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
import re
from collections.abc import Sequence
from pathlib import Path

from vip import files, store
from vip.errors import InputError, StoreError, UsageError
from vip.html.layout import GENERATOR, resource, templates
from vip.html.markup import showable
from vip.review.fields import PACKAGE, TEXTS, VERDICTS
from vip.review.items import MEDIA_TYPES, ItemIndex, ReviewItem
from vip.tasks.fiber.hits import escape_cell
from vip.tasks.fiber.policy import WorkerPolicy
from vip.wording import option

PAPER = WorkerPolicy(workers_per_hit=3, countries=("AU", "CA", "NZ", "GB", "US"), approved_hits=0, approval_percent=98)
"""Who may work: the VIP paper's requirements; it does not say how many look at a description."""
COLUMNS = ("item", "picture", *TEXTS)
PICTURES = "pictures"
MEDIA_URL = "media_url"
WRONG_FIELD = "wrong-"
_URL = re.compile(r"https://[^\s\"'<>\\$`]+")


def item_key(item: ReviewItem) -> str:
    """Return what names a keyframe and what the engine wrote of it."""
    return hashlib.sha256("\0".join((item.id, *item.texts)).encode("utf-8", "surrogatepass")).hexdigest()[:40]


def write_keyframe_hits(out: Path, index: ItemIndex, *, media_url: str) -> int:
    """Write the CSV file, the pictures and both pages, and return the number of HITs.

    Args:
        media_url: the address of a picture, with `{file}`.

    Raises:
        UsageError: the address has another form.
        InputError: a picture is missing, or no browser shows it.
        StoreError: not writable.
    """
    if not _URL.fullmatch(media_url) or "{file}" not in media_url:
        raise UsageError(f"The address of pictures must begin with https:// and have {{file}} in it. Change {option(MEDIA_URL)}.")
    store.make_folder(out / PICTURES)
    with store.replacing(out / "hits.csv") as file:
        file.write(_csv_line(COLUMNS))
        for item in index.items:
            name = _write_picture(out / PICTURES, item)
            file.write(_csv_line(_cells(item, name)))
    first = index.items[0]
    pages = {"page.html": keyframe_page(media_url=media_url), "preview.html": keyframe_page(media_url=media_url, shown=first)}
    for name, text in pages.items():
        with store.replacing(out / name) as file:
            file.write(text.encode())
    return len(index.items)


def _write_picture(folder: Path, item: ReviewItem) -> str:
    if item.suffix not in MEDIA_TYPES:
        raise InputError(f"The picture of {item.id[:80]} is no file that browsers show ({item.suffix or 'no suffix'}). Make the run again.")
    name = f"{item_key(item)}{item.suffix}"
    try:
        with files.replacing(folder / name) as file:
            file.write(item.read_picture())
    except OSError as exc:
        raise StoreError(f"{folder / name} cannot be written: {exc.strerror}. Choose another place.") from exc
    return name


def _cells(item: ReviewItem, picture: str) -> list[str]:
    texts = (", ".join(text.split("\n")) if name == "objects" else text for name, text in zip(TEXTS, item.texts, strict=True))
    return [item_key(item), picture, *(escape_cell(showable(text)) for text in texts)]


def _csv_line(cells: Sequence[str]) -> bytes:
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(cells)
    return line.getvalue().encode("utf-8", "replace")


def keyframe_page(*, media_url: str, shown: ReviewItem | None = None) -> str:
    """Return the page; without a keyframe that of Mechanical Turk, with the names of its columns in place of their cells."""
    from markupsafe import Markup

    cells = dict(zip(COLUMNS, _cells(shown, ""), strict=True)) if shown else {name: f"${{{name}}}" for name in COLUMNS}
    picture = _data_uri(shown) if shown else html.escape(media_url).replace("{file}", cells["picture"])
    style, script = resource("page.css") + resource("mturk.css", PACKAGE), resource("mturk.js", PACKAGE)
    return (
        templates(PACKAGE)
        .get_template("mturk.html.jinja")
        .render(
            generator=GENERATOR,
            style=Markup(style),  # a file of vip, as the script is
            script=Markup(script),
            policy=_policy(style, script) if shown else "",
            is_preview=shown is not None,
            picture=Markup(picture),
            texts=[(name, name.replace("_", " "), Markup(cells[name])) for name in TEXTS],  # escape_cell escaped them
            verdicts=VERDICTS,
        )
    )


def _data_uri(item: ReviewItem) -> str:
    return f"data:{item.media_type};base64,{base64.b64encode(item.read_picture()).decode()}"


def _policy(style: str, script: str) -> str:
    """Return what the preview may load: its own style, script and picture. Mechanical Turk's page loads its library."""
    own = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    return f"default-src 'none'; img-src data:; style-src 'sha256-{own[0]}'; script-src 'sha256-{own[1]}'"
