"""The words of a download: an item of a list, what was fetched, and why an item failed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

ItemKind = Literal["youtube", "youtube8m", "address", "file"]
UNKNOWN_VERTICAL = "(Unknown)"  # YouTube-8M's own name for it; a video without a vertical counts there


@dataclass(frozen=True, slots=True)
class ListItem:
    """One video of the list."""

    key: str
    """Unique in the batch and the `video_id` of its keyframes: the id itself, or the stem of the file and a digest of the whole
    address. Letters, digits and `._-` only, at most 100; no path."""
    kind: ItemKind
    source: str
    """The id, the address, or the absolute path."""
    where: str
    """Where it was named: `ids.txt, line 12`."""
    labels: tuple[str, ...] = ()
    """Names of its topics, or their numbers where no vocabulary is given."""
    verticals: tuple[str, ...] = ()
    topic: str | None = None
    """As the list says; what the vocabulary says of `labels` is looked up when it is needed."""
    duration_s: float | None = None
    """As the list says."""

    @property
    def host(self) -> str:
        """Whose download slots it takes; empty for a file."""
        if self.kind == "file":
            return ""
        if self.kind != "address":
            return "youtube"
        from urllib.parse import urlsplit

        return urlsplit(self.source).hostname or ""


@dataclass(frozen=True, slots=True)
class DownloadedVideo:
    """A video that lies on this machine."""

    path: Path
    youtube_id: str | None = None
    title: str | None = None
    duration_s: float | None = None
    info: dict[str, Any] = field(default_factory=dict)
    """What else the host says that a data set wants to know: uploader, upload_date, license, webpage_url, language, categories, tags."""
    subtitles: dict[str, Path] = field(default_factory=dict)
    """WebVTT files by language."""
    is_ours: bool = True
    """Downloaded, and to be deleted after use; a local file of the user's is not."""
