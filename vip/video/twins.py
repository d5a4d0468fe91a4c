"""Readers of one video that wait, between two stages of work, for the next thread that needs one: opening a file anew takes 10 ms."""

from __future__ import annotations

from threading import Lock
from typing import Generic, Protocol, TypeVar


class Closable(Protocol):
    """What can be closed for good."""

    def close_for_good(self) -> None: ...


ReaderT = TypeVar("ReaderT", bound=Closable)


class Twins(Generic[ReaderT]):
    """Readers that nobody uses, by the number of threads of their decoders. For several threads at once."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[ReaderT]] = {}
        self._ended = False
        self._lock = Lock()

    def take(self, threads: int) -> ReaderT | None:
        """Return a reader that waits; None where there is none."""
        with self._lock:
            waiting = self._waiting.get(threads)
            return waiting.pop() if waiting else None

    def leave(self, reader: ReaderT, threads: int) -> None:
        """Let a reader wait for the next one who needs it; close it where nobody will."""
        with self._lock:
            if not self._ended:
                waiting = self._waiting.setdefault(threads, [])
                if reader not in waiting:  # closing twice is no fault
                    waiting.append(reader)
                return
        reader.close_for_good()

    def end(self) -> None:
        """Close all that wait, and those that come later."""
        with self._lock:
            waiting, self._waiting, self._ended = self._waiting, {}, True
        for readers in waiting.values():
            for reader in readers:
                reader.close_for_good()
