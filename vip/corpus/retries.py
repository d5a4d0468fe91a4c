"""What becomes of an item that failed: tried again later, or not; and how long its host is left alone."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

from vip.corpus.items import RULES
from vip.corpus.queue import ItemQueue
from vip.corpus.state import ItemEntry, StateDatabase
from vip.corpus.status import duration
from vip.errors import FailureKind
from vip.protocols import Observer

TRIES = {"later": 4, "back_off": 10}
LONGEST_REST_S = 3600.0
RESTS = 20  # of a host that gave videos before and cannot be reached any more: most of a day
OUTAGE = 8  # downloads in a row that failed of the network, before their host counts as one that cannot be reached
UNREACHED: tuple[FailureKind, ...] = ("network", "download_timeout")
HINTS: dict[FailureKind, str] = {
    "bot_check": " Fewer --workers may help, too.",
    "rate_limit": " A longer --sleep or fewer --workers help.",
}


@dataclass(slots=True)
class Retries:
    """Decides by the type of the failure (`items.RULES`).

    Args:
        wait_s: before the second try; four times as long before each further one.
    """

    state: StateDatabase
    queue: ItemQueue
    wait_s: float
    observer: Observer
    _rests: Counter[str] = field(default_factory=Counter)
    _unreached: Counter[str] = field(default_factory=Counter)
    """Downloads in a row that failed of the network."""

    def well(self, host: str) -> None:
        """The host answers."""
        self._rests.pop(host, None)
        self._unreached.pop(host, None)

    def failed(self, entry: ItemEntry, kind: FailureKind, message: str, retry_after_s: float | None = None) -> bool:
        """Note a failure. Returns whether it is for good."""
        rule, tries = RULES.get(kind, "never"), entry.tries + 1
        wait_s = self.wait_s * 4.0 ** (tries - 1)
        if self._is_cut_off(entry.item.host, kind):
            rule = "back_off"
        if rule == "back_off":
            wait_s = self._rest(entry.item.host, kind, message, retry_after_s)
        if rule == "never" or tries >= TRIES[rule]:
            self.state.failed(entry.id, kind, message)
            return True
        self.state.again(entry.id, kind, message, time.time() + wait_s)
        return False

    def _is_cut_off(self, host: str, kind: FailureKind) -> bool:
        """Whether it is the way to the host that is gone, which is no fault of the items: it gave videos, and now nothing comes."""
        if kind not in UNREACHED or not host:
            self._unreached.pop(host, None)
            return False
        self._unreached[host] += 1
        if self._unreached[host] < OUTAGE or self._rests[host] >= RESTS:
            return False
        return self._rests[host] > 0 or (self._unreached[host] % OUTAGE == 0 and self.state.has_done(host))

    def _rest(self, host: str, kind: FailureKind, message: str, retry_after_s: float | None) -> float:
        """Leave a host alone, each time twice as long. Returns for how many seconds."""
        left = self.queue.resting.get(host, 0.0) - time.time()
        if left > 0:
            return left  # it was under way when others were refused
        self._rests[host] += 1
        wait_s = retry_after_s or min(LONGEST_REST_S, self.wait_s * 2.0 ** min(self._rests[host], RESTS))
        self.queue.rest(host, wait_s)
        self.observer.note(f"{host}: {message} Nothing more is asked of it for {duration(wait_s)}.{HINTS.get(kind, '')}")
        return wait_s
