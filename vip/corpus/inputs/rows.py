"""One untrusted row of a list: which videos it names.

In: the text of a row, or the values of its columns, and its place. Out: a `ListItem` for each video, or a `BadRow` that says why there is
none. Nothing is raised, and nothing is downloaded. A row is one of these:

- eleven letters, digits, `-` and `_`: an id of YouTube; four letters and digits: an id of YouTube-8M. It is an id even where a file has
  that name, so that a list means the same on every machine; write the file as `./NAME`
- an address of one video of YouTube: it becomes the id, so that a video is not downloaded twice
- another http(s) address
- anything else: a local path, a folder of videos, or a glob, in the folder of the list, or else in the current one
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import chain
from pathlib import Path
from urllib.parse import unquote

from vip.dataset.items import ItemKind, ListItem
from vip.download.addresses import YOUTUBE_ID, is_public_host, split_address, youtube_id
from vip.errors import FailureKind, InputError
from vip.untrusted import printable

ROW_BYTES = 8192
SHOWN_LETTERS = 120
KEY_STEM = 80
KEY_DIGITS = 16  # 64 bits: of a hundred million addresses with one stem no two have the same key; with 40 bits two of a million may

YOUTUBE8M_ID = re.compile(r"[A-Za-z0-9]{4}")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?=//)|(?:file|data|javascript):", re.IGNORECASE)
_NO_SCHEME = re.compile(r"(?:(?:www|m|music)\.)?(?:youtube(?:-nocookie)?\.com|youtu\.be)/", re.IGNORECASE)
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LOGIN = re.compile(r"(?:(?<=://)|(?<=^//))(?=[^/?#]*(?:@|:(?!\d{0,5}(?:[/?#]|$)))).*@", re.DOTALL)
"""A login before a host, up to the last `@`, since a password may hold a slash; not an `@` in the path behind a plain host and port."""
_QUERY = re.compile(r"[?#].*|\?[^?]*=.*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class KnownColumns:
    """The columns of a list about a video, beside its source."""

    labels: tuple[str, ...] = ()
    verticals: tuple[str, ...] = ()
    topic: str | None = None
    duration_s: float | None = None


NO_COLUMNS = KnownColumns()


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that names no video, or one that may not be fetched."""

    text: str
    """Its beginning, printable, at most 120 characters."""
    where: str
    message: str
    kind: FailureKind = "bad_row"


def items_of(
    text: str, where: str, *, folder: Path, public_only: bool = False, known: KnownColumns = NO_COLUMNS
) -> Iterator[ListItem | BadRow]:
    """Yield the video that a row names, the videos of a folder or glob, or a BadRow.

    Args:
        folder: where relative paths start.
        public_only: refuse local paths, and addresses with a host of the private network.
    """
    text = text.strip()
    if YOUTUBE_ID.fullmatch(text):
        yield _item(text, "youtube", text, where, known)
    elif YOUTUBE8M_ID.fullmatch(text):
        yield _item(text, "youtube8m", text, where, known)
    elif why := _refusal_reason(text):
        yield bad_row(text, where, f"The row {why}.")
    elif _NO_SCHEME.match(text):
        yield _address_item(f"https://{text}", where, public_only, known)
    elif scheme := _SCHEME.match(text):
        if scheme[0].lower() in ("http:", "https:"):
            yield _address_item(text, where, public_only, known)
        else:
            yield bad_row(text, where, f"{scheme[0]} is not fetched. Give an http(s) address, an id of YouTube, or a path.")
    elif public_only:
        yield bad_row(text, where, "A local path is refused by --public-only.", "not_public")
    else:
        yield from _local_items(text, where, folder, known)


def _item(key: str, kind: ItemKind, source: str, where: str, known: KnownColumns) -> ListItem:
    return ListItem(key, kind, source, where, known.labels, known.verticals, known.topic, known.duration_s)


def bad_row(text: str, where: str, message: str, kind: FailureKind = "bad_row") -> BadRow:
    """Return a BadRow with the beginning of the row, as `shown` shows it."""
    return BadRow(shown(text), where, message, kind)


def shown(text: str) -> str:
    """Return the beginning of a text, printable; of an address neither login nor query, which may hold secrets."""
    text = printable(text[:ROW_BYTES])
    if "//" in text:
        text = _QUERY.sub("?…", _LOGIN.sub("…@", text))
    elif "?" in text and "=" in text:
        text = text.partition("?")[0] + "?…"
    return text[:SHOWN_LETTERS]


def _refusal_reason(text: str) -> str | None:
    """Return why a text cannot be a row, as the end of a sentence; None where it can."""
    if not text:
        return "is empty"
    if len(text) > ROW_BYTES or len(text.encode(errors="replace")) > ROW_BYTES:
        return f"is longer than {ROW_BYTES} bytes"
    if not text.isprintable() and any(unicodedata.category(letter) in ("Cc", "Cs") for letter in text):
        return "has control characters or bytes that are no text"
    return None


def _address_item(address: str, where: str, public_only: bool, known: KnownColumns) -> ListItem | BadRow:
    try:
        parts = split_address(address)
    except ValueError as exc:
        return bad_row(address, where, f"The row {exc}.")
    if (video := youtube_id(parts)) is not None:
        return _item(video, "youtube", video, where, known)
    host = parts.hostname or ""
    if public_only and not is_public_host(host):
        return bad_row(address, where, f"{shown(host)} is of the private network, which --public-only refuses.", "not_public")
    stem = Path(unquote(parts.path).rstrip("/").rpartition("/")[2]).stem or host
    return _item(_key(stem, address), "address", address, where, known)


def _key(stem: str, whole: str) -> str:
    safe = _UNSAFE.sub("_", stem)[:KEY_STEM].strip("._-") or "video"
    return f"{safe}-{hashlib.sha256(whole.encode()).hexdigest()[:KEY_DIGITS]}"


def _local_items(text: str, where: str, folder: Path, known: KnownColumns) -> Iterator[ListItem | BadRow]:
    for base in dict.fromkeys((folder, Path())):
        path = os.path.abspath(base / text)  # noqa: PTH100 - Path.absolute keeps "..", and the same file would have two keys
        found = _mode(path)
        if found is not None:
            break
        if is_glob(text):
            matches = _glob_files(base, text)
            first = next(matches, None)
            if first is not None:
                yield from (_file_item(match, where, known) for match in chain([first], matches))
                return
    if found is None:
        yield bad_row(text, where, "There is no such file, and the row is neither an id nor an address.", "missing")
    elif stat.S_ISDIR(found):
        yield from _folder_items(Path(path), text, where, known)
    elif stat.S_ISREG(found):
        yield _file_item(path, where, known)
    else:
        yield bad_row(text, where, "It is neither a file nor a folder.")


def _mode(path: str | os.PathLike[str]) -> int | None:
    try:
        return os.stat(path).st_mode  # noqa: PTH116 - a Path for each of a million rows costs seconds
    except (OSError, ValueError):
        return None


def _glob_files(base: Path, pattern: str) -> Iterator[str]:
    """Yield the files that match; without the suffix of a video only where the pattern names a suffix."""
    from vip.video import VIDEO_SUFFIXES

    parts = Path(pattern).parts
    first = next(place for place, part in enumerate(parts) if is_glob(part))
    suffix = Path(pattern).suffix
    for path in _matching(str(base.joinpath(*parts[:first])), parts[first:]):
        if ((suffix and not is_glob(suffix)) or Path(path).suffix.lower() in VIDEO_SUFFIXES) and stat.S_ISREG(_mode(path) or 0):
            yield os.path.abspath(path)  # noqa: PTH100 - as in _local_items


def _matching(top: str, parts: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths below a folder that match, each once: no folder is looked at twice for the same rest of the pattern."""
    if ".." in parts:  # it would lead to each folder on many ways
        return
    waiting, seen = [(top, 0)], set[tuple[str, int]]()
    while waiting:
        path, place = waiting.pop()
        if place == len(parts):
            yield path
        elif (path, place) not in seen:
            seen.add((path, place))
            with suppress(OSError):  # it was deleted, may not be read, or is no folder
                waiting += _matching_next(path, place, parts)


def _matching_next(path: str, place: int, parts: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Yield what is to be looked at after a path, and the place of the part that it is to match."""
    part = parts[place]
    if not is_glob(part):
        yield os.path.join(path, part), place + 1  # noqa: PTH118 - as in _mode
    elif part != "**":
        with os.scandir(path) as entries:
            yield from ((entry.path, place + 1) for entry in entries if fnmatch(entry.name, part))
    else:
        with os.scandir(path) as entries:
            yield path, place + 1
            if parts[place + 1 : place + 2] != ("**",):
                yield from ((entry.path, place) for entry in entries if entry.is_dir(follow_symlinks=False))


def is_glob(text: str) -> bool:
    return any(letter in text for letter in "*?[")


def _folder_items(folder: Path, text: str, where: str, known: KnownColumns) -> Iterator[ListItem | BadRow]:
    from vip.video.source import contents

    try:
        videos: Iterable[Path] = contents(folder)[0]
    except InputError as exc:
        yield bad_row(text, where, str(exc), "unreadable")
        return
    if not videos:
        yield bad_row(text, where, "The folder has no videos.", "no_video")
    for path in videos:
        yield _file_item(str(path), where, known)


def _file_item(path: str, where: str, known: KnownColumns) -> ListItem | BadRow:
    if why := _refusal_reason(path):
        return bad_row(path, where, f"The path of a file {why}. Rename it.")
    stem = Path(path).stem
    return _item(_key(stem, path), "file", path, where, known)
