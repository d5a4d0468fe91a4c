"""From a row with columns (CSV, JSONL, Parquet) to the videos it names and what it says of them.

In: a mapping of column names to values of whatever type. Out: as `vip.corpus.inputs.rows`. The video is the first of `SOURCES` that
holds something; a path or an address goes before an id, which may be the list's own number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vip.corpus.inputs.rows import BadRow, KnownColumns, bad_row, items_of
from vip.corpus.inputs.vocabulary import Vocabulary
from vip.dataset.items import ListItem
from vip.timecode import seconds_of
from vip.untrusted import parse_json

SOURCES = (
    *("path", "file", "file_path", "filepath", "file_name", "filename", "source", "youtube_id", "ytid"),
    *("url", "video_url", "video_link", "contenturl", "address", "link", "video", "video_id", "videoid", "id"),
)
_ROLES = {
    "source": SOURCES,
    "labels": ("labels", "label"),
    "verticals": ("verticals", "vertical", "categories", "category"),
    "topic": ("topic",),
    "duration": ("duration_s", "duration"),
}
COLUMNS = {name: (role, rank) for role, names in _ROLES.items() for rank, name in enumerate(names)}
"""What a column says, and its place among those that say the same: the first that is not empty holds."""
TOPIC_LETTERS = 2000


def column_name(name: str) -> str:
    """The name by which a column is known: `Video ID` is `video_id`."""
    return re.sub(r"[\s-]+", "_", name.strip().casefold())


def items_of_columns(
    row: Mapping[str, Any], where: str, *, folder: Path, public_only: bool = False, vocabulary: Vocabulary | None = None
) -> Iterator[ListItem | BadRow]:
    """The videos of a row, whose keys went through `column_name`; a BadRow where it names none."""
    said = _said(row)
    given = said.get("source")
    if isinstance(given, bytes):
        given = given.decode(errors="surrogateescape")  # what is no UTF-8 is refused with the reason
    if isinstance(given, int) and not isinstance(given, bool):
        given = str(given)
    if not isinstance(given, str):
        seen = ", ".join(map(str, row))
        yield bad_row(seen, where, "The row names no video. Put an id, an address or a path into a column such as id, url or path.")
        return
    yield from items_of(given, where, folder=folder, public_only=public_only, known=_known(said, vocabulary))


def _said(row: Mapping[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    ranks: dict[str, int] = {}
    for name, value in row.items():
        if name in COLUMNS and value is not None and value != "":
            role, rank = COLUMNS[name]
            if role not in ranks or rank < ranks[role]:
                said[role], ranks[role] = value, rank
    return said


def _known(said: Mapping[str, Any], vocabulary: Vocabulary | None) -> KnownColumns:
    """What a row says beside the video; what makes no sense counts as not said."""
    labels, verticals = _words(said.get("labels")), _words(said.get("verticals"))
    if vocabulary is not None and labels:
        labels, verticals = vocabulary.names(labels), verticals or vocabulary.verticals(labels)
    topic = said.get("topic")
    topic = " ".join(topic[:TOPIC_LETTERS].split()) if isinstance(topic, str) else None
    return KnownColumns(labels, verticals, topic or None, _seconds(said.get("duration")))


def _words(value: Any) -> tuple[str, ...]:
    """A list as it is, or text with `|`, `;` or `,` between the words, whichever comes first in this order; JSON as well."""
    if value is None:
        return ()
    if isinstance(value, str):
        value = _split(value)
    elif not isinstance(value, list | tuple):
        value = [value]
    words = [str(word).strip() for word in value if isinstance(word, str | int)]
    return tuple(dict.fromkeys(word for word in words if word))


def _split(text: str) -> list[Any]:
    if text.lstrip().startswith("["):
        try:
            parsed = parse_json(text)
        except ValueError:
            parsed = None
        if isinstance(parsed, list):
            return parsed
    return text.split(next((mark for mark in "|;," if mark in text), "|"))


def _seconds(value: Any) -> float | None:
    if value is None:
        return None
    try:
        seconds = float(seconds_of(value)) if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None
