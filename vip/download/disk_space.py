"""The disk space of a download, where several downloads share a budget.

A download waits for space only while it holds none and has no connection open. One that needs more than it holds takes more. If that is
not free, it gives everything back and starts again later. So no two downloads wait for each other.
"""

from __future__ import annotations

from typing import Protocol

UNKNOWN_BYTES = 50_000_000  # for a video of unknown size: four minutes of 720p
STEP_BYTES = 50_000_000  # more, for a video that is larger than expected


class DiskSpace(Protocol):
    """The part of the shared disk space that one download holds."""

    held_bytes: int

    def wait_for(self, size_bytes: int) -> None:
        """Hold at least so much; where that is not free, give back what is held and wait."""

    def take(self, size_bytes: int) -> bool:
        """Hold at least so much if that is free now, and return whether it was."""


class NoRoomError(Exception):
    """A download was given up: it needs more space than is free now."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self.size_bytes = size_bytes
