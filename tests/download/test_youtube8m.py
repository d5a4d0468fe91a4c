from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.download.conftest import Fetch
from tests.video_host import VideoHost
from vip.download import youtube8m
from vip.errors import ItemError

Refused = Callable[..., ItemError]
BASE = "http://lookup.invalid/i"


def answering(text: str | None) -> tuple[Callable[[str], str | None], list[str]]:
    asked: list[str] = []

    def read(address: str) -> str | None:
        asked.append(address)
        return text

    return read, asked


def test_an_answer_is_asked_for_once() -> None:
    read, asked = answering('i("nXSc","dQw4w9WgXcQ");')
    assert [youtube8m.look_up("nXSc", BASE, read) for _ in range(3)] == ["dQw4w9WgXcQ"] * 3
    assert asked == [f"{BASE}/nX/nXSc.js"]


def test_a_slash_behind_the_address_of_a_server_makes_it_no_other() -> None:
    read, asked = answering('i("nXSc","dQw4w9WgXcQ");')
    assert [youtube8m.look_up("nXSc", f"{BASE}{slashes}", read) for slashes in ("/", "", "//")] == ["dQw4w9WgXcQ"] * 3
    assert asked == [f"{BASE}/nX/nXSc.js"]


def test_two_servers_do_not_answer_for_each_other() -> None:
    first, second = answering('i("nXSc","dQw4w9WgXcQ");')[0], answering('i("nXSc","aaaaaaaaaaa");')[0]
    assert youtube8m.look_up("nXSc", BASE, first) != youtube8m.look_up("nXSc", "http://other.invalid/i", second)


def test_that_there_is_none_is_remembered_for_a_month(monkeypatch: pytest.MonkeyPatch) -> None:
    read, asked = answering(None)
    for _ in range(2):
        with pytest.raises(ItemError) as caught:
            youtube8m.look_up("nXSc", BASE, read)
        assert caught.value.kind == "missing"
    assert len(asked) == 1
    monkeypatch.setattr(youtube8m, "NONE_FOR_S", -1.0)
    assert youtube8m.look_up("nXSc", BASE, answering('i("nXSc","dQw4w9WgXcQ");')[0]) == "dQw4w9WgXcQ"


@pytest.mark.parametrize(("days", "requests"), [(29, 1), (31, 2), (-1, 2)])
def test_only_that_there_is_none_is_asked_again_and_that_after_a_month(days: int, requests: int, monkeypatch: pytest.MonkeyPatch) -> None:
    now = youtube8m.time.time()
    (none, asked), (some, others) = answering(None), answering('i("XE00","dQw4w9WgXcQ");')
    for at in (now, now + days * 86400):
        monkeypatch.setattr("time.time", lambda at=at: at)
        with pytest.raises(ItemError):
            youtube8m.look_up("nXSc", BASE, none)
        assert youtube8m.look_up("XE00", BASE, some) == "dQw4w9WgXcQ"
    assert (len(asked), len(others)) == (requests, 1)


@pytest.mark.parametrize(
    "answer", ["", "<html>", 'i("ABCD","dQw4w9WgXcQ");', 'i("nXSc","../../../../x");', 'i("nXSc","dQw4w9WgXcQ"); evil()']
)
def test_an_answer_that_names_no_video_is_not_kept(answer: str) -> None:
    read, asked = answering(answer)
    for _ in range(2):
        with pytest.raises(ItemError) as caught:
            youtube8m.look_up("nXSc", BASE, read)
        assert caught.value.kind == "other"
    assert len(asked) == 2


@pytest.mark.parametrize("short", ["", "abc", "abcde", "../x", "ab/c", "abc\n", "äöüß"])
def test_what_is_no_id_is_not_asked_for(short: str) -> None:
    read, asked = answering(None)
    with pytest.raises(ItemError) as caught:
        youtube8m.look_up(short, BASE, read)
    assert caught.value.kind == "bad_row"
    assert not asked


@pytest.mark.slow
@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_server_that_knows_no_such_id(host: VideoHost, refused: Refused, status: int) -> None:
    host.put("/2/j/i/AB/ABCD.js", "<Error><Code>AccessDenied</Code></Error>", status=status)
    assert refused("ABCD", "youtube8m").kind == "missing"


@pytest.mark.slow
@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limit"), (500, "network")])
def test_a_server_that_fails_may_know_later(host: VideoHost, refused: Refused, fetched: Fetch, mp4: bytes, status: int, kind: str) -> None:
    host.put("/2/j/i/AB/ABCD.js", "", status=status)
    assert refused("ABCD", "youtube8m").kind == kind
    host.put("/2/j/i/AB/ABCD.js", 'i("ABCD","dQw4w9WgXcQ");')
    host.put("/watch?v=dQw4w9WgXcQ", mp4, "video/mp4")
    assert fetched("ABCD", "youtube8m").youtube_id == "dQw4w9WgXcQ"


def test_a_cache_that_fails_when_it_is_opened_is_closed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []

    class Locked:
        def execute(self, *_: object) -> None:
            raise sqlite3.OperationalError("database is locked")

        def close(self) -> None:
            closed.append(True)

    monkeypatch.setattr(youtube8m.databases, "connect", lambda *_, **__: Locked())
    assert youtube8m.look_up("nXSc", BASE, answering('i("nXSc","dQw4w9WgXcQ");')[0]) == "dQw4w9WgXcQ"
    assert closed == [True, True], "for the question and for the answer"


def test_a_cache_that_cannot_be_used_costs_a_request_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "vip" / "youtube8m.sqlite"
    broken.parent.mkdir()
    broken.write_bytes(b"no database" * 1000)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert youtube8m.look_up("nXSc", BASE, answering('i("nXSc","dQw4w9WgXcQ");')[0]) == "dQw4w9WgXcQ"
    monkeypatch.setenv("XDG_CACHE_HOME", str(broken))
    assert youtube8m.look_up("nXSc", BASE, answering('i("nXSc","dQw4w9WgXcQ");')[0]) == "dQw4w9WgXcQ"


@pytest.mark.parametrize("kind", ["link", "hard link", "link for the journal"])
def test_a_cache_that_leads_elsewhere_is_neither_read_nor_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    youtube8m.look_up("XE00", BASE, answering('i("XE00","aaaaaaaaaaa");')[0])
    elsewhere, path = youtube8m.default_path(), tmp_path / "vip" / "youtube8m.sqlite"
    before = elsewhere.read_bytes()
    path.parent.mkdir()
    if kind == "link":
        path.symlink_to(elsewhere)
    elif kind == "hard link":
        path.hardlink_to(elsewhere)
    else:
        path.with_name(f"{path.name}-journal").symlink_to(elsewhere)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for short in ("nXSc", "XE00"):
        read, asked = answering(f'i("{short}","dQw4w9WgXcQ");')
        assert [youtube8m.look_up(short, BASE, read) for _ in range(2)] == ["dQw4w9WgXcQ"] * 2
        assert len(asked) == 2
    assert elsewhere.read_bytes() == before
    assert kind != "link for the journal" or not path.exists()


ASK_FOR_MANY = f"""
from vip.download.youtube8m import look_up
for number in range(50):
    assert look_up(f"{{number:04d}}", "{BASE}", lambda address: 'i("%s","dQw4w9WgXcQ");' % address[-7:-3]) == "dQw4w9WgXcQ"
"""


@pytest.mark.slow
def test_many_processes_share_the_answers(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    running = [subprocess.Popen([sys.executable, "-c", ASK_FOR_MANY], env=environment) for _ in range(4)]
    assert [one.wait() for one in running] == [0] * 4
    with closing(sqlite3.connect(tmp_path / "vip" / "youtube8m.sqlite")) as connection:
        assert connection.execute("select count(*) from ids").fetchone() == (50,)
