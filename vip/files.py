"""Safe access to files below a folder that may come from a stranger.

The folder itself is named by a command, and may be a link. Below it no link is followed, only regular files are opened (reading a FIFO
or a device would never end), and no file is larger than its limit. A new file has a name that nobody can guess until it is whole.
All functions raise OSError with a `strerror` that a sentence can end with.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

try:
    from lzma import LZMAError
except ImportError:  # a Python that was built without it, which refuses such archives by a RuntimeError
    LZMAError = zlib.error  # type: ignore[assignment,misc]

PARTIAL_SUFFIX = ".vip-part"
MOST_OF_NAME = 40  # letters of its final name in the name of a temporary file, which has at most 255 bytes
MOST_BYTES = 4 * 2**30  # of a file without a limit of its own
HAS_DIR_FD = {os.open, os.rename, os.unlink, os.mkdir, os.stat} <= os.supports_dir_fd  # not on Windows, see `_without_links`

_NO_LINK, _NO_WAIT, _FOLDER = (getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY"))
_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
LINK = "it is a link, or lies behind one, and vip follows none inside a folder"
NO_FILE = "it is no regular file"
SECOND_NAME = "it has a second name elsewhere (a hard link)"
ZIP_DAMAGE = (
    *(OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error, LZMAError),
    *(ValueError, OverflowError, MemoryError, struct.error),  # names that are no UTF-8, places and sizes that no file has
)
"""What Python raises for an archive that is damaged, encrypted, or packed in a way that it does not know."""
ZIP_ENCRYPTED_OR_PATCHED = 0x61  # bits of a member's flags
BESIDE_DATABASE = ("-wal", "-shm", "-journal")
JOURNAL_MARK = bytes.fromhex("d9d505f920a163d7")
"""At the end of a journal that names another file, which SQLite deletes when it has rolled the journal back."""
NAMES_A_FILE = "its journal names another file"


def open_file(path: Path, *, inside: Path | None = None, most_bytes: int = MOST_BYTES) -> IO[bytes]:
    """Open a file to read.

    Args:
        inside: the folder that the command names; by default the one the file lies in.

    Raises:
        OSError: it is missing, a link, no regular file, or larger than `most_bytes`.
    """
    with _open_parent(path, inside) as (folder, name):
        return _check_regular(_open(name, os.O_RDONLY, folder), "rb", most_bytes)


def read_bytes(path: Path, *, inside: Path | None = None, most_bytes: int = MOST_BYTES) -> bytes:
    """Return the bytes of a file; errors as of `open_file`."""
    with open_file(path, inside=inside, most_bytes=most_bytes) as file:
        return _read_whole(file, most_bytes)


def open_named(path: Path, *, most_bytes: int = MOST_BYTES) -> IO[bytes]:
    """Open a file that the user named, which may be a link; a FIFO or a device is refused."""
    return _check_regular(os.open(path, os.O_RDONLY | _NO_WAIT | _BINARY), "rb", most_bytes)


def read_named(path: Path, *, most_bytes: int) -> bytes:
    """Return the bytes of a file that the user named; errors as of `open_named`."""
    with open_named(path, most_bytes=most_bytes) as file:
        return _read_whole(file, most_bytes)


def _read_whole(file: IO[bytes], most_bytes: int) -> bytes:
    size = os.fstat(file.fileno()).st_size
    data = file.read(size + 1)  # not the most: Python takes memory for as many bytes as it is asked for
    if len(data) > size:  # it has grown
        data += file.read(most_bytes + 1 - len(data))
    if len(data) > most_bytes:
        raise _too_large(most_bytes)
    return data


def open_to_append(path: Path, *, inside: Path | None = None) -> IO[bytes]:
    """Open a file to read and to write, and create it where it is missing.

    Raises:
        OSError: it is a link, no regular file, or has a hard link elsewhere.
    """
    with _open_parent(path, inside) as (folder, name):
        number = _open(name, os.O_RDWR | os.O_CREAT, folder)
        if os.fstat(number).st_nlink > 1:
            os.close(number)
            raise OSError(errno.EMLINK, SECOND_NAME)
        return _check_regular(number, "r+b", MOST_BYTES)


@contextmanager
def open_zip(path: Path, *, inside: Path | None = None, most_bytes: int = MOST_BYTES) -> Iterator[zipfile.ZipFile]:
    """Open an archive without compression, so that reading all its members takes no more memory than the file has bytes.

    Raises:
        OSError: as of `open_file`.
        zipfile.BadZipFile: it is no archive, or a member is compressed, encrypted, states a wrong size or shares bytes with another.
    """
    with open_file(path, inside=inside, most_bytes=most_bytes) as file, _open_stored(file) as archive:
        yield archive


def _open_stored(file: IO[bytes]) -> zipfile.ZipFile:
    """Return an archive whose members lie in the file as they are; errors as of `open_zip`."""
    size_bytes = left_bytes = os.fstat(file.fileno()).st_size
    try:
        archive = zipfile.ZipFile(file)
    except OSError:
        raise
    except ZIP_DAMAGE as exc:
        raise zipfile.BadZipFile(str(exc)) from exc
    for member in archive.infolist():
        left_bytes -= member.file_size  # members that share bytes are more together than the file has
        is_plain = member.compress_type == zipfile.ZIP_STORED and not member.flag_bits & ZIP_ENCRYPTED_OR_PATCHED
        is_inside = member.file_size == member.compress_size and 0 <= member.header_offset < size_bytes
        if not is_plain or not is_inside or left_bytes < 0:
            raise zipfile.BadZipFile("a member is not stored as it is")
    return archive


def check_unpacked(file: IO[bytes], most_bytes: int) -> None:
    """Refuse an archive that holds more than it may: torch packs nothing, and would unpack it whole.

    Raises:
        ValueError: it does.
    """
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            if sum(one.file_size for one in archive.infolist()) > most_bytes:
                raise ValueError(f"more than {most_bytes:,} bytes unpacked")
    file.seek(0)


def check_database(path: Path, *, inside: Path | None = None) -> None:
    """Refuse a SQLite database where opening it would write to a file elsewhere; it may still be missing.

    The database is not opened: closing it would end the locks that this process holds on it for another connection.

    Raises:
        OSError: it, or a file of SQLite beside it, is a link, no regular file, or has a hard link elsewhere; or its journal would make
            SQLite delete another file.
    """
    for each in (path.name, *(f"{path.name}{end}" for end in BESIDE_DATABASE)):
        with suppress(FileNotFoundError), _open_parent(path.with_name(each), inside) as (folder, name):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                raise OSError(errno.ELOOP, LINK)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, NO_FILE)
            if status.st_nlink > 1:
                raise OSError(errno.EMLINK, SECOND_NAME)
    with suppress(FileNotFoundError), open_file(path.with_name(f"{path.name}-journal"), inside=inside) as journal:
        journal.seek(max(0, os.fstat(journal.fileno()).st_size - len(JOURNAL_MARK)))
        if journal.read() == JOURNAL_MARK:
            raise OSError(errno.EINVAL, NAMES_A_FILE)


@contextmanager
def replacing(path: Path, *, inside: Path | None = None, durable: bool = False) -> Iterator[IO[bytes]]:
    """Write a new file beside `path`, and rename it to `path` when it is whole.

    Args:
        durable: wait until it is on the disk under its name, so that it survives a power cut.

    Raises:
        OSError: not writable, or the disk is full; `path` is then as it was.
    """
    with _open_parent(path, inside) as (folder, name):
        part = str(Path(name).with_name(f".{Path(name).name[:MOST_OF_NAME]}.{secrets.token_hex(16)}{PARTIAL_SUFFIX}"))
        number = _open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, folder)
        try:
            with os.fdopen(number, "wb") as file:
                yield file
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            os.replace(part, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(part, dir_fd=folder)
            raise
        if durable:
            _sync(folder)


def make_folder(path: Path, *, inside: Path | None = None) -> None:
    """Create a folder where it is missing, and those above it; below `inside` none of them may be a link."""
    if inside is None:
        path.mkdir(parents=True, exist_ok=True)
        return
    with _open_parent(path, inside) as (folder, name):
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
        if folder is None:
            if not _without_links(path.parent, [path.name]).is_dir():  # Windows opens no folder
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        else:
            os.close(_open(name, os.O_RDONLY | _FOLDER, folder))


def names_in(path: Path, *, inside: Path | None = None) -> list[str]:
    """Return the names in a folder; none where there is no such folder, or a link in its place."""
    try:
        with _open_parent(path / "x", inside or path) as (folder, _):
            return sorted(os.listdir(path if folder is None else folder))  # noqa: PTH208 - of an open folder
    except OSError:
        return []


def remove(path: Path, *, inside: Path | None = None) -> None:
    """Delete a file, if it is there; of a link only the link."""
    with suppress(FileNotFoundError), _open_parent(path, inside) as (folder, name):
        os.unlink(name, dir_fd=folder)


def remove_folder(path: Path) -> None:
    """Delete a folder and what is in it, as far as that is possible; of a link only the link."""
    if path.is_symlink():
        with suppress(OSError):
            path.unlink()
    else:
        shutil.rmtree(path, ignore_errors=True)


def leads_out(path: Path, folder: Path) -> bool:
    """Return whether a path in a folder leads out of it by a link."""
    try:
        path.resolve(strict=True)
    except FileNotFoundError:
        pass  # a broken link: its target decides
    except (OSError, RuntimeError, ValueError):  # links in a circle, no path
        return True
    return not path.resolve().is_relative_to(folder.resolve())


def lies_in(path: Path, folder: Path) -> bool:
    """Return whether a path lies in a folder, or is it, and no link is on the way from the one to the other."""
    top = folder.resolve()
    for start in (folder.absolute(), top):
        with suppress(ValueError, OSError, RuntimeError):  # no path, or links in a circle before Python 3.13
            found = path.resolve()
            is_circle = any(part.is_symlink() for part in (found, *found.parents))
            return not is_circle and found == top / path.absolute().relative_to(start)
    return False


def check_tree(path: Path, *, links: bool = False, most_bytes: int | None = None) -> None:
    """Refuse a folder that a library will read by itself, where something in it would hold it up or lead it elsewhere.

    Args:
        links: whether links to regular files may be there, as in the cache of a hub of models; else the folder itself may be none either.

    Raises:
        OSError: something in it is a link, a FIFO or a device, or too large.
    """
    if not links and path.is_symlink():
        raise OSError(errno.ELOOP, LINK)
    for root, folders, names in os.walk(path):
        for name in (*folders, *names):
            status = Path(root, name).stat(follow_symlinks=links)
            if stat.S_ISLNK(status.st_mode):
                raise OSError(errno.ELOOP, f"{name}: {LINK}")
            if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
                raise OSError(errno.EINVAL, f"{name}: {NO_FILE}")
            if most_bytes is not None and stat.S_ISREG(status.st_mode) and status.st_size > most_bytes:
                raise OSError(errno.EFBIG, f"{name}: {_too_large(most_bytes).strerror}")


# ---------------------------------------------------------------- opening, one folder after another


@contextmanager
def _open_parent(path: Path, inside: Path | None) -> Iterator[tuple[int | None, str]]:
    """Yield the open folder of a file and the name in it; on Windows None and the whole path, checked for links.

    Raises:
        OSError: a link is on the way.
        ValueError: the path does not lie inside.
    """
    top = path.parent if inside is None else inside
    *between, name = path.relative_to(top).parts
    if ".." in (*between, name):
        raise ValueError(f"{path} does not lie inside {top}")
    if not HAS_DIR_FD:
        yield None, str(_without_links(top, between) / name)
        return
    folder = os.open(top, os.O_RDONLY | _FOLDER | _BINARY)
    try:
        for part in between:
            deeper = _open(part, os.O_RDONLY | _FOLDER, folder)
            os.close(folder)
            folder = deeper
        yield folder, name
    finally:
        os.close(folder)


def _without_links(top: Path, parts: list[str]) -> Path:
    """Return the path, after a check that none of its parts is a link."""
    path = top
    for part in parts:
        path /= part
        if path.is_symlink():
            raise OSError(errno.ELOOP, LINK)
    return path


def _open(name: str, flags: int, folder: int | None) -> int:
    if folder is None and Path(name).is_symlink():
        raise OSError(errno.ELOOP, LINK)
    try:
        return os.open(name, flags | _NO_LINK | _NO_WAIT | _BINARY, 0o666, dir_fd=folder)
    except OSError as exc:
        if exc.errno in (errno.ELOOP, errno.EMLINK) or (exc.errno == errno.ENOTDIR and flags & _FOLDER and _is_link(name, folder)):
            raise OSError(errno.ELOOP, LINK) from exc
        if exc.errno == errno.ENXIO:  # a FIFO that nobody reads, a socket
            raise OSError(errno.ENXIO, NO_FILE) from exc
        raise


def _is_link(name: str, folder: int | None) -> bool:
    return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _check_regular(number: int, mode: str, most_bytes: int) -> IO[bytes]:
    """Return the open file; refuse a device, a FIFO, a folder, and a file that is too large."""
    try:
        status = os.fstat(number)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, NO_FILE)
        if status.st_size > most_bytes:
            raise _too_large(most_bytes)
        return os.fdopen(number, mode)
    except BaseException:
        os.close(number)
        raise


def _too_large(most_bytes: int) -> OSError:
    return OSError(errno.EFBIG, f"it is larger than {most_bytes:,} bytes")


def _sync(folder: int | None) -> None:
    """Sync a folder to the disk, where the system can do that."""
    if folder is not None:
        with suppress(OSError):
            os.fsync(folder)
