"""`--disk-budget`: one budget for the downloads of all pools of a batch on a machine, in one file that they share.

In: the bytes of a download. Out: permission to continue, at once or when other downloads have freed their bytes. A waiting download holds
nothing. First come, first served: small videos do not overtake a large one. The downloads of a killed pool are deleted and their bytes
freed: each pool has a lock that the system releases with its process.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from vip import databases, files, store
from vip.errors import StoreError
from vip.locks import lock_file
from vip.untrusted import one_line

LEDGER = "disk.sqlite"
SHARED_PREFIX = "vip-disk-"  # the folder of a ledger that no stranger has written in begins so
POLL_S = 0.5  # between two tries of a waiting download
LEDGER_TIMEOUT_S = 60.0  # for the write of another pool
SCHEMA = """
CREATE TABLE IF NOT EXISTS holders (name TEXT PRIMARY KEY, downloads TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS held (holder TEXT NOT NULL, key TEXT NOT NULL, bytes INTEGER NOT NULL, PRIMARY KEY (holder, key));
CREATE TABLE IF NOT EXISTS waiting (ticket INTEGER PRIMARY KEY, holder TEXT NOT NULL, key TEXT NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class DiskBudget:
    """The budget, for one pool.

    Args:
        folder: of the ledger: the same for all pools of the batch on this machine.
        holder: the name of the pool.
    """

    folder: Path
    holder: str
    size_bytes: int


def shared_folder(batch: str) -> Path:
    """Return the folder of the ledger on a machine of a Ray cluster. It belongs to this user alone.

    Raises:
        StoreError: another user has made it.
    """
    name = hashlib.sha256(batch.encode()).hexdigest()[:16]
    user = os.getuid() if hasattr(os, "getuid") else 0  # on Windows the folder for temporary files is the user's own
    folder = Path(tempfile.gettempdir()) / f"{SHARED_PREFIX}{user}-{name}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != user:
        raise StoreError(f"{folder} belongs to somebody else. Delete it, or set TMPDIR to a folder of your own.")
    return folder


@dataclass(slots=True)
class DiskHolder:
    """The entry of a pool in the ledger, from its start to its end."""

    budget: DiskBudget
    downloads: Path
    """The folder that other pools delete if this one is killed."""
    _lock: IO[str] = field(init=False)

    def __post_init__(self) -> None:
        store.make_folder(self.budget.folder)
        with _locked_ledger(self.budget.folder) as ledger:
            self._lock = _lock_path(self.budget.folder, self.budget.holder).open("w")
            lock_file(self._lock, wait=True)
            _forget(ledger, self.budget.holder)  # of a killed pool of this name
            ledger.execute("INSERT INTO holders VALUES (?, ?)", (self.budget.holder, str(self.downloads.absolute())))
            _free_dead(ledger, self.budget.folder)

    def free(self, key: str) -> None:
        """Free the bytes of a download that is deleted or given up."""
        with _locked_ledger(self.budget.folder) as ledger:
            for table in ("held", "waiting"):
                ledger.execute(f"DELETE FROM {table} WHERE holder = ? AND key = ?", (self.budget.holder, key))

    def close(self) -> None:
        """Remove the entry. The ledger stays: another pool may be starting."""
        folder = self.budget.folder
        with suppress(StoreError), _locked_ledger(folder) as ledger:
            _forget(ledger, self.budget.holder)
            self._lock.close()  # first: Windows deletes nothing that is open
            _lock_path(folder, self.budget.holder).unlink(missing_ok=True)
        self._lock.close()


@dataclass(slots=True)
class DiskAllowance:
    """The share of one download in the budget: a `vip.download.disk_space.DiskSpace`.

    Args:
        on_wait: called with True when the download starts to wait, and with False when it goes on.
    """

    budget: DiskBudget
    key: str
    on_wait: Callable[[bool], None] = lambda waits: None
    held_bytes: int = 0

    def wait_for(self, size_bytes: int) -> None:
        if size_bytes <= self.held_bytes:
            return
        self.settle(0)
        ticket = time.time_ns()
        if self._try_to_hold(size_bytes, ticket):
            return
        self.on_wait(True)
        while not self._try_to_hold(size_bytes, ticket):
            time.sleep(POLL_S)
        self.on_wait(False)

    def take(self, size_bytes: int) -> bool:
        return size_bytes <= self.held_bytes or self._try_to_hold(size_bytes, None)

    def settle(self, size_bytes: int) -> None:
        """Hold so many bytes, and free the rest."""
        with _locked_ledger(self.budget.folder) as ledger:
            self._hold(ledger, size_bytes)

    def _try_to_hold(self, size_bytes: int, ticket: int | None) -> bool:
        """Hold so many bytes, or the whole budget if that is less; return False if they are not free.

        Args:
            ticket: the place in the queue; None for a download that holds something already: it goes first.
        """
        folder, holder = self.budget.folder, self.budget.holder
        size_bytes = min(size_bytes, self.budget.size_bytes)
        with _locked_ledger(folder) as ledger:
            if not self._fits(ledger, size_bytes, ticket):
                _free_dead(ledger, folder)
                if not self._fits(ledger, size_bytes, ticket):
                    if ticket is not None:
                        ledger.execute("INSERT OR IGNORE INTO waiting VALUES (?, ?, ?)", (ticket, holder, self.key))
                    return False
            self._hold(ledger, size_bytes)
            ledger.execute("DELETE FROM waiting WHERE holder = ? AND key = ?", (holder, self.key))
        return True

    def _fits(self, ledger: sqlite3.Connection, size_bytes: int, ticket: int | None) -> bool:
        if ticket is not None and ledger.execute("SELECT 1 FROM waiting WHERE ticket < ? LIMIT 1", (ticket,)).fetchone():
            return False
        sql = "SELECT total(bytes) FROM held WHERE NOT (holder = ? AND key = ?)"
        (others,) = ledger.execute(sql, (self.budget.holder, self.key)).fetchone()
        return bool(others + size_bytes <= self.budget.size_bytes)

    def _hold(self, ledger: sqlite3.Connection, size_bytes: int) -> None:
        ledger.execute("INSERT OR REPLACE INTO held VALUES (?, ?, ?)", (self.budget.holder, self.key, size_bytes))
        self.held_bytes = size_bytes


# ---------------------------------------------------------------- the ledger


@contextmanager
def _locked_ledger(folder: Path) -> Iterator[sqlite3.Connection]:
    """Yield the ledger, locked; make all changes or none. After a power cut the ledger is not needed."""
    path = folder / LEDGER
    try:
        with closing(databases.connect(path, SCHEMA, timeout_s=LEDGER_TIMEOUT_S)) as ledger:
            ledger.execute("PRAGMA synchronous = OFF")
            ledger.execute("BEGIN IMMEDIATE")
            for statement in filter(str.strip, SCHEMA.split(";")):
                ledger.execute(statement)
            yield ledger
            ledger.execute("COMMIT")
    except (sqlite3.Error, OSError, UnicodeDecodeError) as exc:  # the message of SQLite quotes what is damaged
        raise StoreError(f"{path} cannot be used ({one_line(str(exc))[:150]}). Make room there, or delete it while no batch runs.") from exc


def _lock_path(folder: Path, holder: str) -> Path:
    return folder / f"{holder}.lock"


def _free_dead(ledger: sqlite3.Connection, folder: Path) -> None:
    """Delete the downloads of dead pools, and free their bytes; of a ledger that came with a data set only those beside it."""
    for holder, downloads in ledger.execute("SELECT name, downloads FROM holders").fetchall():
        is_ours = folder.name.startswith(SHARED_PREFIX) or files.lies_in(Path(downloads), folder)
        if not is_ours or Path(holder).name != holder:
            _forget(ledger, holder)
        elif not _is_alive(folder, holder):
            shutil.rmtree(downloads, ignore_errors=True)
            _forget(ledger, holder)
            _lock_path(folder, holder).unlink(missing_ok=True)


def _is_alive(folder: Path, holder: str) -> bool:
    try:
        with _lock_path(folder, holder).open() as file:
            return not lock_file(file)
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _forget(ledger: sqlite3.Connection, holder: str) -> None:
    ledger.execute("DELETE FROM holders WHERE name = ?", (holder,))
    for table in ("held", "waiting"):
        ledger.execute(f"DELETE FROM {table} WHERE holder = ?", (holder,))
