"""Calls into FFmpeg that have not come back yet: a watcher outside tells a loop without end from slow work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from threading import get_ident
from typing import TypeVar

ItemT = TypeVar("ItemT")


class FfmpegCalls:
    """`with inside_ffmpeg:` around a call, in any thread. Calls do not nest."""

    def __init__(self) -> None:
        self._running: dict[int, int] = {}
        self._numbers = count()

    def __enter__(self) -> None:
        self._running[get_ident()] = next(self._numbers)

    def __exit__(self, *error: object) -> None:
        del self._running[get_ident()]

    def each(self, items: Iterable[ItemT]) -> Iterator[ItemT]:
        """Yield the items, FFmpeg being asked for each."""
        iterator = iter(items)
        while True:
            caller = get_ident()
            self._running[caller] = next(self._numbers)  # not `with self`: its two calls take a tenth of the time of reading packets
            try:
                item = next(iterator)
            except StopIteration:
                return
            finally:
                del self._running[caller]
            yield item

    def running(self) -> set[int]:
        """Return a number for each call under way; a later call of the same thread has another."""
        return set(self._running.copy().values())


inside_ffmpeg = FfmpegCalls()
