"""Which item is handed out next: those that last long, as the list says, and then all others in the order of the list; but so that no host
takes all downloads, and a host that asks for rest has it.

A long video that is begun last would keep a whole cluster waiting: it is one worker's.

In: the state. Out: entries. Only a few hundred items of each host are in memory.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from vip.corpus.state import ItemEntry, StateDatabase

AHEAD = 256  # items of a host in memory
LOOK_S = 0.5  # between looks for what is due again


@dataclass(slots=True)
class ItemQueue:
    """What waits.

    Args:
        per_host: downloads at once from one host.
    """

    state: StateDatabase
    per_host: int
    clock: Callable[[], float] = time.time
    active: Counter[str] = field(default_factory=Counter)
    """Downloads that each host is at work on."""
    resting: dict[str, float] = field(default_factory=dict)
    """Until when nothing is asked of a host."""
    _lines: dict[str, deque[ItemEntry]] = field(default_factory=dict)
    _behind: dict[str, int] = field(default_factory=dict)
    _behind_long: dict[str, ItemEntry | None] = field(default_factory=dict)
    _order: deque[str] = field(default_factory=deque)
    _out: set[int] = field(default_factory=set)
    """Items that were due again and are handed out."""
    _looked: float = 0.0

    def __post_init__(self) -> None:
        self._order.extend(self.state.hosts())

    def next(self, takes: Callable[[bool], bool]) -> ItemEntry | None:
        """The next item, if one may be handed out now.

        Args:
            takes: whether there is somebody for another item; True for one that has to be fetched.
        """
        self._look()
        for _ in range(len(self._order)):
            host = self._order[0]
            self._order.rotate(-1)
            if host and (self.active[host] >= self.per_host or self.resting.get(host, 0.0) > self.clock()):
                continue
            if not takes(bool(host)):
                continue
            if entry := self._first(host):
                self.active[host] += bool(host)
                return entry
        return None

    def has_more(self) -> bool:
        """Whether something can be handed out, now or when somebody takes it."""
        return bool(self._order)

    def _first(self, host: str) -> ItemEntry | None:
        line = self._lines.setdefault(host, deque())
        if not line:
            line.extend(self._further(host))
            if not line:
                self._order.remove(host)
                return None
        return line.popleft()

    def _further(self, host: str) -> list[ItemEntry]:
        """The next ones of a host that are in no line yet."""
        if found := self.state.waiting_long(host, self._behind_long.get(host), AHEAD):
            self._behind_long[host] = found[-1]
        elif found := self.state.waiting(host, self._behind.get(host, 0), AHEAD):
            self._behind[host] = found[-1].id
        return found

    def _look(self) -> None:
        """Take up what is due again."""
        if (now := self.clock()) < self._looked + LOOK_S:
            return
        self._looked = now
        for entry in self.state.due(now, AHEAD):
            if entry.id not in self._out:
                self._out.add(entry.id)
                self.back(entry)

    def back(self, entry: ItemEntry) -> None:
        """An item that is to be handed out again, before the others."""
        host = entry.item.host
        self._lines.setdefault(host, deque()).appendleft(entry)
        if host not in self._order:
            self._order.append(host)

    def fetched(self, entry: ItemEntry) -> None:
        """The host's slot is free."""
        if host := entry.item.host:
            self.active[host] -= 1

    def over(self, entry: ItemEntry) -> None:
        """The item is in the state again, as it is now."""
        self._out.discard(entry.id)

    def rest(self, host: str, seconds: float) -> None:
        """Ask nothing of a host for a while."""
        self.resting[host] = max(self.resting.get(host, 0.0), self.clock() + seconds)
