"""Metadata of a video beside its run: from its list and from its host."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

ItemKind = Literal["youtube", "youtube8m", "address", "file"]
MOST_KEY_LETTERS = 100
UNKNOWN_VERTICAL = "(Unknown)"  # YouTube-8M's own name for it; a video without a vertical counts there


@dataclass(frozen=True, slots=True)
class ListItem:
    """One video of a list."""

    key: str
    """Unique in the data set, and the `video_id` of its keyframes: the id itself, or the stem of the file and a digest of the whole
    address. At most 100 letters, digits and `._-`."""
    kind: ItemKind
    source: str
    """The id, the address, or the absolute path."""
    where: str
    """Its place in the list: `ids.txt, line 12`."""
    labels: tuple[str, ...] = ()
    """Names of its topics, or their numbers where there is no vocabulary."""
    verticals: tuple[str, ...] = ()
    topic: str | None = None
    """As the list says; the description of `labels` is looked up in the vocabulary when it is needed."""
    duration_s: float | None = None
    """As the list says."""

    @property
    def host(self) -> str:
        """The host that it is downloaded from, `youtube` for an id; "" for a file."""
        if self.kind == "file":
            return ""
        if self.kind != "address":
            return "youtube"
        from urllib.parse import urlsplit

        return urlsplit(self.source).hostname or ""


@dataclass(frozen=True, slots=True)
class DownloadedVideo:
    """A video that is on this machine now."""

    path: Path
    youtube_id: str | None = None
    title: str | None = None
    duration_s: float | None = None
    info: dict[str, Any] = field(default_factory=dict)
    """What else the host says of it: uploader, upload_date, license, webpage_url, language, categories, tags."""
    subtitles: dict[str, Path] = field(default_factory=dict)
    """WebVTT files by language."""
    is_ours: bool = True
    """False for a file of the user; others are deleted after use."""
