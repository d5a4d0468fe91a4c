"""The folder with the state of a batch: where it lies, the lock for its one process, and which machine began it."""

from __future__ import annotations

import hashlib
import os
import secrets
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from vip import files, store, user_state
from vip.corpus.inputs.rows import shown
from vip.corpus.state import NAME, StateDatabase
from vip.dataset.storage import local_path
from vip.errors import InputError, StoreError, UsageError
from vip.locks import lock_file

FOLDER = "state"
PARTS = "parts"  # of videos that are done and in no shard yet; made before any work
LOCK = "lock"
USED = frozenset({PARTS, "again", "captions", "describing", "disk.sqlite", "videos", "work"})  # what other modules keep in it
LONGEST_NUMBER = 20  # of a process
MARK = "mark"  # in the state: identifies the batch on this machine
LOCK_WAITS_S = (0.05, 0.15, 0.3)  # between tries to get the lock: `--status` holds it for a moment


def home_of(out: str) -> Path:
    """Return `OUT/state`; for an output on object storage, a folder of this machine, always the same for the same address."""
    if path := local_path(out):
        return path.absolute() / FOLDER
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    name = shown(out).partition("://")[2].strip("/").replace("/", "-")
    return base / "vip" / "batches" / f"{name[-40:]}-{hashlib.sha256(out.rstrip('/').encode()).hexdigest()[:10]}"


def existing_home(out: str) -> Path:
    """Return the state folder of a batch that was begun on this machine.

    Raises:
        InputError: there is none.
    """
    home = home_of(out)
    if not store.is_folder(home):
        raise InputError(f"{shown(out)} holds no batch that was begun on this machine. Start one with `vip batch LIST -o {shown(out)}`.")
    return home


@contextmanager
def removed_on_failure(home: Path) -> Iterator[None]:
    """Remove a new state if the block fails before any work, and the output folder if it is empty then."""
    existed = store.exists(home / NAME)
    try:
        yield
    except BaseException:
        if not existed and not store.is_folder(home / PARTS):
            with suppress(OSError):
                for path in (*home.glob(f"{NAME}*"), home / LOCK):  # nothing else in it is ours
                    path.unlink()
                home.rmdir()
                home.parent.rmdir()
        raise


@contextmanager
def hold_lock(home: Path, out: str) -> Iterator[None]:
    """Hold the lock of the batch until the end of the block or of the process.

    Raises:
        UsageError: another process works on it.
    """
    store.make_folder(home.parent)
    store.make_folder(home, inside=home.parent)
    with _lock(home) as file:
        for wait_s in (*LOCK_WAITS_S, None):
            if lock_file(file):
                break
            if wait_s is None:
                who = f"vip batch (process {running_pid(home) or 'unknown'})"
                raise UsageError(f"Another {who} works on {shown(out)}. Wait for it, or end it, or choose another -o.")
            time.sleep(wait_s)
        file.truncate(0)
        with suppress(OSError):  # on a full disk the lock holds without a name
            os.write(file.fileno(), f" {os.getpid()}".encode())  # behind the byte that is locked on Windows
        yield


def running_pid(home: Path) -> int | None:
    """Return the process that works on the batch now; None if none does."""
    try:
        with files.open_file(home / LOCK, inside=home.parent) as file:
            if not lock_file(file, shared=True):
                file.seek(1)
                return int(file.read(LONGEST_NUMBER) or 0)
    except (OSError, ValueError):
        pass
    return None


def _lock(home: Path) -> IO[bytes]:
    try:
        return files.open_to_append(home / LOCK, inside=home.parent)
    except OSError as exc:
        raise StoreError(f"{home / LOCK} cannot be used: {exc.strerror}. Delete it, or choose another -o.") from exc


# ---------------------------------------------------------------- the machine that began it


def claim(state: StateDatabase, out: str) -> None:
    """Remember that a new batch was begun on this machine; refuse one that was begun elsewhere.

    A state names files, addresses, servers and settings. One from elsewhere would make vip use them with this user's keys. One that leads
    out of its folder is refused, even if it is trusted.

    Raises:
        UsageError: it was begun elsewhere, and the user has not trusted it.
        StoreError: that cannot be remembered, it is damaged, or the folder holds files of no batch of this machine.
    """
    if state.is_untouched:
        if strange := sorted(USED.intersection(files.names_in(state.home))):
            raise StoreError(f"{state.home} holds {strange[0]}, but no batch. Move the folder away, or choose another -o.")
        allow(state)
    elif not is_own(state):
        raise UsageError(
            f"{shown(out)} was begun on another machine, or lay elsewhere: the files, addresses and servers that it names are not used "
            f"unasked. If you trust it, run `vip trust {shlex.quote(out)}`, and then this again."
        )
    else:
        _check_contents(state)


def _check_contents(state: StateDatabase) -> None:
    """Refuse a state whose files or values lead elsewhere."""
    try:
        files.check_tree(state.home)
    except OSError as exc:
        raise StoreError(f"{state.home} is no state as vip writes it: {exc.strerror}. Delete what is not, or choose another -o.") from exc
    state.check_values()


def allow(state: StateDatabase) -> None:
    """Trust the batch where it lies now.

    Raises:
        StoreError: that cannot be remembered.
    """
    mark = state.get(MARK) or secrets.token_hex(16)
    user_state.remember("batches", _name(state, mark))
    state.put(MARK, mark)
    state.commit()


def disallow(state: StateDatabase) -> None:
    """Trust the batch no longer."""
    user_state.forget("batches", _name(state, state.get(MARK)))


def is_own(state: StateDatabase) -> bool:
    """Return whether the batch was begun here, or is trusted."""
    return user_state.knows("batches", _name(state, state.get(MARK)))


def _name(state: StateDatabase, mark: object) -> str:
    return f"{state.home.resolve()}\n{mark}"
