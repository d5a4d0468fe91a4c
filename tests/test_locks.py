"""A folder is written to by one process at a time, and nothing of the lock stays behind."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import filelock
import pytest

from vip import locks, store
from vip.errors import StoreError
from vip.locks import in_use

HOLD = """
import sys, time
from pathlib import Path
from vip.locks import in_use
with in_use(Path(sys.argv[1])):
    print("in", flush=True)
    time.sleep(float(sys.argv[2]))
"""


def holder(folder: Path, seconds: float = 60) -> subprocess.Popen[str]:
    """Another process that has the folder to itself."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(folder), str(seconds)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "in\n"
    return process


def test_another_process_is_refused_and_told_which_one_is_at_work(tmp_path: Path) -> None:
    process = holder(tmp_path)
    try:
        with (
            pytest.raises(StoreError, match=rf"is in use by process {process.pid} since \d\d:\d\d\. Wait until it is done"),
            in_use(tmp_path),
        ):
            raise AssertionError
    finally:
        process.kill()
        process.communicate()


def test_a_refused_process_leaves_the_folder_that_the_other_has_just_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "video.vip"
    folder.mkdir()
    process = holder(folder)
    monkeypatch.setattr(store, "is_folder", lambda path: False)  # as it was a moment ago
    try:
        with pytest.raises(StoreError, match="is in use"), store.create_folder(folder):
            raise AssertionError
        assert folder.is_dir()
    finally:
        process.kill()
        process.communicate()


def test_a_folder_that_is_taken_away_while_it_is_waited_for_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "video.vip"
    make = store.make_folder
    monkeypatch.setattr(store, "make_folder", lambda path: (make(path), path.rmdir()))
    with store.create_folder(folder):
        assert folder.is_dir()


def test_a_process_that_is_about_to_end_is_waited_for(tmp_path: Path) -> None:
    process = holder(tmp_path, 0.2)
    with in_use(tmp_path):
        process.communicate(timeout=10)
        assert process.returncode == 0, "it was not disturbed"
    assert list(tmp_path.iterdir()) == []


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    process = holder(tmp_path)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert (tmp_path / locks.NAME).exists()
    with in_use(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_what_is_held_may_be_held_again_and_is_free_at_the_end_of_the_first(tmp_path: Path) -> None:
    with in_use(tmp_path):
        with in_use(tmp_path / ".." / tmp_path.name):
            pass
        assert (tmp_path / locks.NAME).exists()
    assert list(tmp_path.iterdir()) == []


def test_what_is_held_twice_in_a_row_within_is_still_held(tmp_path: Path) -> None:
    with in_use(tmp_path):
        for _ in range(2):
            with in_use(tmp_path) as is_new:
                assert not is_new


@pytest.mark.parametrize("with_its_folder", [False, True])
def test_a_lock_that_somebody_deleted_is_let_go_all_the_same(with_its_folder: bool, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    with in_use(folder):
        (folder / locks.NAME).unlink()
        if with_its_folder:
            folder.rmdir()
    folder.mkdir(exist_ok=True)
    with in_use(folder) as is_new:
        assert is_new


def test_a_link_to_what_is_held_is_held_too(tmp_path: Path) -> None:
    folder, link = tmp_path / "video.vip", tmp_path / "latest"
    folder.mkdir()
    link.symlink_to(folder)
    with in_use(folder), in_use(link) as is_new:
        assert not is_new


def test_it_is_told_who_had_the_folder_before_and_after_that_it_is_to_be_had_again(tmp_path: Path) -> None:
    for _ in range(2):
        with in_use(tmp_path) as is_new, in_use(tmp_path) as is_new_within:
            assert (is_new, is_new_within) == (True, False)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_a_folder_that_cannot_be_written_to_may_be_read(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(number, monkeypatch)
    with in_use(tmp_path) as is_new:
        assert not is_new


def test_a_disk_that_takes_no_lock_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(errno.ENOSPC, monkeypatch)
    with pytest.raises(StoreError, match=r"in-use\.vip-part cannot be used: No space left on device"), in_use(tmp_path):
        raise AssertionError


def refuse(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def acquire(lock: filelock.FileLock) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(filelock.FileLock, "acquire", acquire)


def test_a_fork_has_what_its_parent_has(tmp_path: Path) -> None:
    with in_use(tmp_path):
        if (child := os.fork()) == 0:
            try:
                with in_use(tmp_path):
                    os._exit(0)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_lock_counts_as_nothing_in_the_folder_and_outlives_a_clearing(tmp_path: Path) -> None:
    with in_use(tmp_path):
        assert store.is_empty(tmp_path)
        store.clear(tmp_path)
        assert (tmp_path / locks.NAME).exists()


def test_a_link_in_the_place_of_the_lock_leads_nowhere(tmp_path: Path) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / locks.NAME).symlink_to(mine)
    with pytest.raises(StoreError, match="cannot be used"), in_use(folder):
        raise AssertionError
    assert mine.read_text() == "mine"


def test_a_file_of_strangers_says_nothing_but_a_number(tmp_path: Path) -> None:
    process = holder(tmp_path)
    try:
        (tmp_path / locks.NAME).write_text("\x1b[31m" + "9" * 1000)
        with pytest.raises(StoreError, match=r"is in use by another process\."), in_use(tmp_path):
            raise AssertionError
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("note", "told"),
    [
        ("12 14:05\n", "process 12 since 14:05"),
        ("12 \n", "process 12"),
        ("12 14:05:59\n", "process 12"),
        ("12 1405\n", "process 12"),
        ("12 14050\n", "process 12"),
        ("12 \x1b[31m\n", "process 12"),
        ("12 " + "9" * 1000, "process 12"),
        ("x14 14:05\n", "another process"),
        ("", "another process"),
    ],
)
def test_of_the_note_of_a_holder_a_number_and_a_time_are_told(note: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / locks.NAME
    assert locks._describe_holder(path) == "another process"
    path.write_text(note)
    assert locks._describe_holder(path) == told


def test_many_that_come_and_go_are_never_two_at_once(tmp_path: Path) -> None:
    program = """
import sys, time
from pathlib import Path
from vip.locks import in_use
folder = Path(sys.argv[1])
for _ in range(30):
    try:
        with in_use(folder):
            (folder / "alone").mkdir()
            (folder / "alone").rmdir()
    except FileExistsError:
        sys.exit("two at once")
    except Exception as exc:
        if "in use" not in str(exc):
            raise
"""
    started = time.monotonic()
    crowd = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stderr=subprocess.PIPE, text=True) for _ in range(4)]
    assert [(process.communicate()[1], process.returncode) for process in crowd] == [("", 0)] * 4
    assert time.monotonic() - started < 60


HOLD_FILE = """
import sys, time
from vip.locks import lock_file
with open(sys.argv[1], "rb+") as file:
    print(lock_file(file, shared=sys.argv[2] == "shared"), flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize(("theirs", "shared", "exclusive"), [("shared", True, False), ("exclusive", False, False), (None, True, True)])
def test_who_asks_for_a_lock_is_answered_at_once(theirs: str | None, shared: bool, exclusive: bool, tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    process = theirs and subprocess.Popen([sys.executable, "-c", HOLD_FILE, path, theirs], stdout=subprocess.PIPE, text=True)
    try:
        if process:
            assert process.stdout is not None
            assert process.stdout.readline() == "True\n"
        for options, free in (({"shared": True}, shared), ({}, exclusive)):
            with path.open("rb+") as file:
                assert locks.lock_file(file, **options) is free
    finally:
        if process:
            process.kill()
            process.communicate()


def test_who_waits_for_a_lock_has_it_once_it_is_free(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    with path.open("rb+") as theirs, path.open("rb+") as mine:
        assert locks.lock_file(theirs)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(locks.lock_file, mine, wait=True)
            with pytest.raises(TimeoutError):
                waiting.result(0.05)
            theirs.close()
            assert waiting.result(10) is True
