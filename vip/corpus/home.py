"""Where a batch keeps its state, and that only one process works on it."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from vip import store
from vip.corpus.listing.rows import shown
from vip.corpus.output.storage import local_path
from vip.corpus.state import NAME
from vip.errors import InputError, UsageError

FOLDER = "state"
PARTS = "parts"  # of videos that are done and in no shard yet; there from the first on
LOCK = "lock"
LOOKS_S = (0.05, 0.15, 0.3)  # pauses between tries to be alone: `--status` holds the lock for a moment


def home_of(out: str) -> Path:
    """`OUT/state`; of an output elsewhere a folder of this machine, always the same for the same address."""
    if path := local_path(out):
        return path.absolute() / FOLDER
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    name = shown(out).partition("://")[2].strip("/").replace("/", "-")
    return base / "vip" / "batches" / f"{name[-40:]}-{hashlib.sha256(out.rstrip('/').encode()).hexdigest()[:10]}"


def existing_home(out: str) -> Path:
    """The state of a batch that was begun on this machine.

    Raises:
        InputError: there is none.
    """
    home = home_of(out)
    if not store.is_folder(home):
        raise InputError(f"{shown(out)} holds no batch that was begun on this machine. Start one with `vip batch LIST -o {shown(out)}`.")
    return home


@contextmanager
def leaving_none(home: Path) -> Iterator[None]:
    """If the block fails before anything was begun, the state that it made goes again, and the output where nothing else is in it."""
    existed = store.exists(home / NAME)
    try:
        yield
    except BaseException:
        if not existed and not store.is_folder(home / PARTS):
            with suppress(OSError):
                for path in (*home.glob(f"{NAME}*"), home / LOCK):  # whatever else is there is not ours
                    path.unlink()
                home.rmdir()
                home.parent.rmdir()
        raise


@contextmanager
def locked(home: Path, out: str) -> Iterator[None]:
    """Alone in the batch, until the end of the block or of the process.

    Raises:
        UsageError: another process works on it.
    """
    import fcntl

    store.make_folder(home)
    with (home / LOCK).open("a+", encoding="utf-8") as file:
        for wait_s in (*LOOKS_S, None):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as exc:
                if wait_s is None:
                    who = f"vip batch (process {worker(home) or 'unknown'})"
                    raise UsageError(f"Another {who} works on {shown(out)}. Wait for it, or end it, or choose another -o.") from exc
            time.sleep(wait_s)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def worker(home: Path) -> int | None:
    """The process that works on the batch now; None where none does."""
    import fcntl

    try:
        with (home / LOCK).open("r", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return int(file.read() or 0)
    except (OSError, ValueError):
        pass
    return None
