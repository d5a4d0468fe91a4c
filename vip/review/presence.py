"""Who has which item open now, so that two people who edit one item know of each other before one of them saves.

In: a sign of life from each page, every few seconds. Out: the others at the same item. Nothing is kept on the disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

HERE_S = 12.0  # a page says every 4 s that it is there
MOST_PEOPLE = 1000


class Other(NamedTuple):
    """Somebody else at an item."""

    reviewer: str
    is_editing: bool


class _Sign(NamedTuple):
    number: int
    is_editing: bool
    at_s: float


@dataclass(slots=True)
class Presence:
    """The last sign of life of each reviewer."""

    clock: Callable[[], float] = time.monotonic
    _signs: dict[str, _Sign] = field(default_factory=dict)

    def note(self, reviewer: str, number: int, *, is_editing: bool) -> list[Other]:
        """Note that a reviewer has an item open, and return the others that do, in the order of their names."""
        now = self.clock()
        self._signs.pop(reviewer, None)
        self._signs = {name: sign for name, sign in list(self._signs.items())[1 - MOST_PEOPLE :] if now - sign.at_s <= HERE_S}
        others = [Other(name, sign.is_editing) for name, sign in sorted(self._signs.items()) if sign.number == number]
        self._signs[reviewer] = _Sign(number, is_editing, now)
        return others
