"""The room that a download may have on the disk, where several share it.

A download waits only while it holds nothing and no connection is open. One that turns out to need more than it was given, when that is
not free, gives everything back and begins again when it is. So no two ever wait for each other.
"""

from __future__ import annotations

from typing import Protocol

UNKNOWN_BYTES = 50_000_000  # for one whose size is not known: four minutes of 720p
STEP_BYTES = 50_000_000  # more, for one that is larger than was known


class DiskSpace(Protocol):
    """What one download has of the room that is shared."""

    held_bytes: int

    def wait_for(self, size_bytes: int) -> None:
        """Have at least so much; where that is not free, give back what there was and wait for it."""

    def take(self, size_bytes: int) -> bool:
        """Have at least so much, if that is free at this moment."""


class NoRoomError(Exception):
    """The download was given up: it needs so much, and that is not free now."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self.size_bytes = size_bytes
