"""State that vip keeps for its user between commands: whom they trust, and what this machine made.

It is in `~/.local/state/vip` (XDG_STATE_HOME), which only the user may read. Files from elsewhere are never copied there, so a folder
from a stranger cannot pass for one that this machine made.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Literal

from vip import files
from vip.errors import StoreError

Kind = Literal["settings", "runs", "batches", "jobs", "samples", "tables"]
SECRET = "secret"
SECRET_BYTES = 32


def folder() -> Path:
    """Return the folder of the state; XDG_STATE_HOME moves it."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "vip"


def cache_folder() -> Path:
    """Return the folder for what can be downloaded or asked for again; XDG_CACHE_HOME moves it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vip"


def remember(kind: Kind, name: str) -> None:
    """Save a name for later commands.

    Raises:
        StoreError: it cannot be saved.
    """
    path = _path_of(kind, name)
    try:
        _make_folder(path.parent)
        with files.replacing(path, durable=True) as file:
            file.write(_bytes(name) + b"\n")
    except OSError as exc:
        raise StoreError(f"{path} cannot be written: {exc.strerror}. Make room, or set XDG_STATE_HOME to a folder of yours.") from exc


def knows(kind: Kind, name: str) -> bool:
    """Return whether the name was saved, on this machine and by this user."""
    return _path_of(kind, name).is_file()


def forget(kind: Kind, name: str) -> None:
    """Delete a saved name, if it is there."""
    with suppress(OSError):
        files.remove(_path_of(kind, name))


def signature(text: str) -> str | None:
    """Return a signature that proves later that this machine wrote the text; None where no secret can be saved."""
    secret = _secret()
    return _sign(text, secret) if secret else None


def is_signed(text: str, signed: str | None) -> bool:
    """Return whether this machine wrote the text."""
    secret = _secret() if signed else None
    return bool(secret and signed and hmac.compare_digest(_bytes(_sign(text, secret)), _bytes(signed)))


def _sign(text: str, secret: bytes) -> str:
    return hmac.new(secret, _bytes(text), hashlib.sha256).hexdigest()


def _path_of(kind: Kind, name: str) -> Path:
    return folder() / kind / hashlib.sha256(_bytes(name)).hexdigest()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _secret() -> bytes | None:
    """Return the secret of this machine, created at first use; None where it cannot be saved."""
    path = folder() / SECRET
    if (found := _read(path)) is None:
        with suppress(OSError):
            _create_secret(path)
            found = _read(path)
    return found


def _read(path: Path) -> bytes | None:
    with suppress(OSError):
        found = files.read_bytes(path, most_bytes=SECRET_BYTES)
        return found if len(found) == SECRET_BYTES else None
    return None


def _make_folder(path: Path) -> None:
    """Make the folder of the state, and one in it, for the user alone."""
    for each in (folder(), path):
        each.mkdir(parents=True, exist_ok=True, mode=0o700)


def _create_secret(path: Path) -> None:
    """Write a new secret, unless another process was quicker."""
    _make_folder(path.parent)
    part = path.with_name(f".{secrets.token_hex(16)}{files.PARTIAL_SUFFIX}")
    number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(secrets.token_bytes(SECRET_BYTES))
        with suppress(FileExistsError):
            path.hardlink_to(part)
    finally:
        part.unlink()
