"""Which YouTube video a YouTube-8M id stands for. The data set's 4-letter ids are looked up at its own server, once.

Answers are kept in one SQLite file in the user's cache folder that all processes share: for good where there is a video, for a
month where there is none. A cache that cannot be used costs a request, no video.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from vip.errors import ItemError

ID = re.compile(r"[A-Za-z0-9_-]{4}")
ANSWER = re.compile(r'\s*i\("([A-Za-z0-9_-]{4})","([A-Za-z0-9_-]{11})"\);?\s*')  # i("ABCD","dQw4w9WgXcQ");
NONE_FOR_S = 30 * 86400.0
PATIENCE_S = 30.0  # for other processes that write
SCHEMA = "create table if not exists ids (asked text primary key, youtube_id text, at_s real not null) without rowid"


def default_path() -> Path:
    """`youtube8m.sqlite` in the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "vip" / "youtube8m.sqlite"


def youtube_id(short: str, base_url: str, read: Callable[[str], str | None]) -> str:
    """The 11-letter id of the video.

    Args:
        base_url: the server's folder; the file of ABCD is `AB/ABCD.js` there.
        read: gives what the server says, or None where it knows no such file.

    Raises:
        ItemError: the id is none, or it stands for no video any more.
    """
    if not ID.fullmatch(short):
        raise ItemError(f"{short[:40]!r} is no id of YouTube-8M, which has 4 letters and digits.", "bad_row")
    address = f"{base_url.rstrip('/')}/{short[:2]}/{short}.js"
    kept = _kept(address)
    if kept is None:
        kept = _found(short, read(address))
        _keep(address, kept)
    if not kept:
        raise ItemError(f"YouTube-8M knows no video {short} any more; it was deleted or made private.", "missing")
    return kept


def _found(short: str, answer: str | None) -> str:
    """The id in the server's answer; empty where there is none."""
    if answer is None:
        return ""
    found = ANSWER.fullmatch(answer)
    if not found or found[1] != short:
        raise ItemError(f"YouTube-8M's lookup answers {short} with {answer[:60]!r}, which names no video.", "other")
    return found[2]


def _kept(address: str) -> str | None:
    """The id; empty where there is none, None where that is not known."""
    with suppress(sqlite3.Error, OSError), closing(_connect()) as connection:
        row = connection.execute("select youtube_id, at_s from ids where asked = ?", (address,)).fetchone()
        if row and (row[0] or 0 <= time.time() - row[1] < NONE_FOR_S):
            return str(row[0])
    return None


def _keep(address: str, found: str) -> None:
    with suppress(sqlite3.Error, OSError), closing(_connect()) as connection:
        connection.execute("insert or replace into ids values (?, ?, ?)", (address, found, time.time()))


def _connect() -> sqlite3.Connection:
    path = default_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=PATIENCE_S, isolation_level=None)
    try:
        connection.execute(SCHEMA)
    except BaseException:
        connection.close()
        raise
    return connection
