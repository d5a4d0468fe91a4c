"""The copy of an index that lies elsewhere."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from vip.errors import StoreError
from vip.search.index import DATABASE, SearchIndex
from vip.search.remote_index import STATE, _forget, is_published, opened_at, publishing

ADDRESS = "memory://index"


def test_nothing_of_an_old_copy_is_left_beside_a_new_one(tmp_path: Path) -> None:
    """What SQLite has not put into its file yet would be read into the new one."""
    for name in (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", STATE, "frames.txt"):
        (tmp_path / name).write_bytes(b"old")
    for name in ("embedder-1-0", "embedder-1-12", "frames"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vectors.f32").write_bytes(b"old")
    _forget(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["frames", "frames.txt"]
    assert (tmp_path / "frames" / "vectors.f32").is_file()


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What lies elsewhere: a disk in memory."""
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    disk = fsspec.filesystem("memory")
    yield disk
    if disk.exists("/index"):
        disk.rm("/index", recursive=True)


def add(index: SearchIndex, address: str) -> None:
    with index.transaction():
        index.connection.execute("INSERT INTO sources (address, part, stamp) VALUES (?, '', 'stamp')", (address,))


@pytest.mark.extra("fsspec")
def test_what_was_added_is_in_the_copy_that_is_published(there: Any, tmp_path: Path) -> None:
    with opened_at(ADDRESS) as index:
        with publishing(index):
            add(index, "a.vip")
        assert is_published(index)
        (tmp_path / "copy.sqlite").write_bytes(there.cat(f"/index/{DATABASE}"))
    with closing(sqlite3.connect(tmp_path / "copy.sqlite")) as copy:
        assert copy.execute("SELECT address FROM sources").fetchall() == [("a.vip",)]


@pytest.mark.extra("fsspec")
def test_what_another_machine_added_meanwhile_is_not_overwritten(there: Any) -> None:
    with opened_at(ADDRESS) as index, publishing(index):
        add(index, "a.vip")
    with opened_at(ADDRESS) as index:
        with pytest.raises(StoreError, match="another machine has added to it in the meantime"), publishing(index):
            there.pipe(f"/index/{DATABASE}", b"of another machine")
        assert not is_published(index)
    assert there.cat(f"/index/{DATABASE}") == b"of another machine"
