"""Links to watch a keyframe: its video, at its time, if that lies beside the run or behind a public address.

In: a run; its manifest may come from a stranger. Out: a relative link to a file that exists, or an http(s) link, and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from urllib.parse import quote

from vip.download.addresses import split_address, youtube_id
from vip.html.markup import decimal
from vip.records import VideoInfo
from vip.store import Run

PLAYED_SUFFIXES = frozenset({".mkv", ".m4v", ".mp4", ".webm"})  # .mov: Chromium saves such a file instead of playing it


@dataclass(frozen=True, slots=True)
class VideoLink:
    """An address at which a browser plays the video."""

    address: str
    is_youtube: bool = False

    def at(self, time_s: float) -> str:
        """Return the address of the video at this time."""
        start_s = max(0.0, time_s)
        return f"{self.address}&t={int(start_s)}s" if self.is_youtube else f"{self.address}#t={decimal(float(start_s))}"


def video_link(run: Run) -> VideoLink | None:
    """Return the link to the video of a run; None where a browser finds none, or one that it does not play."""
    if run.manifest is None:
        return None
    video = run.manifest.video
    if "://" in video.path:
        return _web_link(video.path)
    path = next(_relative_links(run.folder, video), None)
    return VideoLink(path) if path else None


def _web_link(address: str) -> VideoLink | None:
    """Return the link to an http(s) address without login and query, which may be secrets."""
    try:
        parts = split_address(address)
    except ValueError:
        return None
    if parts.scheme.lower() not in {"http", "https"} or "@" in parts.netloc:
        return None
    if name := youtube_id(parts):
        return VideoLink(f"https://www.youtube.com/watch?v={name}", is_youtube=True)
    suffix = PurePath(parts.path).suffix.lower()
    if parts.query or not address.isprintable() or " " in address or suffix not in PLAYED_SUFFIXES | {""}:
        return None
    return VideoLink(parts._replace(fragment="").geturl())


def _relative_links(folder: Path, video: VideoInfo) -> Iterator[str]:
    """Yield relative links to the video: where the manifest names it, in the run folder, and in the two folders above.

    Only below the folder that holds the folder of the run (`clips/video.mp4` for `runs/video.vip/`), and never all of a disk.
    """
    home = Path(os.path.abspath(folder))  # noqa: PTH100 - resolve() would follow links, which the browser does not
    top = next((above for above in (home.parent.parent, home.parent) if above != above.parent), home)
    name = PurePath(video.path).name
    for place in (Path(os.path.normpath(video.path)), home / name, home.parent / name, home.parent.parent / name):
        if place.suffix.lower() in PLAYED_SUFFIXES and place.is_relative_to(top) and _has_size(place, video.size_bytes):
            yield quote(os.fsencode(os.path.relpath(place, home).replace(os.sep, "/")))


def _has_size(path: Path, size_bytes: int) -> bool:
    try:
        return os.path.isfile(path) and path.stat().st_size == size_bytes  # noqa: PTH113 - for names that are too long
    except OSError:
        return False
