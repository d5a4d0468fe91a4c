"""Limits on the requests to one server at once: as many as it answers well.

In: how each request ended. Out: a permit for the next one. The limit grows while answers come as quickly as before, and
is halved when the server is asked too much (additive increase, multiplicative decrease, as TCP finds the room on a line);
requests and tokens a minute are bounded by the user, and by what the server says is left.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from vip.llm.outage import Outage
from vip.protocols import RateLimits

FIRST, MOST = 8, 128  # in flight, where the user names no number; MOST pictures of 100 kB on their way are about 60 MB
SLOWER = 2.0  # times the best latency: from there on more requests only wait in the server's queue
LONG_S, LONGEST_S = 30.0, 3600.0  # waits that the user is told of; the longest one by a header of a good answer
BURST_S = 1.0  # how much of a minute's requests may go out at once


class TokenBucket:
    """A rate of so many units a minute, evenly: a bucket that fills up at that rate and holds what a second brings."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate = per_minute / 60
        self.capacity = max(1.0, self.rate * BURST_S)
        self.level = self.capacity
        self.clock, self.at_s = clock, clock()

    def wait_s(self, units: float) -> float:
        """Return the seconds until so many may be taken; more than the bucket holds may be taken from a full one."""
        now = self.clock()
        self.level = min(self.capacity, self.level + (now - self.at_s) * self.rate)
        self.at_s = now
        return max(0.0, (min(units, self.capacity) - self.level) / self.rate)

    def take(self, units: float) -> None:
        """Take so many units. The level falls below zero where more came than expected; the next requests wait for it."""
        self.level -= units


@dataclass(frozen=True, slots=True)
class Permit:
    """One request on its way."""

    tokens: int
    started_s: float
    limited: bool
    """As many as the limit allows were on their way when it started."""


@dataclass(slots=True)
class AdaptiveLimiter:
    """The turns of one server.

    Args:
        most: in flight at once. Where the user names a number, that many go out from the start; otherwise the number is found.
        rpm, tpm: requests and tokens a minute.
        outage: lets questions wait while the server is gone; None: they end the run.
    """

    most: int | None = None
    rpm: int | None = None
    tpm: int | None = None
    clock: Callable[[], float] = time.monotonic
    on_long_wait: Callable[[str], None] = lambda text: None
    """Called with a sentence before each long wait."""
    outage: Outage | None = None
    limit: float = field(init=False)
    in_flight: int = field(init=False, default=0)
    held_until_s: float = field(init=False, default=float("-inf"))
    _doubling: bool = field(init=False, default=True)
    _halved_s: float = field(init=False, default=float("-inf"))
    _best_s: float = field(init=False, default=float("inf"))
    _recent_s: list[float] = field(init=False, default_factory=list)
    _waiting: deque[asyncio.Future[None]] = field(init=False, default_factory=deque)
    _requests: TokenBucket | None = field(init=False)
    _tokens: TokenBucket | None = field(init=False)

    def __post_init__(self) -> None:
        self.limit = float(self.most or FIRST)
        self._requests = TokenBucket(self.rpm, self.clock) if self.rpm else None
        self._tokens = TokenBucket(self.tpm, self.clock) if self.tpm else None

    @property
    def ceiling(self) -> int:
        return self.most or MOST

    @asynccontextmanager
    async def permit(self, tokens: int) -> AsyncIterator[Permit]:
        """Wait until a request of so many tokens may go out, and be on the way inside."""
        await self._enter()
        try:
            while (wait_s := self._wait_s(tokens)) > 0:
                await asyncio.sleep(wait_s)
            for bucket, units in ((self._requests, 1), (self._tokens, tokens)):
                if bucket:
                    bucket.take(units)
            yield Permit(tokens, self.clock(), self.in_flight >= int(self.limit))
        finally:
            self._leave()

    async def _enter(self) -> None:
        """Wait to be one of those in flight, first come, first served."""
        if self.in_flight < int(self.limit) and not self._waiting:
            self.in_flight += 1
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.cancelled():
                with suppress(ValueError):  # it was passed over before it could go
                    self._waiting.remove(place)
            else:  # it had got its place already
                self._leave()
            raise

    def _leave(self) -> None:
        self.in_flight -= 1
        self._wake_waiting()

    def _wake_waiting(self) -> None:
        while self._waiting and self.in_flight < int(self.limit):
            place = self._waiting.popleft()
            if not place.done():
                self.in_flight += 1
                place.set_result(None)

    def _wait_s(self, tokens: int) -> float:
        waits = [self.held_until_s - self.clock()]
        waits += [bucket.wait_s(units) for bucket, units in ((self._requests, 1), (self._tokens, tokens)) if bucket]
        return max(waits)

    # ------------------------------------------------------------ how it ended

    def answered(self, permit: Permit, tokens: int | None) -> None:
        """Note an answer, and its tokens as the server counts them."""
        if self._tokens and tokens is not None:
            self._tokens.take(tokens - permit.tokens)
        self._recent_s.append(self.clock() - permit.started_s)
        if permit.limited:
            self.limit = min(self.ceiling, self.limit + (1 if self._doubling else 1 / self.limit))
        if len(self._recent_s) >= self.limit:
            self._look_at_latency()
        self._wake_waiting()

    def _look_at_latency(self) -> None:
        """Lower the limit where the answers of a round came much later than at best: they waited in the server's queue."""
        mean_s = sum(self._recent_s) / len(self._recent_s)
        self._recent_s.clear()
        self._best_s = min(self._best_s, mean_s)
        if self.most is None and mean_s > SLOWER * self._best_s:
            self._doubling = False
            self.limit = max(1.0, self.limit * 0.8)
            self._best_s *= 1.1  # the work itself may have become longer

    def overloaded(self, permit: Permit) -> None:
        """Halve the limit, once for all requests that were in flight when the server failed or refused."""
        self._doubling = False
        if permit.started_s >= self._halved_s:
            self.limit = max(1.0, self.limit / 2)
            self._halved_s = self.clock()

    def hold(self, seconds: float) -> None:
        """Send nothing for so long."""
        if seconds >= LONG_S and self.clock() + seconds > self.held_until_s + LONG_S:
            self.on_long_wait(f"The server asks to wait: nothing goes out for {seconds:.0f} s.")
        self.held_until_s = max(self.held_until_s, self.clock() + seconds)

    def apply_limits(self, limits: RateLimits | None) -> None:
        """Wait where the server says that nothing is left before it refuses."""
        if limits is None:
            return
        for left, reset_s in ((limits.requests_left, limits.requests_reset_s), (limits.tokens_left, limits.tokens_reset_s)):
            if left is not None and reset_s is not None and left <= 0:
                self.hold(min(reset_s, LONGEST_S))
