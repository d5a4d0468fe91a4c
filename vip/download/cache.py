"""Videos behind addresses, whole in the user's cache folder: downloaded once, whatever is done with them.

    ~/.cache/vip/videos/DIGEST/video.mp4      DIGEST is that of the address, so the folder's name gives no secret away
                               source.json    what is known of it, written after it

Where more than KEPT_BYTES lie there, those go that were not used for longest. All of it may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from vip import store
from vip.errors import StoreError
from vip.records import Record

KEPT_BYTES = 20_000_000_000
LEFT_FREE_BYTES = 1_000_000_000  # of the disk: others need room too
RECORD = "source.json"


class CachedVideo(Record):
    """source.json"""

    shown: str
    """The address without login and query."""
    file: str
    size_bytes: int
    version: str
    """What the server said that tells this version from another; "" where it said nothing."""
    title: str | None = None
    downloaded_utc: str


def default_folder() -> Path:
    """`videos` in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vip" / "videos"


def folder_of(shown: str) -> Path:
    """Where the video of an address lies."""
    return default_folder() / hashlib.sha256(shown.encode()).hexdigest()[:32]


def find(shown: str) -> tuple[Path, CachedVideo] | None:
    """The video of an address; None where it is not here, or not whole."""
    folder = folder_of(shown)
    try:
        known = store.read_json(folder / RECORD, CachedVideo)
        path = folder / Path(known.file).name
        if known.shown != shown or path.stat().st_size != known.size_bytes:
            return None
        os.utime(folder / RECORD)  # it is used
    except (StoreError, OSError):
        return None
    return path, known


def keep(shown: str, path: Path, *, version: str = "", title: str | None = None) -> Path:
    """Move a downloaded file to its place. Returns where it lies now.

    Raises:
        StoreError: it cannot be moved.
    """
    folder = folder_of(shown)
    store.make_folder(folder)
    target = folder / f"video{path.suffix.lower()}"
    try:
        path.replace(target)
        size = target.stat().st_size
    except OSError as exc:
        raise StoreError(f"{target} cannot be written: {exc.strerror}. Make room, or set XDG_CACHE_HOME to another disk.") from exc
    now = datetime.now(UTC).isoformat(timespec="seconds")
    record = CachedVideo(shown=shown, file=target.name, size_bytes=size, version=version, title=title, downloaded_utc=now)
    store.write_json(folder / RECORD, record)
    _drop_oldest(keeping=folder)
    return target


def free_bytes() -> int:
    """How large a download may be."""
    folder = default_folder()
    store.make_folder(folder)
    return max(0, shutil.disk_usage(folder).free - LEFT_FREE_BYTES)


def _drop_oldest(keeping: Path) -> None:
    """Delete videos beyond KEPT_BYTES, those first that were not used for longest."""
    used: list[tuple[float, int, Path]] = []
    for folder in default_folder().iterdir():
        with suppress(OSError):
            size = sum(path.stat().st_size for path in folder.iterdir())
            used.append(((folder / RECORD).stat().st_mtime, size, folder))
    total = sum(size for _, size, _ in used)
    for _, size, folder in sorted(used):
        if total <= KEPT_BYTES or folder == keeping:
            break
        shutil.rmtree(folder, ignore_errors=True)
        total -= size
