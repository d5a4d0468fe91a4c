"""The log of a review: each thing that a person did, in one SQLite file beside what is reviewed. Nothing in it is ever changed.

In: actions (who, which item, which field, before, after). Out: the same with a number and a time. An action that `append` has returned
is on the disk: it survives a killed program and a power cut. The number, not the time, is the order. Each action has an id that its client
made, so one that is sent again after a broken connection is not written twice. `vip.review.state` reads the current values through it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import NamedTuple

from vip import databases
from vip.errors import StoreError
from vip.review.fields import MOST_NAME, is_possible_name
from vip.untrusted import one_line

NAME = "review.sqlite"
LOCK_TIMEOUT_S = 60.0  # for other processes that write
VERSION = 1
APPLICATION = 0x76697072  # "vipr", in the header of the file
MOST_TEXT_BYTES = 2**20
MOST_PROBLEM_LETTERS = 150
AT_ONCE = 500  # actions of one query; SQLite takes at least 999 values
SCHEMA = """
create table actions (
    number integer primary key autoincrement,
    uid text not null unique,
    created_utc text not null,
    reviewer text not null,
    item text not null,
    field text not null,
    before text,
    after text,
    undoes integer references actions (number),
    batch text
);
create trigger actions_are_never_changed before update on actions begin select raise(abort, 'the log is append-only'); end;
create trigger actions_are_never_deleted before delete on actions begin select raise(abort, 'the log is append-only'); end;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAction:
    """What a person did, before it is in the log."""

    uid: str
    """Made by the client; the same action sent twice has the same."""
    reviewer: str
    item: str
    field: str
    before: str | None
    after: str | None
    undoes: int | None = None
    """The number of the action that this one takes back."""
    batch: str | None = None
    """What the actions of one find-and-replace share."""


class Action(NamedTuple):
    """A row of the log, a tuple because a review has tens of thousands of them; the fields are those of `NewAction`."""

    number: int
    uid: str
    created_utc: str
    reviewer: str
    item: str
    field: str
    before: str | None
    after: str | None
    undoes: int | None
    batch: str | None


COLUMNS = ", ".join(Action._fields)
_NONE = type(None)
_KINDS = frozenset(product((int,), *[(str,)] * 5, *[(str, _NONE)] * 2, (int, _NONE), (str, _NONE)))
"""The types that the values of a row may have; SQLite keeps any type in any column."""


class ReviewLog:
    """The file, open. One thread at a time may use it; several processes may.

    Raises:
        StoreError: it cannot be opened, is damaged, is no such file, or was written by a newer vip.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._translate_errors():
            self._connection = databases.connect(path, SCHEMA, version=VERSION, timeout_s=LOCK_TIMEOUT_S, most_bytes=4 * MOST_TEXT_BYTES)
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def _prepare(self) -> None:
        self._connection.execute("pragma recursive_triggers = on")  # or REPLACE would delete without asking the trigger
        if self._header() == (0, 0):
            databases.write_ahead(self._connection)
            with self._transaction():  # a process that begins at the same time waits, and finds it made
                if self._header() == (0, 0):
                    self._create()
        application, version = self._header()
        if application == APPLICATION and version > VERSION:
            raise StoreError(f"{self.path}: written by a newer vip (version {version}). Update with `pip install -U vip-keyframes`.")
        if (application, version) != (APPLICATION, VERSION) or databases.parts_of(self._connection) != databases.parts_made_by(SCHEMA):
            raise StoreError(f"{self.path} is no log of a review. Rename it, and run `vip review` again.")
        self._connection.execute("pragma synchronous = full")

    def _create(self) -> None:
        if self._connection.execute("select 1 from sqlite_schema").fetchone():
            raise StoreError(f"{self.path} is no log of a review. Rename it, and run `vip review` again.")
        for statement in _statements(SCHEMA):
            self._connection.execute(statement)
        self._connection.execute(f"pragma application_id = {APPLICATION}")
        self._connection.execute(f"pragma user_version = {VERSION}")

    def _header(self) -> tuple[int, int]:
        application, version = (self._connection.execute(f"pragma {name}").fetchone()[0] for name in ("application_id", "user_version"))
        return application, version

    def append(
        self, actions: Sequence[NewAction], *, prepare: Callable[[NewAction], NewAction] = lambda action: action
    ) -> list[Action | StaleValueError]:
        """Write actions in one transaction, and return them as rows; when this returns they are on the disk.

        Args:
            prepare: called inside the transaction before each is written, and returns what is written. Where it raises `StaleValueError`,
                that action is not written, and the error stands in place of its row. Actions that are in the log already are returned
                as they are there.

        Raises:
            StoreError: the disk is full, or the file cannot be written; nothing is written then.
        """
        with self._translate_errors(), self._transaction():
            return [self._append(action, prepare) for action in actions]

    def _append(self, action: NewAction, prepare: Callable[[NewAction], NewAction]) -> Action | StaleValueError:
        known = self._connection.execute(f"select {COLUMNS} from actions where uid = ?", (action.uid,)).fetchone()
        if known:
            return _action(known)
        try:
            action = prepare(action)
        except StaleValueError as exc:
            return exc
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        values = (action.uid, now, action.reviewer, action.item, action.field, action.before, action.after, action.undoes, action.batch)
        names = COLUMNS.removeprefix("number, ")
        number = self._connection.execute(f"insert into actions ({names}) values ({', '.join('?' * len(values))})", values).lastrowid
        return _action((number, *values))

    def read(self, *, after: int = 0) -> Iterator[Action]:
        """Yield the actions with a higher number than `after`, in order.

        Raises:
            StoreError: the file is damaged.
        """
        yield from self._select("number > ? order by number", (after,))

    def _select(self, which: str, values: tuple[object, ...]) -> Iterator[Action]:
        wanted = f"select {COLUMNS} from actions where {which}"
        with self._translate_errors(), closing(self._connection.execute(wanted, values)) as rows:
            for row in rows:
                yield _action(row)

    def read_these(self, numbers: Sequence[int]) -> Iterator[Action]:
        """Yield the actions with these numbers, in their order; errors as of `read`."""
        for start in range(0, len(numbers), AT_ONCE):
            some = tuple(numbers[start : start + AT_ONCE])
            yield from self._select(f"number in ({', '.join('?' * len(some))}) order by number", some)

    def read_back(self, item: str) -> Iterator[Action]:
        """Yield the actions on an item, the last first; errors as of `read`."""
        yield from self._select("item = ? order by number desc", (item,))

    def check(self) -> None:
        """Check that the whole file is sound.

        Raises:
            StoreError: it is not.
        """
        with self._translate_errors():
            (verdict,) = self._connection.execute("pragma integrity_check").fetchone()
        if verdict != "ok":
            raise StoreError(f"{self.path} is damaged: {verdict}. Restore it from a copy.")

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> ReviewLog:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("begin immediate")
        try:
            yield
            self._connection.execute("commit")
        except BaseException:
            with suppress(sqlite3.Error):
                self._connection.execute("rollback")
            raise

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as exc:
            raise StoreError(f"{self.path} cannot be used: {_shortened(exc)}. Free space or close other programs, and try again.") from exc
        except (sqlite3.DatabaseError, UnicodeDecodeError) as exc:  # the message of SQLite quotes what is damaged
            raise StoreError(
                f"{self.path} is damaged, or no log of a review: {_shortened(exc)}. Rename it or restore it from a copy."
            ) from exc
        except OSError as exc:
            raise StoreError(f"{self.path} cannot be used: {exc.strerror}.") from exc


class StaleValueError(Exception):
    """Somebody else has changed the value since the client read it."""

    def __init__(self, current: str | None) -> None:
        super().__init__("somebody else has changed it")
        self.current = current


def _action(row: Sequence[object]) -> Action:
    if tuple(map(type, row)) not in _KINDS:
        raise sqlite3.DatabaseError("a value is not of the kind of its column")
    action = Action._make(row)
    if not is_possible_name(action.reviewer) or len(action.field) > MOST_NAME or len(action.created_utc) > MOST_NAME:
        raise sqlite3.DatabaseError(f"action {action.number} has a name, a field or a time that is too long")
    return action


def _shortened(exc: Exception) -> str:
    """Return what SQLite says on one line; it quotes what is damaged, and that may be long."""
    return one_line(str(exc))[:MOST_PROBLEM_LETTERS]


def _statements(schema: str) -> list[str]:
    """Return the statements of a schema; each begins a line with `create`."""
    return [f"create {part}".strip().rstrip(";") for part in schema.split("\ncreate ")[1:]]
