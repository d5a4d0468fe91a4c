"""An event loop whose time is made up: a task that sleeps an hour wakes at once, in the right order.

with Clockwork() as clock:
    clock.run(work())
    assert clock.now_s == 3600
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, Self, TypeVar

PATIENCE_S = 10.0  # for threads, which need real time
T = TypeVar("T")


class _Jumping(selectors.DefaultSelector):
    """Where nothing happens but time, it passes at once."""

    now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            events = super().select(PATIENCE_S)
            assert events, "all wait, and for nothing"
            return events
        events = super().select(0)
        if not events:
            self.now_s += timeout
        return events


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.jumping = _Jumping()
        super().__init__(self.jumping)

    def time(self) -> float:
        return self.jumping.now_s

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait for the threads in real time: from Python 3.12 on there is a limit, which in made-up time is over at once."""
        await super().shutdown_default_executor()


class Clockwork:
    """Runs coroutines in made-up time."""

    def __enter__(self) -> Self:
        self._loop = _Loop()
        self._runner = asyncio.Runner(loop_factory=lambda: self._loop)
        return self

    def __exit__(self, *exc: object) -> None:
        self._runner.close()
        self._loop.close()  # the runner leaves it open where it ran nothing

    def __call__(self) -> float:
        return self._loop.time()

    @property
    def now_s(self) -> float:
        return self._loop.time()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)
