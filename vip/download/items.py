"""The words of a download: an item of a list, what was fetched, and why an item failed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from vip.errors import (
    BackendError,
    EngineError,
    GivenUpError,
    InputError,
    ReplyError,
    SomeFailedError,
    StoreError,
    UsageError,
    VipError,
)

ItemKind = Literal["youtube", "youtube8m", "address", "file"]
FailureKind = Literal[
    "bad_row",  # the row names no video
    "not_public",  # refused by --public-only
    "missing",  # no such file, HTTP 404, an id that YouTube-8M does not know
    "deleted",
    "private",
    "age",
    "geo",
    "bot_check",
    "rate_limit",
    "network",
    "no_video",  # a page without one, a live stream, a playlist
    "too_long",
    "too_short",
    "too_large",  # for --disk-budget
    "download_timeout",
    "unreadable",  # it was there and shows nothing, or is damaged
    "timeout",  # not extracted within --timeout
    "crash",  # its process ended without a word
    "disk",  # what was fetched could not be written
    "duplicate",  # another item turned out to be the same video
    "caption",  # not one keyframe could be described
    "other",
]


@dataclass(frozen=True, slots=True)
class Item:
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
class Fetched:
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


class ItemError(InputError):
    """Why one item could not be done.

    Args:
        kind: decides by `RULES` whether it is tried again.
        retry_after_s: how long the server asks to wait; None where it does not say.
    """

    def __init__(self, message: str, kind: FailureKind, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after_s = retry_after_s

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.kind, self.retry_after_s)


def kind_of(exc: VipError) -> str:
    """The type of what went wrong with a video, as failures.jsonl has it after every command."""
    if isinstance(exc, ItemError):
        return exc.kind
    if isinstance(exc, GivenUpError):
        return "crash" if exc.kind == "crash" else "timeout"
    return next((kind for error, kind in KINDS.items() if isinstance(exc, error)), "other")


KINDS: dict[type[VipError], str] = {
    **{InputError: "unreadable", StoreError: "disk", ReplyError: "caption", SomeFailedError: "caption"},
    **{UsageError: "usage", BackendError: "backend", EngineError: "engine"},
}
"""Of the errors that say no more. The last three end a batch instead of failing an item."""
