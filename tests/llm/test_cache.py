"""Answers that were paid for stay, whatever happens to the process, and to others beside it."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from vip.errors import StoreError
from vip.llm.cache import AnswerCache, default_path
from vip.protocols import Reply

ROOT = Path(__file__).parents[2]
WRITER = """
import asyncio, os, sys
from hashlib import sha256
from pathlib import Path
from vip.llm.cache import AnswerCache
from vip.protocols import Reply

async def go(first, count):
    answers = AnswerCache(Path(sys.argv[1]))
    print("open", flush=True)
    async def keep(number):
        await answers.keep(sha256(str(number).encode()).digest(), "e", Reply(f"text {number}", "m"))
        os.write(1, f"{number}\\n".encode())
    await asyncio.gather(*(keep(number) for number in range(first, first + count)))
    if len(sys.argv) > 4:
        await asyncio.sleep(60)
    answers.close()

asyncio.run(go(int(sys.argv[2]), int(sys.argv[3])))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "to be" / "made" / "answers.sqlite"


def question(number: int) -> bytes:
    return sha256(str(number).encode()).digest()


def keep(answers: AnswerCache, *numbers: int, text: str = "text") -> None:
    async def go() -> None:
        await asyncio.gather(*(answers.keep(question(number), "e", Reply(f"{text} {number}", "m", 11, 7)) for number in numbers))

    asyncio.run(go())


def writer(path: Path, first: int, count: int, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), str(first), str(count), *more]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_an_answer_comes_back_as_it_was_given(answers: AnswerCache) -> None:
    reply = Reply('{"a": "ä\x00 \U0001f600 \'; drop table answers; --"}', "model-1", 1234, None)
    asyncio.run(answers.keep(question(1), "openai:model", reply))
    assert answers.get(question(1)) == reply
    assert answers.get(question(2)) is None


def test_what_is_kept_survives_a_power_cut(answers: AnswerCache) -> None:
    """No kill of a process shows that: SQLite is asked whether it waits for the disk at every commit."""
    for connection in (answers._writer, answers._reader):
        assert connection.execute("pragma synchronous").fetchone() == (2,)  # full
        assert connection.execute("pragma journal_mode").fetchone() == ("wal",)


def test_it_is_in_the_file_when_keep_returns(answers: AnswerCache, path: Path) -> None:
    async def go() -> list[int]:
        found = []
        with sqlite3.connect(path) as other:
            for number in range(20):
                await answers.keep(question(number), "e", Reply("t", "m"))
                found.append(other.execute("select count(*) from answers").fetchone()[0])
        other.close()
        return found

    assert asyncio.run(go()) == list(range(1, 21))


def test_many_at_once_are_all_kept(answers: AnswerCache) -> None:
    keep(answers, *range(500))
    assert answers.count() == 500
    assert {answers.get(question(number)).text for number in range(500)} == {f"text {number}" for number in range(500)}  # type: ignore[union-attr]


def test_what_waits_to_be_written_when_it_is_closed_is_kept_all_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_write, write_all = Event(), Event(), AnswerCache._write_all

    def write_late(cache: AnswerCache, rows: list[Any]) -> None:
        begun.set()
        assert may_write.wait(20)
        write_all(cache, rows)

    monkeypatch.setattr(AnswerCache, "_write_all", write_late)
    answers = AnswerCache(path)

    async def go() -> None:
        async with asyncio.timeout(20):
            kept = [asyncio.create_task(answers.keep(question(0), "e", Reply("text", "m")))]
            await asyncio.sleep(0)
            assert await asyncio.to_thread(begun.wait, 20)  # the first is on its way to the file, alone
            kept += [asyncio.create_task(answers.keep(question(number), "e", Reply("text", "m"))) for number in range(1, 5)]
            await asyncio.sleep(0)
            closed = asyncio.create_task(asyncio.to_thread(answers.close))
            while answers._queue.qsize() < 5:
                await asyncio.sleep(0.001)
            may_write.set()
            await asyncio.gather(closed, *kept)

    asyncio.run(go())
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("select count(*) from answers").fetchone() == (5,)


def test_the_later_answer_to_a_question_counts(answers: AnswerCache) -> None:
    keep(answers, 1)
    keep(answers, 1, text="better")
    assert answers.get(question(1)) == Reply("better 1", "m", 11, 7)
    assert answers.count() == 1


@pytest.mark.slow
def test_a_killed_process_leaves_every_answer_that_counted(path: Path) -> None:
    process = writer(path, 0, 400, "and wait")
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    kept = [int(process.stdout.readline()) for _ in range(101)]
    process.send_signal(signal.SIGKILL)
    rest = [int(line) for line in process.stdout.read().split()]
    process.stdout.close()
    assert process.wait() == -signal.SIGKILL
    answers = AnswerCache(path)
    try:
        assert len(kept) == 101
        assert all(answers.get(question(number)) == Reply(f"text {number}", "m") for number in (*kept, *rest))
    finally:
        answers.close()


@pytest.mark.slow
def test_processes_share_the_file(path: Path) -> None:
    processes = [writer(path, 100 * number, 100) for number in range(4)]
    for process in processes:
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert len(out.splitlines()) == 101
    answers = AnswerCache(path)
    try:
        assert answers.count() == 400
    finally:
        answers.close()


@pytest.mark.slow
def test_what_another_process_kept_is_seen_at_once(answers: AnswerCache, path: Path) -> None:
    assert answers.get(question(7)) is None
    writer(path, 7, 1).communicate(timeout=60)
    assert answers.get(question(7)) == Reply("text 7", "m")


def test_what_was_found_out_about_a_server_is_remembered(answers: AnswerCache, path: Path) -> None:
    assert answers.traits("openai:m at http://a") == {}
    answers.remember("openai:m at http://a", {"form": "json_object"})
    answers.remember("openai:m at http://a", {"form": "text"})
    answers.remember("openai:m at http://b", {"form": "json_schema"})
    later = AnswerCache(path)
    try:
        assert later.traits("openai:m at http://a") == {"form": "text"}
        assert later.traits("openai:m at http://b") == {"form": "json_schema"}
    finally:
        later.close()


def test_a_trait_that_is_longer_than_any_is_left_out(answers: AnswerCache) -> None:
    answers.remember("e", {"form": "x" * 101, "length": "x" * 100})
    assert answers.traits("e") == {"length": "x" * 100}


def test_once_it_is_closed_it_is_one_file(path: Path) -> None:
    """What SQLite keeps beside it is in it: who copies the file has all answers."""
    answers = AnswerCache(path)
    keep(answers, 1)
    answers.close()
    assert list(path.parent.iterdir()) == [path]


# ---------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize("content", [b"no database, but as long as one " * 100, b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_file_that_is_something_else_is_named_in_one_sentence(content: bytes, path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"answers\.sqlite .*--cache") as caught:
        AnswerCache(path)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == content, "it is not vip's, so it stays as it was"


def test_a_database_of_somebody_else_is_not_written_into(path: Path) -> None:
    path.parent.mkdir(parents=True)
    with sqlite3.connect(path) as other:
        other.execute("create table answers (a, b)")
    other.close()
    content = path.read_bytes()
    with pytest.raises(StoreError, match=r"answers\.sqlite .*--cache"):
        AnswerCache(path)
    assert path.read_bytes() == content


def test_answers_whose_tables_are_damaged_are_one_sentence(answers: AnswerCache, path: Path) -> None:
    answers.close()
    data = path.read_bytes()
    assert b"TABLE answers (" in data
    path.write_bytes(data.replace(b"TABLE answers (", b"TABLE answers \xe5"))  # SQLite's message quotes it, and it is no UTF-8
    with pytest.raises(StoreError, match=r"holds no answers of vip .*--cache"):
        AnswerCache(path)


def test_a_folder_that_cannot_be_made_is_named_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match=r"cannot be used .*Name another file for the answers with --cache"):
        AnswerCache(tmp_path / "file" / "answers.sqlite")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_not_writable_is_named_in_one_sentence(tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(StoreError, match="cannot be used"):
        AnswerCache(tmp_path / "answers.sqlite")


def test_a_write_that_fails_is_told_to_everybody_who_waits_and_the_next_one_works(answers: AnswerCache, path: Path) -> None:
    """As on a full disk."""

    def refuse(what: str) -> None:
        with sqlite3.connect(path) as other:
            other.execute(what)
        other.close()

    refuse("create trigger full before insert on answers begin select raise(abort, 'the disk is full'); end")
    with pytest.raises(StoreError):
        keep(answers, 1)

    async def several() -> list[BaseException | None]:
        return await asyncio.gather(*(answers.keep(question(n), "e", Reply("t", "m")) for n in range(5)), return_exceptions=True)

    assert [type(one) for one in asyncio.run(several())] == [StoreError] * 5
    refuse("drop trigger full")
    keep(answers, 2)
    assert answers.count() == 1


def test_half_an_emoji_of_a_model_that_was_cut_off_is_kept_as_a_mark(answers: AnswerCache) -> None:
    async def go() -> None:
        texts = ["before", "half \ud83d", "after"]
        waiting = (answers.keep(question(number), "e", Reply(text, "m")) for number, text in enumerate(texts))
        await asyncio.wait_for(asyncio.gather(*waiting), 10)

    asyncio.run(go())
    assert [answers.get(question(number)) for number in range(3)] == [Reply("before", "m"), Reply("half ?", "m"), Reply("after", "m")]


def test_nobody_waits_for_ever_for_a_row_that_no_file_takes(answers: AnswerCache) -> None:
    with pytest.raises(OverflowError):
        asyncio.run(asyncio.wait_for(answers.keep(question(1), "e", Reply("t", "m", tokens_in=10**30)), 10))
    keep(answers, 9)
    assert answers.get(question(9)) == Reply("text 9", "m", 11, 7)


def test_who_is_cancelled_while_it_is_written_does_no_harm(answers: AnswerCache) -> None:
    async def go() -> None:
        task = asyncio.create_task(answers.keep(question(1), "e", Reply("t", "m")))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        await answers.keep(question(3), "e", Reply("t", "m"))  # whose end comes after that of the other one

    complaints: list[object] = []

    async def watched() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
        await go()

    asyncio.run(watched())
    assert complaints == []
    keep(answers, 2)
    assert answers.get(question(1)) == Reply("t", "m"), "it was paid for"
    assert answers.get(question(2)) is not None


def test_a_cache_that_nobody_closes_does_not_keep_its_process_from_its_end(answers: AnswerCache) -> None:
    """Python waits at its end for every thread that is no daemon."""
    assert answers._thread.is_alive()
    assert answers._thread.daemon


def test_by_default_it_lies_in_the_cache_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_path() == tmp_path / "vip" / "answers.sqlite"
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert default_path() == tmp_path / "me" / ".cache" / "vip" / "answers.sqlite"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_path() == tmp_path / "me" / ".cache" / "vip" / "answers.sqlite"
