"""Rows with columns (CSV, JSONL, Parquet): which videos they name, and what they say of them.

In: a mapping of column names to values of any type. Out: as `vip.corpus.inputs.rows`. The video is the first of `SOURCES` that is not
empty; a path or an address comes before an id, which may be a number of the list itself.
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
"""Name of a column -> its role, and its rank among the columns of that role: the first that is not empty holds."""
TOPIC_LETTERS = 2000


def column_name(name: str) -> str:
    """Return the name in its standard spelling: `video_id` for `Video ID`."""
    return re.sub(r"[\s-]+", "_", name.strip().casefold())


def items_of_columns(
    row: Mapping[str, Any], where: str, *, folder: Path, public_only: bool = False, vocabulary: Vocabulary | None = None
) -> Iterator[ListItem | BadRow]:
    """Yield the videos of a row with names of `column_name`, or a BadRow where it names none."""
    values = _values_by_role(row)
    given = values.get("source")
    if isinstance(given, bytes):
        given = given.decode(errors="surrogateescape")  # `items_of` refuses what is not UTF-8
    if isinstance(given, int) and not isinstance(given, bool):
        given = str(given)
    if not isinstance(given, str):
        names = ", ".join(map(str, row))
        yield bad_row(names, where, "The row names no video. Put an id, an address or a path into a column such as id, url or path.")
        return
    yield from items_of(given, where, folder=folder, public_only=public_only, known=_known_columns(values, vocabulary))


def _values_by_role(row: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    ranks: dict[str, int] = {}
    for name, value in row.items():
        if name in COLUMNS and value is not None and value != "":
            role, rank = COLUMNS[name]
            if role not in ranks or rank < ranks[role]:
                values[role], ranks[role] = value, rank
    return values


def _known_columns(values: Mapping[str, Any], vocabulary: Vocabulary | None) -> KnownColumns:
    """Return what a row says of its video; a value that makes no sense is ignored."""
    labels, verticals = _split_words(values.get("labels")), _split_words(values.get("verticals"))
    if vocabulary is not None and labels:
        labels, verticals = vocabulary.names(labels), verticals or vocabulary.verticals(labels)
    topic = values.get("topic")
    topic = " ".join(topic[:TOPIC_LETTERS].split()) if isinstance(topic, str) else None
    return KnownColumns(labels, verticals, topic or None, _parse_seconds(values.get("duration")))


def _split_words(value: Any) -> tuple[str, ...]:
    """Return the words of a list, of a JSON list, or of a text that is split at `|`, or else at `;`, or else at `,`."""
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


def _parse_seconds(value: Any) -> float | None:
    if value is None:
        return None
    try:
        seconds = float(seconds_of(value)) if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None
