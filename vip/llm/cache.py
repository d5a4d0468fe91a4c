"""Answers that were paid for, in one SQLite file that all runs share: nothing is asked twice.

In: the digest of a question (picture bytes, prompt, parameters, model, server). Out: the answer that was given. An answer is
on the disk before `keep` returns; answers that come at the same time share one write. Keys are nowhere in it. The file may be damaged
or come from a stranger: its answers are checked like those of an engine.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

from vip import databases, user_state
from vip.errors import StoreError
from vip.protocols import Reply
from vip.untrusted import one_line, parse_json
from vip.wording import option

LOCK_TIMEOUT_S = 60.0  # for other processes that write
MOST_BYTES = 4 * 2**20  # of one entry; the longest answer has a tenth
LONGEST_TRAIT = 100
SCHEMA = """
create table if not exists answers (
    question blob primary key, engine text not null, model text not null, text text not null,
    tokens_in integer, tokens_out integer, created_utc text not null
) without rowid;
create table if not exists servers (engine text primary key, traits text not null) without rowid;
"""


def default_path() -> Path:
    """Return `answers.sqlite` in the user's cache folder."""
    return user_state.cache_folder() / "answers.sqlite"


@dataclass(frozen=True, slots=True)
class _CachedRow:
    question: bytes
    engine: str
    reply: Reply
    loop: asyncio.AbstractEventLoop
    written: asyncio.Future[None]


class AnswerCache:
    """The file, open.

    Raises:
        StoreError: it cannot be opened, or is no such file.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or default_path()
        with self._store_errors():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._reader = self._connect()
            try:
                self._reader.executescript(SCHEMA)
                self._writer = self._connect()
            except BaseException:
                self._reader.close()
                raise
        self._queue: SimpleQueue[_CachedRow | None] = SimpleQueue()
        self._thread = Thread(target=self._write, name="vip answers", daemon=True)
        self._thread.start()

    def _connect(self) -> sqlite3.Connection:
        connection = databases.connect(self.path, SCHEMA, timeout_s=LOCK_TIMEOUT_S, most_bytes=MOST_BYTES)
        try:
            databases.write_ahead(connection)
            connection.execute("pragma synchronous = full")  # an answer that counts as kept survives a power cut
        except BaseException:
            connection.close()
            raise
        return connection

    def _store_errors(self) -> _StoreErrors:
        return _StoreErrors(self.path)

    def get(self, question: bytes) -> Reply | None:
        """Return the answer to a question; None where there is none."""
        with self._store_errors():
            row = self._reader.execute("select text, model, tokens_in, tokens_out from answers where question = ?", (question,)).fetchone()
        return Reply(*row) if row else None  # of any kind, since a column of SQLite takes any

    async def keep(self, question: bytes, engine: str, reply: Reply) -> None:
        """Write an answer; it is on the disk when this returns."""
        loop = asyncio.get_running_loop()
        row = _CachedRow(question, engine, make_encodable(reply), loop, loop.create_future())
        self._queue.put(row)
        await row.written

    def traits(self, engine: str) -> dict[str, str]:
        """Return what was found out about a server."""
        with self._store_errors():
            row = self._reader.execute("select traits from servers where engine = ?", (engine,)).fetchone()
        with suppress(ValueError, TypeError):
            found = parse_json(row[0]) if row else None
            if isinstance(found, dict):
                return {name: value for name, value in found.items() if isinstance(value, str) and len(value) <= LONGEST_TRAIT}
        return {}  # it will be found out again

    def remember(self, engine: str, traits: Mapping[str, str]) -> None:
        with self._store_errors():
            self._reader.execute("insert or replace into servers values (?, ?)", (engine, json.dumps(dict(traits))))

    def count(self) -> int:
        with self._store_errors():
            return int(self._reader.execute("select count(*) from answers").fetchone()[0])

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()
        self._writer.close()
        self._reader.close()

    # ------------------------------------------------------------ the thread that writes

    def _write(self) -> None:
        while (row := self._queue.get()) is not None:
            rows, ended = self._take_waiting(row)
            self._write_all(rows)
            if ended:
                return

    def _take_waiting(self, row: _CachedRow) -> tuple[list[_CachedRow], bool]:
        """Return this row with those that came meanwhile, and whether they are the last ones."""
        rows = [row]
        while not self._queue.empty():
            following = self._queue.get()
            if following is None:
                return rows, True
            rows.append(following)
        return rows, False

    def _write_all(self, rows: list[_CachedRow]) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        values = [(r.question, r.engine, r.reply.model, r.reply.text, r.reply.tokens_in, r.reply.tokens_out, now) for r in rows]
        failed: Exception | None = None
        try:
            with self._store_errors():
                self._writer.execute("begin immediate")
                self._writer.executemany("insert or replace into answers values (?, ?, ?, ?, ?, ?, ?)", values)
                self._writer.execute("commit")
        except Exception as exc:  # also a bug must not leave anybody waiting
            failed = exc
            with suppress(sqlite3.Error):
                self._writer.execute("rollback")
        for row in rows:
            with suppress(RuntimeError):  # its loop has ended: nobody waits any more
                row.loop.call_soon_threadsafe(_settle, row.written, failed)


def make_encodable(reply: Reply) -> Reply:
    """Return the answer with a mark in place of what UTF-8 cannot encode: half an emoji, where a model was cut off."""
    text, model = (part.encode("utf-8", "replace").decode() for part in (reply.text, reply.model))
    return reply if (text, model) == (reply.text, reply.model) else replace(reply, text=text, model=model)


def _settle(written: asyncio.Future[None], failed: Exception | None) -> None:
    if written.done():
        return
    if failed:
        written.set_exception(failed)
    else:
        written.set_result(None)


class _StoreErrors:
    """A context that translates errors of the file to one sentence."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, traceback: object) -> None:
        why = one_line((isinstance(exc, OSError) and exc.strerror) or str(exc))
        if isinstance(exc, sqlite3.OperationalError | OSError):
            raise StoreError(
                f"{self.path} cannot be used ({why}). Name another file for the answers with {option('cache')}, or make room."
            ) from exc
        if isinstance(exc, sqlite3.DatabaseError | UnicodeDecodeError):  # the message of SQLite quotes what is damaged
            raise StoreError(
                f"{self.path} holds no answers of vip ({why}). Delete it, or name another file with {option('cache')}."
            ) from exc
