"""Readers of one video that wait, between two stages of work, for the next thread that needs one: opening a file anew takes 10 ms."""

from __future__ import annotations

from threading import Lock
from typing import Generic, TypeVar

ReaderT = TypeVar("ReaderT")


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

    def give_up_others(self, threads: int) -> list[ReaderT]:
        """Return those that wait whose decoders have another number of threads; they wait no longer."""
        with self._lock:
            return [reader for number in [*self._waiting] if number != threads for reader in self._waiting.pop(number)]

    def leave(self, reader: ReaderT, threads: int) -> bool:
        """Let a reader wait for the next one who needs it; return False where nobody will."""
        with self._lock:
            if self._ended:
                return False
            waiting = self._waiting.setdefault(threads, [])
            if reader not in waiting:  # closing twice is no fault
                waiting.append(reader)
            return True

    def end(self) -> list[ReaderT]:
        """Return all that wait; from here on none waits."""
        with self._lock:
            waiting, self._waiting, self._ended = self._waiting, {}, True
        return [reader for readers in waiting.values() for reader in readers]
