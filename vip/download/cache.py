"""Downloaded videos in the user's cache folder, so that each is downloaded once.

    ~/.cache/vip/videos/DIGEST/video.mp4      DIGEST is that of the address, so the name of the folder holds no secret
                               video.en.vtt   subtitles of the page
                               source.json    its record, written after it

Beyond KEPT_BYTES, the videos are deleted that were not used for longest. All of it may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

from vip import store, user_state
from vip.errors import StoreError
from vip.records import Record

KEPT_BYTES = 20_000_000_000
LEFT_FREE_BYTES = 1_000_000_000  # of the disk, for other programs
RECORD = "source.json"
NO_SUBTITLES: Mapping[str, Path] = MappingProxyType({})


class CachedVideo(Record):
    """The record in source.json."""

    shown: str
    """The address without login and query."""
    file: str
    size_bytes: int
    version: str
    """The server's mark of this version of the file; "" where it gave none."""
    title: str | None = None
    downloaded_utc: str


def default_folder() -> Path:
    """Return the folder of all videos, in the user's cache folder."""
    return user_state.cache_folder() / "videos"


def folder_of(shown: str) -> Path:
    """Return the folder for the video of an address."""
    return default_folder() / hashlib.sha256(shown.encode()).hexdigest()[:32]


def find(shown: str) -> tuple[Path, CachedVideo] | None:
    """Return the video of an address and its record; None where it is not in the cache, or not whole."""
    folder = folder_of(shown)
    try:
        record = store.read_json(folder / RECORD, CachedVideo)
        path = folder / Path(record.file).name
        if record.shown != shown or path.stat().st_size != record.size_bytes:
            return None
        os.utime(folder / RECORD)  # it was used now
    except (StoreError, OSError):
        return None
    return path, record


def keep(shown: str, path: Path, *, version: str = "", title: str | None = None, subtitles: Mapping[str, Path] = NO_SUBTITLES) -> Path:
    """Move a downloaded file into the cache, and return its new path.

    Args:
        subtitles: WebVTT by language; it lies beside the video then.

    Raises:
        StoreError: it cannot be moved.
    """
    folder = folder_of(shown)
    store.make_folder(folder)
    target = folder / f"video{path.suffix.lower()}"
    try:
        for old in folder.glob("video.*.vtt"):
            old.unlink()
        for language, file in subtitles.items():
            file.replace(folder / f"video.{language}.vtt")
        path.replace(target)
        for old in folder.glob("video.*"):
            if old != target and old.suffix != ".vtt":
                old.unlink()
        size = target.stat().st_size
    except OSError as exc:
        raise StoreError(f"{target} cannot be written: {exc.strerror}. Make room, or set XDG_CACHE_HOME to another disk.") from exc
    now = datetime.now(UTC).isoformat(timespec="seconds")
    record = CachedVideo(shown=shown, file=target.name, size_bytes=size, version=version, title=title, downloaded_utc=now)
    store.write_json(folder / RECORD, record)
    _delete_unused(keeping=folder)
    return target


def free_bytes() -> int:
    """Return how large a download may be."""
    folder = default_folder()
    store.make_folder(folder)
    return max(0, shutil.disk_usage(folder).free - LEFT_FREE_BYTES)


def _delete_unused(keeping: Path) -> None:
    """Delete videos until KEPT_BYTES are left, those first that were not used for longest."""
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
