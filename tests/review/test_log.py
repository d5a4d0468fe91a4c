"""The log: nothing that was acknowledged is lost, nothing is written twice, nothing is changed."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from tests.review.corpora import action
from vip.errors import StoreError
from vip.review.fields import engine_reviewer
from vip.review.log import NAME, ReviewLog

KILLS = 50
SAVER = """
import sys
from pathlib import Path
from vip.review.log import NewAction, ReviewLog
log, number = ReviewLog(Path(sys.argv[1])), int(sys.argv[2])
while True:
    new = NewAction(uid=f"u{number}", reviewer="Ann", item=f"k{number}", field="verdict", before=None, after="good" * 100)
    log.append([new])
    print(number, flush=True)
    number += 1
"""


@pytest.fixture
def log(tmp_path: Path) -> ReviewLog:
    return ReviewLog(tmp_path / NAME)


def test_actions_come_back_in_their_order_with_numbers_and_times(log: ReviewLog) -> None:
    written = log.append([action("a", "verdict", "good"), action("b", "verdict", "unusable")])
    assert [one.number for one in log.read()] == [1, 2]
    assert list(log.read()) == written
    assert list(log.read(after=1)) == written[1:]
    assert all(one.created_utc.endswith("+00:00") for one in log.read())


def test_an_action_that_is_sent_twice_is_written_once(log: ReviewLog) -> None:
    new = action("a", "verdict", "good", uid="once")
    first, second = log.append([new]), log.append([new])
    assert first == second == list(log.read())


@pytest.mark.parametrize(
    "statement",
    [
        "update actions set after = 'x'",
        "delete from actions",
        "insert or replace into actions select number, uid, created_utc, 'Eve', item, field, before, after, undoes, batch from actions",
    ],
)
def test_the_log_refuses_to_be_changed(log: ReviewLog, statement: str) -> None:
    log.append([action("a", "verdict", "good")])
    before = list(log.read())
    with pytest.raises(sqlite3.DatabaseError, match="append-only"):
        log._connection.execute(statement)
    assert list(log.read()) == before


@pytest.mark.slow
def test_clients_that_write_at_once_lose_nothing_and_keep_their_order(tmp_path: Path) -> None:
    def write(client: int) -> None:
        with ReviewLog(tmp_path / NAME) as own:
            for start in range(0, 1000, 100):
                own.append([action("a", "comment", str(n), by=f"client {client}", uid=f"{client}-{n}") for n in range(start, start + 100)])

    threads = [Thread(target=write, args=(client,)) for client in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with ReviewLog(tmp_path / NAME) as log:
        rows = list(log.read())
        log.check()
    assert [row.number for row in rows] == list(range(1, 10_001))
    for client in range(10):
        assert [int(row.after or "") for row in rows if row.reviewer == f"client {client}"] == list(range(1000))


@pytest.mark.slow
def test_a_killed_program_loses_no_acknowledged_action(tmp_path: Path) -> None:
    path, acknowledged = tmp_path / NAME, -1
    for kill in range(KILLS):
        process = subprocess.Popen([sys.executable, "-c", SAVER, str(path), str(acknowledged + 1)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for _ in range(1 + kill % 4):
            acknowledged = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        acknowledged = max([acknowledged, *map(int, process.stdout.read().split())])
        process.stdout.close()
        process.wait()
    with ReviewLog(path) as log:
        log.check()
        found = [int(row.uid[1:]) for row in log.read()]
    assert acknowledged >= KILLS
    assert found[: acknowledged + 1] == list(range(acknowledged + 1))
    assert len(found) <= acknowledged + 2  # the last may be written, and not said to be


def test_a_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database at all, of whatever length" * 100)
    with pytest.raises(StoreError, match="no log of a review"):
        ReviewLog(tmp_path / "text")
    with sqlite3.connect(tmp_path / "other") as other:
        other.execute("create table answers (a)")
    other.close()
    with pytest.raises(StoreError, match="no log of a review"):
        ReviewLog(tmp_path / "other")


def test_a_log_whose_tables_are_damaged_is_one_sentence(log: ReviewLog) -> None:
    log.close()
    data = log.path.read_bytes()
    assert data.count(b"TABLE actions (") == 1
    log.path.write_bytes(data.replace(b"TABLE actions (", b"TABLE actions \xe5"))  # SQLite's message quotes it, and it is no UTF-8
    with pytest.raises(StoreError, match="is damaged, or no log of a review"):
        ReviewLog(log.path)
    log.path.write_bytes(data.replace(b"TABLE actions (", b"TABLE 'tions ("))  # a text without an end: all that follows is quoted
    with pytest.raises(StoreError, match=r"is damaged, or no log of a review|cannot be used") as caught:
        ReviewLog(log.path)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


def test_a_log_of_a_stranger_with_a_trigger_of_its_own_is_refused(log: ReviewLog) -> None:
    log._connection.execute("create trigger t after insert on actions begin select 1; end")
    log.close()
    with pytest.raises(StoreError, match="no log of a review"):
        ReviewLog(log.path)


def test_a_log_of_a_newer_vip_is_refused(log: ReviewLog) -> None:
    log._connection.execute("pragma user_version = 2")
    log.close()
    with pytest.raises(StoreError, match="newer vip"):
        ReviewLog(log.path)


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="link"):
        ReviewLog(tmp_path / NAME)
    assert not (tmp_path / "elsewhere").exists()


def test_what_was_acknowledged_survives_a_power_cut(log: ReviewLog) -> None:
    assert log._connection.execute("pragma synchronous").fetchone() == (2,)  # full
    assert log._connection.execute("pragma journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize("column", ["reviewer", "field", "created_utc"])
def test_a_log_of_a_stranger_with_a_name_that_is_too_long_is_damaged(column: str, log: ReviewLog) -> None:
    row = {"uid": "a", "created_utc": "2026", "reviewer": "Ann", "item": "a", "field": "comment", column: "x" * 61}
    log._connection.execute(f"insert into actions ({', '.join(row)}) values (?, ?, ?, ?, ?)", tuple(row.values()))
    with pytest.raises(StoreError, match=r"damaged, or no log of a review: action 1 has a name, a field or a time that is too long"):
        list(log.read())


def test_an_engine_may_have_a_longer_name_than_a_person(log: ReviewLog) -> None:
    log.append([action("a", "dense_caption", "A dog.", by=engine_reviewer("/models/" + "x" * 1000))])
    (row,) = log.read()
    assert row.reviewer.startswith("engine:/models/x")
    assert row.reviewer.endswith("…")
