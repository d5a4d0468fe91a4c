"""SQLite databases that may come from a stranger.

SQL that a database holds works whenever it is read or written: a view never ends, a trigger writes more rows, an expression fills the
memory. So it is opened only where its tables, indexes and triggers are those of vip, letter by letter, and where no file beside it leads
elsewhere.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from functools import cache
from pathlib import Path

from vip import files

MOST_VALUE_BYTES = 64 * 2**20
BUSY_WAITS_S = (0.02, 0.1, 0.3, 1.0)

Part = tuple[str, str, str, str | None]
"""Type, name, table and SQL of a table, an index, a view or a trigger."""


def connect(
    path: Path,
    schema: str,
    *,
    version: int = 0,
    inside: Path | None = None,
    timeout_s: float = 5.0,
    most_bytes: int = MOST_VALUE_BYTES,
) -> sqlite3.Connection:
    """Open a database, and create an empty one where it is missing.

    Args:
        schema: the SQL that makes its tables; they need not all be there yet.
        version: the `user_version` of this schema; a database of another one is opened without a look at its tables, to be refused.
        inside: the folder that the command names; by default the one the file lies in.
        timeout_s: how long to wait for other processes.
        most_bytes: of a value or a row.

    Raises:
        OSError: it, or a file of SQLite beside it, leads elsewhere.
        sqlite3.Error: it is damaged, or holds what vip did not make.
    """
    files.check_database(path, inside=inside)
    connection = sqlite3.connect(path, timeout=timeout_s, isolation_level=None, check_same_thread=False)
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, most_bytes)
        connection.execute("pragma trusted_schema = off")
        (found,) = connection.execute("pragma user_version").fetchone()
        if found in (0, version) and (strange := sorted(parts_of(connection) - parts_made_by(schema), key=str)):
            raise sqlite3.DatabaseError(f"it holds the {strange[0][0]} {strange[0][1]}, which vip did not make")
    except BaseException:
        connection.close()
        raise
    return connection


def write_ahead(connection: sqlite3.Connection) -> None:
    """Use a write-ahead log. SQLite does not wait for a process that begins one in the same file at the same moment."""
    for wait_s in (*BUSY_WAITS_S, None):
        try:
            connection.execute("pragma journal_mode = wal")
        except sqlite3.OperationalError as exc:
            if wait_s is None or exc.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            time.sleep(wait_s)
        else:
            return


def parts_of(connection: sqlite3.Connection) -> frozenset[Part]:
    """Return the tables, indexes, views and triggers of a database."""
    return frozenset(connection.execute("select type, name, tbl_name, sql from sqlite_schema"))


@cache
def parts_made_by(schema: str) -> frozenset[Part]:
    """Return what a schema makes, as SQLite keeps it."""
    with closing(sqlite3.connect(":memory:")) as empty:
        empty.executescript(schema)
        return parts_of(empty)
