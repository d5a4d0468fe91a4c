"""Lookup of the YouTube video behind an id of YouTube-8M, at the server of that data set.

The answers are cached in one SQLite file that all processes share: without limit where there is a video, for a month where there is none.
Where the cache cannot be used, the server is asked again; no video fails for it.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from vip import databases, user_state
from vip.errors import ItemError

YOUTUBE8M_ID = re.compile(r"[A-Za-z0-9_-]{4}")
ANSWER = re.compile(r'\s*i\("([A-Za-z0-9_-]{4})","([A-Za-z0-9_-]{11})"\);?\s*')  # i("ABCD","dQw4w9WgXcQ");
NONE_FOR_S = 30 * 86400.0
PATIENCE_S = 30.0  # for other processes that write
SCHEMA = "create table if not exists ids (asked text primary key, youtube_id text, at_s real not null) without rowid"


def default_path() -> Path:
    """Return the file of the cache, in the user's cache folder."""
    return user_state.cache_folder() / "youtube8m.sqlite"


def look_up(short: str, base_url: str, read: Callable[[str], str | None]) -> str:
    """Return the YouTube id of a video of YouTube-8M.

    Args:
        short: its 4-letter id.
        base_url: the server's folder; the file of ABCD is `AB/ABCD.js` there.
        read: returns the text at an address, or None where there is none.

    Raises:
        ItemError: `short` is no such id, or its video is gone.
    """
    if not YOUTUBE8M_ID.fullmatch(short):
        raise ItemError(f"{short[:40]!r} is no id of YouTube-8M, which has 4 letters and digits.", "bad_row")
    address = f"{base_url.rstrip('/')}/{short[:2]}/{short}.js"
    found = _read_cache(address)
    if found is None:
        found = _parse_answer(short, read(address))
        _write_cache(address, found)
    if not found:
        raise ItemError(f"YouTube-8M knows no video {short} any more; it was deleted or made private.", "missing")
    return found


def _parse_answer(short: str, answer: str | None) -> str:
    """Return the YouTube id in the server's answer; "" where there is no answer."""
    if answer is None:
        return ""
    found = ANSWER.fullmatch(answer)
    if not found or found[1] != short:
        raise ItemError(f"YouTube-8M's lookup answers {short} with {answer[:60]!r}, which names no video.", "other")
    return found[2]


def _read_cache(address: str) -> str | None:
    """Return the cached YouTube id; "" where there is no video, None where nothing valid is cached."""
    with suppress(sqlite3.Error, OSError), closing(_connect()) as connection:
        row = connection.execute("select youtube_id, at_s from ids where asked = ?", (address,)).fetchone()
        if row and (row[0] or 0 <= time.time() - row[1] < NONE_FOR_S):
            return str(row[0])
    return None


def _write_cache(address: str, found: str) -> None:
    with suppress(sqlite3.Error, OSError), closing(_connect()) as connection:
        connection.execute("insert or replace into ids values (?, ?, ?)", (address, found, time.time()))


def _connect() -> sqlite3.Connection:
    path = default_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = databases.connect(path, SCHEMA, timeout_s=PATIENCE_S)
    try:
        connection.execute(SCHEMA)
    except BaseException:
        connection.close()
        raise
    return connection
