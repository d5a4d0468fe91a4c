"""SQLite databases of strangers: what works when they are read is refused before it does."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from vip import databases
from vip.corpus.state import NAME as STATE
from vip.corpus.state import StateDatabase
from vip.errors import StoreError
from vip.llm.cache import AnswerCache
from vip.review.log import ReviewLog
from vip.search.index import DATABASE, opened


def open_index(path: Path) -> None:
    with opened(path.parent):
        pass


Open = Callable[[Path], object]
KINDS: dict[str, tuple[str, str, Open]] = {
    "state": (STATE, "items", lambda path: StateDatabase(path.parent).close()),
    "log": ("review.sqlite", "actions", lambda path: ReviewLog(path).close()),
    "answers": ("answers.sqlite", "answers", lambda path: AnswerCache(path).close()),
    "index": (DATABASE, "keyframes", open_index),
}
ENDLESS = "with recursive n(x) as (select 1 union all select x + 1 from n) select x from n"
STRANGE = {
    "a view in the place of a table": "drop table {0}; create view {0} as " + ENDLESS,
    "a trigger": "create trigger evil after insert on {0} begin select count(*) from (" + ENDLESS + "); end",
    "a trigger with a name like that of a table of SQLite": "create trigger sqlitex after insert on {0} begin select 1; end",
    "a column that is computed": "alter table {0} add column evil as (zeroblob(1000000000))",
    "an index over an expression": "create index evil on {0} (length(zeroblob(1000000000)))",
    "another table": "create table evil (a)",
}


@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize("kind", KINDS)
def test_a_database_with_sql_of_a_stranger_is_one_sentence(kind: str, strange: str, tmp_path: Path) -> None:
    name, table, open_it = KINDS[kind]
    path = tmp_path / name
    open_it(path)
    with closing(sqlite3.connect(path)) as file:
        file.executescript(STRANGE[strange].format(table))
    content = path.read_bytes()
    with pytest.raises(StoreError):
        open_it(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("kind", KINDS)
def test_a_database_that_states_no_version_is_looked_at_too(kind: str, tmp_path: Path) -> None:
    name, table, open_it = KINDS[kind]
    path = tmp_path / name
    open_it(path)
    with closing(sqlite3.connect(path)) as file:
        file.executescript(f"pragma user_version = 0; drop table {table}; {STRANGE['another table']}")
    content = path.read_bytes()
    with pytest.raises(StoreError, match="it holds the table evil, which vip did not make"):
        open_it(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_that_is_no_text_is_one_sentence(kind: str, tmp_path: Path) -> None:
    name, table, open_it = KINDS[kind]
    path = tmp_path / name
    open_it(path)
    path.write_bytes(path.read_bytes().replace(f" {table} (".encode(), f" {table} ".encode() + b"\xff"))
    with pytest.raises(StoreError):
        open_it(path)


@pytest.mark.parametrize("kind", KINDS)
def test_what_vip_made_opens_again(kind: str, tmp_path: Path) -> None:
    name, _, open_it = KINDS[kind]
    for _ in range(2):
        open_it(tmp_path / name)


TABLE = "create table t (a)"


def test_a_database_below_the_folder_that_is_named_lies_behind_no_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "batch").mkdir()
    (tmp_path / "batch" / "state").symlink_to(tmp_path / "elsewhere")
    path = tmp_path / "batch" / "state" / "a.sqlite"
    with pytest.raises(OSError, match="it is a link, or lies behind one"):
        databases.connect(path, TABLE, inside=tmp_path / "batch")
    assert list((tmp_path / "elsewhere").iterdir()) == []
    databases.connect(path, TABLE).close()  # named itself, with its folder


def test_a_database_may_be_used_by_another_thread_than_the_one_that_opened_it(tmp_path: Path) -> None:
    with closing(databases.connect(tmp_path / "a.sqlite", TABLE)) as connection, ThreadPoolExecutor(1) as pool:
        pool.submit(connection.executescript, TABLE).result()
        assert pool.submit(databases.parts_of, connection).result() == databases.parts_made_by(TABLE)


def test_a_database_of_another_version_is_opened_to_be_refused_by_its_reader(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    for version in (2, 3):
        with closing(sqlite3.connect(path)) as file:
            file.executescript(f"drop table if exists t; create table if not exists another (b); pragma user_version = {version}")
        if version == 2:
            with pytest.raises(sqlite3.DatabaseError, match="it holds the table another, which vip did not make"):
                databases.connect(path, TABLE, version=2)
        else:
            with closing(databases.connect(path, TABLE, version=2)) as connection:
                assert connection.execute("pragma user_version").fetchone() == (3,)


def test_a_value_that_fills_the_memory_is_not_read(tmp_path: Path) -> None:
    with closing(databases.connect(tmp_path / "a.sqlite", "create table t (a)", most_bytes=1000)) as connection:
        connection.execute("create table t (a)")
        with pytest.raises(sqlite3.DataError, match="too big"):
            connection.execute("insert into t values (zeroblob(2000))")


@pytest.mark.parametrize(("busy", "waits"), [(0, 0), (2, 2), (9, 4)])
def test_a_process_that_begins_a_log_at_the_same_moment_is_waited_for(busy: int, waits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("vip.databases.time.sleep", waited.append)
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY  # type: ignore[misc]
    asked = iter([error] * busy)

    class Connection:
        def execute(self, sql: str) -> None:
            if (found := next(asked, None)) is not None:
                raise found

    if busy > waits:
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            databases.write_ahead(Connection())  # type: ignore[arg-type]
    else:
        databases.write_ahead(Connection())  # type: ignore[arg-type]
    assert waited == list(databases.BUSY_WAITS_S[:waits])


def test_a_log_that_cannot_be_begun_for_another_reason_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.databases.time.sleep", lambda _: pytest.fail("it waits"))
    error = sqlite3.OperationalError("attempt to write a readonly database")
    error.sqlite_errorcode = sqlite3.SQLITE_READONLY  # type: ignore[misc]

    class Connection:
        def execute(self, sql: str) -> None:
            raise error

    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        databases.write_ahead(Connection())  # type: ignore[arg-type]
