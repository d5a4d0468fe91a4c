"""The retry rules: which failures are tried again, when, and how long a host that refuses requests is not asked."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from vip.corpus.queue import ItemQueue
from vip.corpus.state import ItemEntry, StateDatabase
from vip.corpus.status import duration
from vip.errors import FailureKind
from vip.protocols import Observer

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
"""By the type of the failure: try the item again later, or pause its whole host. Types that are not named: never try again."""
MOST_TRIES = {"later": 4, "back_off": 10}
LONGEST_PAUSE_S = 3600.0
MOST_PAUSES = 20  # of a host that gave videos and is out of reach now: most of a day
OUTAGE = 8  # network failures in a row after which a host counts as out of reach
NETWORK_FAILURES: tuple[FailureKind, ...] = ("network", "download_timeout")
HINTS: dict[FailureKind, str] = {
    "bot_check": " Fewer --workers may help, too.",
    "rate_limit": " A longer --sleep or fewer --workers help.",
}


@dataclass(slots=True)
class Retries:
    """The decision whether an item is tried again, by `RULES`.

    Args:
        wait_s: before the second try; four times as long before each later one.
    """

    state: StateDatabase
    queue: ItemQueue
    wait_s: float
    observer: Observer
    _pauses: Counter[str] = field(default_factory=Counter)
    _network_failures: Counter[str] = field(default_factory=Counter)
    """Network failures in a row, by host."""

    def record_success(self, host: str) -> None:
        """Note that the host answers."""
        self._pauses.pop(host, None)
        self._network_failures.pop(host, None)

    def record_failure(self, entry: ItemEntry, kind: FailureKind, message: str, retry_after_s: float | None = None) -> bool:
        """Record a failure in the state. Return whether it is final."""
        rule, tries = RULES.get(kind, "never"), entry.tries + 1
        wait_s = self.wait_s * 4.0 ** (tries - 1)
        if self._is_out_of_reach(entry.item.host, kind):
            rule = "back_off"
        if rule == "back_off":
            wait_s = self._pause(entry.item.host, kind, message, retry_after_s)
        if rule == "never" or tries >= MOST_TRIES[rule]:
            self.state.record_failure(entry.id, kind, message)
            return True
        self.state.schedule_retry(entry.id, kind, message, time.time() + wait_s)
        return False

    def _is_out_of_reach(self, host: str, kind: FailureKind) -> bool:
        """Return whether the host is out of reach, which is no fault of the items: it gave videos before, and now only network failures."""
        if kind not in NETWORK_FAILURES or not host:
            self._network_failures.pop(host, None)
            return False
        self._network_failures[host] += 1
        if self._network_failures[host] < OUTAGE or self._pauses[host] >= MOST_PAUSES:
            return False
        return self._pauses[host] > 0 or (self._network_failures[host] % OUTAGE == 0 and self.state.has_done(host))

    def _pause(self, host: str, kind: FailureKind, message: str, retry_after_s: float | None) -> float:
        """Pause a host, each time twice as long. Return for how many seconds."""
        left = self.queue.paused.get(host, 0.0) - time.time()
        if left > 0:
            return left  # this item was under way when the pause began
        self._pauses[host] += 1
        wait_s = retry_after_s or min(LONGEST_PAUSE_S, self.wait_s * 2.0 ** min(self._pauses[host], MOST_PAUSES))
        self.queue.pause(host, wait_s)
        self.observer.note(f"{host}: {message} Nothing more is asked of it for {duration(wait_s)}.{HINTS.get(kind, '')}")
        return wait_s
