"""Files below a folder of a stranger: links, FIFOs, devices and paths that lead out are refused at once, on any system."""

from __future__ import annotations

import errno
import os
import sqlite3
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest

from vip import files

Act = Callable[[Path], object]


def replaced(path: Path) -> None:
    with files.replacing(path) as file:
        file.write(b"new")


def appended(path: Path) -> None:
    with files.open_to_append(path) as file:
        file.write(b"new")


READING: list[Act] = [files.read_bytes, files.open_file, appended]
NAMES = ["read", "open", "append"]


@pytest.fixture(params=[True, False], ids=["open folders", "whole paths"])
def places(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """On a system that opens files in open folders, and on one that does not (Windows)."""
    monkeypatch.setattr(files, "HAS_DIR_FD", request.param)
    return bool(request.param)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    path = tmp_path / "outside"
    path.mkdir()
    (path / "secret").write_bytes(b"secret")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "folder"
    path.mkdir()
    return path


@pytest.mark.usefixtures("places")
@pytest.mark.parametrize("act", READING, ids=NAMES)
def test_a_link_is_not_followed(act: Act, folder: Path, outside: Path) -> None:
    (folder / "file").symlink_to(outside / "secret")
    with pytest.raises(OSError, match="it is a link") as refused:
        act(folder / "file")
    assert refused.value.errno == errno.ELOOP
    assert (outside / "secret").read_bytes() == b"secret"


@pytest.mark.usefixtures("places")
@pytest.mark.parametrize("act", [*READING, replaced], ids=[*NAMES, "replace"])
def test_a_link_that_leads_nowhere_makes_no_file_there(act: Act, folder: Path, outside: Path) -> None:
    (folder / "file").symlink_to(outside / "new")
    if act is replaced:
        act(folder / "file")
        assert (folder / "file").read_bytes() == b"new"
        assert not (folder / "file").is_symlink()
    else:
        with pytest.raises(OSError, match="it is a link"):
            act(folder / "file")
    assert [path.name for path in outside.iterdir()] == ["secret"]


@pytest.mark.usefixtures("places")
def test_a_file_takes_the_place_of_a_link_and_not_of_what_it_leads_to(folder: Path, outside: Path) -> None:
    (folder / "file").symlink_to(outside / "secret")
    replaced(folder / "file")
    assert ((folder / "file").read_bytes(), (outside / "secret").read_bytes()) == (b"new", b"secret")


@pytest.mark.usefixtures("places")
@pytest.mark.parametrize("depth", [1, 2])
def test_a_link_in_the_middle_of_a_path_is_refused(depth: int, folder: Path, outside: Path) -> None:
    (outside / "deep").mkdir()
    (outside / "deep" / "secret").write_bytes(b"secret")
    (folder / "pictures").symlink_to(outside)
    path = folder.joinpath("pictures", *["deep"] * (depth - 1), "secret")
    for act in (
        lambda: files.read_bytes(path, inside=folder),
        lambda: files.open_to_append(path, inside=folder),
        lambda: files.remove(path, inside=folder),
        lambda: files.make_folder(path.with_name("made"), inside=folder),
        lambda: files.replacing(path, inside=folder).__enter__(),
    ):
        with pytest.raises(OSError, match="link"):
            act()
    assert files.names_in(path.parent, inside=folder) == []
    assert {found.name for found in outside.rglob("*")} == {"secret", "deep"}


@pytest.mark.usefixtures("places")
def test_a_folder_that_is_a_link_is_not_made_or_emptied(folder: Path, outside: Path) -> None:
    (folder / "pictures").symlink_to(outside)
    with pytest.raises(OSError, match="link"):
        files.make_folder(folder / "pictures", inside=folder)
    files.remove_folder(folder / "pictures")
    assert not (folder / "pictures").is_symlink()
    assert (outside / "secret").exists()


@pytest.mark.usefixtures("places")
def test_the_folder_that_is_named_may_be_a_link(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "short").symlink_to(folder)
    replaced(tmp_path / "short" / "file")
    assert files.read_bytes(tmp_path / "short" / "file") == b"new"
    files.make_folder(tmp_path / "short" / "pictures", inside=tmp_path / "short")
    assert (folder / "pictures").is_dir()


@pytest.mark.parametrize("act", READING, ids=NAMES)
def test_a_fifo_does_not_wait(act: Act, folder: Path) -> None:
    os.mkfifo(folder / "file")
    with pytest.raises(OSError, match="no regular file"):
        act(folder / "file")


def test_a_named_fifo_or_device_does_not_wait_either(folder: Path) -> None:
    os.mkfifo(folder / "file")
    for path in (folder / "file", Path("/dev/zero")):
        with pytest.raises(OSError, match="no regular file"):
            files.read_named(path, most_bytes=100)
    (folder / "real").write_bytes(b"x")
    (folder / "link").symlink_to("real")
    assert files.read_named(folder / "link", most_bytes=100) == b"x"


@pytest.mark.usefixtures("places")
def test_a_device_or_a_folder_is_refused(folder: Path) -> None:
    with pytest.raises(OSError, match="no regular file"):
        files.open_file(Path("/dev/zero"))
    (folder / "inside").mkdir()
    with pytest.raises(IsADirectoryError):
        files.open_file(folder / "inside")


@pytest.mark.parametrize("name", ["../outside/secret", "pictures/../../outside/secret", ".."])
def test_a_path_that_leads_out_is_refused(name: str, folder: Path, outside: Path) -> None:
    with pytest.raises(ValueError, match="does not lie inside"):
        files.read_bytes(folder / name, inside=folder)
    assert (outside / "secret").exists()


def test_an_absolute_path_elsewhere_is_refused(folder: Path, outside: Path) -> None:
    with pytest.raises(ValueError, match="secret"):
        files.read_bytes(outside / "secret", inside=folder)


def test_a_file_that_is_too_large_is_not_read(folder: Path) -> None:
    with (folder / "file").open("wb") as file:
        file.truncate(2**40)  # of zeros, on no disk
    with pytest.raises(OSError, match=r"larger than 100 bytes"):
        files.read_bytes(folder / "file", most_bytes=100)


def test_a_file_of_just_so_many_bytes_is_read(folder: Path) -> None:
    (folder / "file").write_bytes(b"12345")
    for read in (files.read_bytes, files.read_named):
        assert read(folder / "file", most_bytes=5) == b"12345"
        with pytest.raises(OSError, match=r"larger than 4 bytes"):
            read(folder / "file", most_bytes=4)


@pytest.mark.parametrize("read", [files.read_bytes, files.read_named])
def test_reading_takes_memory_for_the_file_and_not_for_the_most_there_may_be(folder: Path, read: Callable[..., bytes]) -> None:
    (folder / "file").write_bytes(b"12345")
    tracemalloc.start()
    try:
        assert read(folder / "file", most_bytes=2**28) == b"12345"
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_a_file_that_grows_while_it_is_read_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "file").write_bytes(b"12345")
    opened = files.open_file

    def opened_and_grown(path: Path, **more: Any) -> IO[bytes]:
        file = opened(path, **more)
        path.write_bytes(b"123456")
        return file

    monkeypatch.setattr(files, "open_file", opened_and_grown)
    with pytest.raises(OSError, match=r"larger than 5 bytes"):
        files.read_bytes(folder / "file", most_bytes=5)


@pytest.mark.usefixtures("places")
def test_a_file_may_have_the_longest_name_there_is(folder: Path) -> None:
    replaced(folder / ("a" * 255))
    assert (folder / ("a" * 255)).read_bytes() == b"new"


@pytest.mark.usefixtures("places")
def test_a_folder_may_be_there_already_and_a_file_gone(folder: Path) -> None:
    for _ in range(2):
        files.make_folder(folder / "pictures", inside=folder)
        files.make_folder(folder / "deep" / "deeper")
    (folder / "pictures" / "b").write_bytes(b"")
    (folder / "pictures" / "a").symlink_to("b")
    assert files.names_in(folder / "pictures", inside=folder) == ["a", "b"]
    for _ in range(2):
        files.remove(folder / "pictures" / "a", inside=folder)
    assert files.names_in(folder / "pictures", inside=folder) == ["b"]
    files.remove_folder(folder / "pictures")
    assert files.names_in(folder / "pictures", inside=folder) == []
    assert files.names_in(folder) == ["deep"]


def test_an_appended_file_is_read_and_written_from_its_begin(folder: Path) -> None:
    (folder / "file").write_bytes(b"old rows")
    with files.open_to_append(folder / "file") as file:
        assert file.read() == b"old rows"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files as Linux tells them")
def test_nothing_stays_open(folder: Path, outside: Path) -> None:
    """In a run of days, that ends with `Too many open files`."""
    (folder / "deep" / "deeper").mkdir(parents=True)
    (folder / "deep" / "deeper" / "file").write_bytes(b"12345")
    (folder / "link").symlink_to(outside)
    os.link(outside / "secret", folder / "second")
    os.mkfifo(folder / "fifo")
    path = folder / "deep" / "deeper" / "file"
    before = sorted(path.name for path in Path("/proc/self/fd").iterdir())
    for act in (
        lambda: files.read_bytes(path, inside=folder),
        lambda: files.read_bytes(path, inside=folder, most_bytes=1),
        lambda: files.read_bytes(folder / "link" / "secret", inside=folder),
        lambda: files.read_bytes(folder / "deep"),
        lambda: files.read_named(folder / "fifo", most_bytes=1),
        lambda: appended(path),
        lambda: appended(folder / "second"),
        lambda: replaced(path),
        lambda: files.make_folder(folder / "deep" / "new", inside=folder),
        lambda: files.names_in(folder / "deep" / "deeper", inside=folder),
        lambda: files.remove(path, inside=folder),
    ):
        with suppress(OSError):
            act()
    assert sorted(path.name for path in Path("/proc/self/fd").iterdir()) == before


@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("kind", ["link", "second name", "fifo"])
def test_a_database_that_would_be_written_elsewhere_is_refused(kind: str, end: str, folder: Path, outside: Path) -> None:
    files.check_database(folder / "state.sqlite")  # to be made
    (folder / "state.sqlite").write_bytes(b"")
    files.check_database(folder / "state.sqlite")
    place = folder / f"state.sqlite{end}"
    place.unlink(missing_ok=True)
    if kind == "link":
        place.symlink_to(outside / "secret")
    elif kind == "fifo":
        os.mkfifo(place)
    else:
        os.link(outside / "secret", place)
    with pytest.raises(OSError, match=r"it is a link|hard link|no regular file"):
        files.check_database(folder / "state.sqlite")


def journal_that_names(path: Path, database: Path) -> bytes:
    """A journal as SQLite leaves it of a transaction over several databases: at its end it names a file that lists the others."""
    page = int.from_bytes(database.read_bytes()[16:18], "big")
    header = struct.pack(">8s5I", files.JOURNAL_MARK, 0, 0, database.stat().st_size // page, 512, page).ljust(512, b"\0")
    name = bytes(path)
    return header + struct.pack(">I", 2**30 // page + 1) + name + struct.pack(">2I8s", len(name), sum(name), files.JOURNAL_MARK)


def test_a_journal_that_makes_sqlite_delete_another_file_is_refused(folder: Path, outside: Path) -> None:
    path, journal = folder / "state.sqlite", folder / "state.sqlite-journal"
    with closing(sqlite3.connect(path)) as database:
        database.execute("create table t (a)")
    journal.write_bytes(journal_that_names(outside / "secret", path))
    with pytest.raises(OSError, match="names another file"):
        files.check_database(path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("select * from t").fetchall()
    assert not (outside / "secret").exists(), "SQLite deletes nothing any more: the check can go"
    journal.write_bytes(b"")
    files.check_database(path)


@pytest.mark.skipif(sys.platform == "win32", reason="locks of POSIX")
def test_checking_a_database_keeps_the_locks_that_this_process_holds_on_it(folder: Path) -> None:
    """Closing any descriptor of a file would end them."""
    import fcntl

    path = folder / "state.sqlite"
    with path.open("wb") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        files.check_database(path)
        attempt = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'ab'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        done = subprocess.run([sys.executable, "-c", attempt, str(path)], capture_output=True, text=True, check=False)
    assert "BlockingIOError" in done.stderr


def test_a_file_with_a_second_name_is_not_written_into(folder: Path, outside: Path) -> None:
    os.link(outside / "secret", folder / "file")
    with pytest.raises(OSError, match="hard link"):
        appended(folder / "file")
    replaced(folder / "file")
    assert (outside / "secret").read_bytes() == b"secret"


@pytest.mark.usefixtures("places")
def test_what_fails_leaves_the_file_and_nothing_beside_it(folder: Path) -> None:
    (folder / "file").write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), files.replacing(folder / "file") as file:
        file.write(b"half" * (1 // 0))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"file": b"old"}


def test_a_durable_file_is_on_the_disk_before_it_has_its_name_and_its_name_after(folder: Path, disk_steps: list[str]) -> None:
    with files.replacing(folder / "file", durable=True) as file:
        file.write(b"123")
    assert disk_steps == ["3 bytes", "name", "folder"]


def test_a_zip_file_that_unpacks_to_more_than_it_has_is_refused(folder: Path) -> None:
    for name, kind in (("stored", zipfile.ZIP_STORED), ("packed", zipfile.ZIP_DEFLATED)):
        with zipfile.ZipFile(folder / name, "w", kind) as archive:
            archive.writestr("a", bytes(10_000))
    with files.open_zip(folder / "stored") as archive:
        assert archive.read("a") == bytes(10_000)
    with pytest.raises(zipfile.BadZipFile), files.open_zip(folder / "packed"):
        pass


def test_a_zip_file_whose_members_share_their_bytes_is_refused(folder: Path) -> None:
    """Reading them all would take as much time and memory as the author wants."""
    with zipfile.ZipFile(folder / "file", "w") as archive:
        archive.writestr("a", bytes(1000))
    data = (folder / "file").read_bytes()
    start = data.index(b"PK\x01\x02")
    end = data.index(b"PK\x05\x06")
    entry = data[start:end]
    counts = struct.pack("<4H2I", 0, 0, 9, 9, 9 * len(entry), start)
    (folder / "file").write_bytes(data[:start] + 9 * entry + data[end : end + 4] + counts + b"\0\0")
    with pytest.raises(zipfile.BadZipFile, match="not stored as it is"), files.open_zip(folder / "file"):
        pass


@pytest.mark.parametrize(
    ("at", "says"), [(8, b"\x01\x00"), (20, b"\x01\x00\x00\x00"), (24, b"\x01\x00\x00\x00"), (20, b"\x00\x00\x01\x00" * 2)]
)
def test_a_zip_file_that_is_encrypted_or_lies_about_its_size_is_refused(at: int, says: bytes, folder: Path) -> None:
    with zipfile.ZipFile(folder / "file", "w") as archive:
        archive.writestr("a", bytes(100))
    data = bytearray((folder / "file").read_bytes())
    at += data.rindex(b"PK\x01\x02")  # flags and sizes of its entry in the list at the end
    data[at : at + len(says)] = says
    (folder / "file").write_bytes(data)
    with pytest.raises(zipfile.BadZipFile, match="not stored as it is"), files.open_zip(folder / "file"):
        pass


@pytest.mark.parametrize(("entry", "at", "says"), [(b"PK\x01\x02", 6, b"\xcc"), (b"PK\x01\x02", 8, b"\x20"), (b"PK\x01\x02", 8, b"\x60")])
def test_a_zip_file_that_needs_what_python_lacks_is_refused(entry: bytes, at: int, says: bytes, folder: Path) -> None:
    """A later version of the format, a patch, another encryption."""
    with zipfile.ZipFile(folder / "file", "w") as archive:
        archive.writestr("a", bytes(100))
    data = bytearray((folder / "file").read_bytes())
    at += data.index(entry)
    data[at : at + len(says)] = says
    (folder / "file").write_bytes(data)
    with pytest.raises(zipfile.BadZipFile), files.open_zip(folder / "file") as opened:
        opened.read("a")


@pytest.mark.parametrize(
    ("at", "says"), [(46, b"\xff"), (42, b"\xff\xff\xff\x7f")], ids=["a name that is no UTF-8", "a place behind the end"]
)
def test_a_zip_file_whose_list_of_members_is_damaged_is_refused(at: int, says: bytes, folder: Path) -> None:
    with zipfile.ZipFile(folder / "file", "w") as archive:
        archive.writestr("ü", bytes(100))
    data = bytearray((folder / "file").read_bytes())
    at += data.rindex(b"PK\x01\x02")
    data[at : at + len(says)] = says
    (folder / "file").write_bytes(data)
    with pytest.raises(zipfile.BadZipFile), files.open_zip(folder / "file"):
        pass


def test_links_that_lead_out_of_a_folder_are_told(folder: Path, outside: Path) -> None:
    (folder / "file").write_bytes(b"x")
    links = {"in": "file", "nothing": "gone", "out": "../outside/secret", "round": "round", "nothing outside": "../outside/gone"}
    for name, target in links.items():
        (folder / name).symlink_to(target)
    assert {name: files.leads_out(folder / name, folder) for name in ("file", *links)} == {
        **{"file": False, "in": False, "nothing": False},
        **{"out": True, "round": True, "nothing outside": True},
    }
    assert not outside.is_symlink()


def test_a_path_lies_in_a_folder_only_where_no_link_is_on_the_way(folder: Path, outside: Path) -> None:
    (folder / "link").symlink_to(outside)
    (outside.parent / "name").symlink_to(folder)
    inside = (folder, folder / "a", folder / "deep" / "a")
    assert all(files.lies_in(path, folder) for path in inside)
    assert all(files.lies_in(path, outside.parent / "name") for path in (*inside, outside.parent / "name" / "a"))
    for path in (outside, outside / "secret", folder.parent, folder / "link", folder / "link" / "secret", folder / ".." / "outside"):
        assert not files.lies_in(path, folder), path


def test_a_folder_for_a_library_holds_files_alone(folder: Path, outside: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "file").write_bytes(b"12345")
    files.check_tree(folder, most_bytes=5)
    with pytest.raises(OSError, match="larger than 4 bytes"):
        files.check_tree(folder, most_bytes=4)
    (folder / "deep" / "link").symlink_to(outside / "secret")
    files.check_tree(folder, links=True)
    with pytest.raises(OSError, match="link: it is a link"):
        files.check_tree(folder)
    (folder / "deep" / "link").unlink()
    (folder / "deep" / "link").symlink_to(outside)
    with pytest.raises(OSError, match="link: it is a link"):
        files.check_tree(folder)
    (folder / "deep" / "link").unlink()
    os.mkfifo(folder / "deep" / "pipe")
    for links in (True, False):
        with pytest.raises(OSError, match="pipe: it is no regular file"):
            files.check_tree(folder, links=links)
    (outside / "top").symlink_to(folder)
    with pytest.raises(OSError, match="it is a link"):
        files.check_tree(outside / "top")


@pytest.mark.parametrize(("most_bytes", "is_read"), [(9, True), (8, False)])
def test_a_file_that_grows_while_it_is_read_is_read_to_its_end_or_refused(
    most_bytes: int, is_read: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log").write_bytes(b"123456789")
    with files.open_file(tmp_path / "log") as file:
        monkeypatch.setattr("vip.files.os.fstat", lambda number: SimpleNamespace(st_size=3))
        if is_read:
            assert files._read_whole(file, most_bytes) == b"123456789"
        else:
            with pytest.raises(OSError, match="larger than 8 bytes"):
                files._read_whole(file, most_bytes)
