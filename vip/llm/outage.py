"""A server that is gone is left alone for a while, longer each time; then one question sees whether it is back.

In: how each try ended. Out: leave to ask. Questions wait together: when the rest is over, the one that has waited longest goes out
alone, and the others follow when it was answered. So nothing that was under way is lost, and a server that comes back is not run over.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from vip.errors import BusyError, OutageError
from vip.wording import again

SILENT = 2.0  # times the first rest: a minute of half a minute
LONGEST = 20.0  # times the first rest: ten minutes of half a minute
GIVEN_UP = 2400.0  # times the first rest: 20 hours of half a minute
LONGEST_ASKED_S = 86400.0  # a server that asks for a longer rest is given up at once: a batch would wait for ever


class OutagePause(NamedTuple):
    """A pause in which nothing is asked of a server."""

    until: float
    """Seconds of the epoch."""
    seconds: float
    """From its beginning."""
    why: str
    """What the server did, as a sentence."""


@dataclass(slots=True)
class Outage:
    """The outage of a server, shared by all questions to it.

    Args:
        first_s: the first rest; each further one is twice as long.
        on_pause: called with each pause, and with None when the server answers again.
    """

    first_s: float
    on_pause: Callable[[OutagePause | None], None] = lambda pause: None
    _began_s: float | None = None
    _rests: int = 0
    _rested: bool = False
    """The rest is over, and nobody is on the way to see whether the server is back."""
    _timer: asyncio.TimerHandle | None = None
    _waiting: deque[asyncio.Future[None]] = field(default_factory=deque)

    @property
    def silent_s(self) -> float:
        """Return the seconds without an answer after which the server counts as gone."""
        return SILENT * self.first_s

    @property
    def is_on(self) -> bool:
        return self._began_s is not None

    async def wait_turn(self) -> bool:
        """Wait until a question may go out. Returns whether it goes alone, to see whether the server is back."""
        while self.is_on:
            if self._rested:
                self._rested = False
                return True
            place = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            try:
                await place
            except asyncio.CancelledError:
                with suppress(ValueError):
                    self._waiting.remove(place)
                if not place.cancelled():  # it was to go
                    self._wake_one()
                raise
        return False

    def pause(self, exc: BusyError) -> None:
        """Leave the server alone.

        Raises:
            OutageError: it has been gone for too long, or asks to be left alone for too long.
        """
        if exc.retry_after_s is not None and exc.retry_after_s > LONGEST_ASKED_S:
            raise OutageError(f"{exc} It asks to wait for more than a day. What is done stays done. {again()} later.", exc.kind) from exc
        loop = asyncio.get_running_loop()
        if self._began_s is None:
            self._began_s = loop.time()
        gone_s = loop.time() - self._began_s
        if gone_s > GIVEN_UP * self.first_s:
            hours = f"{gone_s / 3600:.1f} hours"
            raise OutageError(f"{exc} It has answered nothing for {hours}. What is done stays done. {again()} later.", exc.kind) from exc
        rest_s = max(min(self.first_s * 2.0**self._rests, LONGEST * self.first_s), exc.retry_after_s or 0.0)
        self._stop()
        self._rests += 1
        self._timer = loop.call_later(rest_s, self._end_pause)
        self.on_pause(OutagePause(time.time() + rest_s, rest_s, str(exc)))

    def answered(self) -> None:
        """Note that the server answers; all questions may go out."""
        if not self.is_on:
            return
        self._stop()
        self._began_s, self._rests = None, 0
        while self._wake():
            pass
        self.on_pause(None)

    def _stop(self) -> None:
        self._rested = False
        if self._timer is not None:
            self._timer.cancel()

    def _end_pause(self) -> None:
        self._rested = True
        self._wake_one()

    def _wake_one(self) -> None:
        if self._rested:
            self._wake()

    def _wake(self) -> bool:
        """Wake the question that has waited longest. Returns whether there was one."""
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                return True
        return False
