"""The words of a batch: a row of the list that names no video, and what is done about a failure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vip.errors import FailureKind

Rule = Literal["never", "later", "back_off"]
RULES: dict[FailureKind, Rule] = {
    "bot_check": "back_off",
    "rate_limit": "back_off",
    "network": "later",
    "download_timeout": "later",
    "crash": "later",
    "disk": "later",
    "other": "later",
}
"""What is done about a failure: try again later, wait with all items of that host, or (all that are not named) never again."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that names no video, or one that may not be fetched."""

    text: str
    """Its beginning, printable, at most 120 characters."""
    where: str
    message: str
    kind: FailureKind = "bad_row"
