"""The queue of waiting items: long videos first, then all others in the order of the list, in turn from each host.

A long video occupies one worker, so a whole cluster would wait for one that is begun last. No host gets all downloads, and a host that
refuses requests is not asked for a while.

In: the state. Out: entries. Only a few hundred items of each host are in memory.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from vip.corpus.state import ItemEntry, StateDatabase

AHEAD = 256  # items of a host in memory
DUE_CHECK_S = 0.5  # between two checks for items due for another try


@dataclass(slots=True)
class ItemQueue:
    """The waiting items, in lines by host.

    Args:
        per_host: downloads at once from one host.
    """

    state: StateDatabase
    per_host: int
    clock: Callable[[], float] = time.time
    active: Counter[str] = field(default_factory=Counter)
    """Downloads under way, by host."""
    paused: dict[str, float] = field(default_factory=dict)
    """Until when a host is not asked, by host."""
    _lines: dict[str, deque[ItemEntry]] = field(default_factory=dict)
    _last: dict[str, int] = field(default_factory=dict)
    """The last item taken from the state, by host."""
    _last_long: dict[str, ItemEntry | None] = field(default_factory=dict)
    """The last long video taken from the state, by host."""
    _order: deque[str] = field(default_factory=deque)
    _retried: set[int] = field(default_factory=set)
    """Items that were due for another try and are queued or assigned."""
    _checked: float = 0.0

    def __post_init__(self) -> None:
        self._order.extend(self.state.hosts())

    def next(self, has_capacity: Callable[[bool], bool]) -> ItemEntry | None:
        """Return the next item, or None if none may be assigned now.

        Args:
            has_capacity: whether a worker is free; called with True for an item that has to be fetched.
        """
        self._add_due()
        for _ in range(len(self._order)):
            host = self._order[0]
            self._order.rotate(-1)
            if host and (self.active[host] >= self.per_host or self.paused.get(host, 0.0) > self.clock()):
                continue
            if not has_capacity(bool(host)):
                continue
            if entry := self._first(host):
                self.active[host] += bool(host)
                return entry
        return None

    def has_more(self) -> bool:
        """Return whether an item waits, for now or for a free worker or slot."""
        return bool(self._order)

    def _first(self, host: str) -> ItemEntry | None:
        line = self._lines.setdefault(host, deque())
        if not line:
            line.extend(self._load(host))
            if not line:
                self._order.remove(host)
                return None
        return line.popleft()

    def _load(self, host: str) -> list[ItemEntry]:
        """Return the next items of a host from the state."""
        if found := self.state.waiting_long(host, self._last_long.get(host), AHEAD):
            self._last_long[host] = found[-1]
        elif found := self.state.waiting(host, self._last.get(host, 0), AHEAD):
            self._last[host] = found[-1].id
        return found

    def _add_due(self) -> None:
        """Queue the items that are due for another try."""
        if (now := self.clock()) < self._checked + DUE_CHECK_S:
            return
        self._checked = now
        for entry in self.state.due(now, AHEAD):
            if entry.id not in self._retried:
                self._retried.add(entry.id)
                self.put_back(entry)

    def put_back(self, entry: ItemEntry) -> None:
        """Put an item first in the line of its host."""
        host = entry.item.host
        self._lines.setdefault(host, deque()).appendleft(entry)
        if host not in self._order:
            self._order.append(host)

    def free_slot(self, entry: ItemEntry) -> None:
        """Free the download slot of an item's host."""
        if host := entry.item.host:
            self.active[host] -= 1

    def release(self, entry: ItemEntry) -> None:
        """Forget an item whose result is in the state."""
        self._retried.discard(entry.id)

    def pause(self, host: str, seconds: float) -> None:
        """Do not ask a host for so long."""
        self.paused[host] = max(self.paused.get(host, 0.0), self.clock() + seconds)
