"""Locks on folders, so that one process at a time writes to each.

The lock is one of the operating system, on a file in the folder: it ends with the process that holds it. The file names that process,
and is deleted when the work is done.
"""

from __future__ import annotations

import os
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from errno import EACCES, EPERM, EROFS
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from vip import files
from vip.errors import StoreError
from vip.wording import option

if TYPE_CHECKING:
    from filelock import FileLock

NAME = ".in-use.vip-part"  # with this suffix, a folder with nothing else in it counts as empty
PATIENCE_S = 0.5  # another process may be just about to end
LONGEST_NOTE = 100

_held: Counter[str] = Counter()
"""How often this process, or the one that it was forked from, holds the lock of a folder."""
_guard = threading.Lock()


@contextmanager
def in_use(folder: Path) -> Iterator[bool]:
    """Lock an existing folder for this process, until the end of the block; inside the block it may be locked again.

    A folder that cannot be written to is not locked: the first write to it will fail.

    Yields:
        True where the folder was locked now, False where this process holds the lock already or cannot write to the folder.

    Raises:
        StoreError: another process holds the lock.
    """
    key = str(folder.resolve())
    with _guard:
        lock = None if _held[key] else _acquire(folder)
        _held[key] += 1
    try:
        yield lock is not None
    finally:
        with _guard:
            _held[key] -= 1
            if lock is not None:
                with suppress(PermissionError):  # Windows keeps what is open, and filelock deletes it there
                    (folder / NAME).unlink(missing_ok=True)  # before the release: a process that waits makes a new one
                lock.release()


def lock_file(file: IO[Any], *, shared: bool = False, wait: bool = False) -> bool:
    """Lock an open file until it is closed; return False where another process has locked it.

    On Windows the first byte of a locked file can be read by nobody else, and `shared` means nothing.
    """
    try:
        import fcntl
    except ImportError:
        from filelock import lock_descriptor

        return lock_descriptor(file.fileno(), blocking=wait)
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _acquire(folder: Path) -> FileLock | None:
    import filelock

    path = folder / NAME
    lock = filelock.FileLock(path, timeout=PATIENCE_S, thread_local=False)
    try:
        try:
            lock.acquire()
        except FileNotFoundError:  # the process that held the lock failed, and deleted the folder
            folder.mkdir(exist_ok=True)
            lock.acquire()
    except filelock.Timeout as exc:
        raise StoreError(
            f"{folder} is in use by {_describe_holder(path)}. Wait until it is done, or choose another folder with {option('out')}."
        ) from exc
    except OSError as exc:
        if exc.errno in (EACCES, EPERM, EROFS):
            return None
        raise StoreError(f"{path} cannot be used: {exc.strerror}. Delete it, and try again.") from exc
    with suppress(OSError), files.open_to_append(path) as note:
        note.write(f"{os.getpid()} {datetime.now():%H:%M}\n".encode("ascii"))
    return lock


def _describe_holder(path: Path) -> str:
    """Return who holds the lock: `process 123 since 14:05`."""
    with suppress(OSError), files.open_file(path) as file:
        process, _, since = file.read(LONGEST_NOTE).decode("ascii", "replace").partition(" ")
        if process.isdecimal():
            since = since.strip()
            return f"process {process} since {since}" if re.fullmatch(r"[0-9]{2}:[0-9]{2}", since) else f"process {process}"
    return "another process"
