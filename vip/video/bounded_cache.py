"""A cache of a limited number of bytes, in which some things are preferred to others."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from typing import Generic, TypeVar

ThingT = TypeVar("ThingT")


class BoundedCache(Generic[ThingT]):
    """Things by a number, of a limited number of bytes together; several threads may share it.

    While there is room all are kept. Then the preferred ones that come take the place of the latest others.
    """

    def __init__(self, most_bytes: int) -> None:
        self._things: dict[int, tuple[ThingT, int]] = {}
        self._others: list[int] = []  # numbers of those that are not preferred
        self._most_bytes = self._free_bytes = most_bytes
        self._lock = Lock()

    def _keep(self, number: int, thing: ThingT, size_bytes: int, *, preferred: bool) -> None:
        with self._lock:
            if number in self._things:
                if preferred and number in self._others:
                    self._others.remove(number)
                return
            while preferred and size_bytes > self._free_bytes and self._others:
                self._free_bytes += self._things.pop(self._others.pop())[1]
            if size_bytes > self._free_bytes:
                return
            self._things[number] = thing, size_bytes
            self._free_bytes -= size_bytes
            if not preferred:
                self._others.append(number)

    def get(self, number: int) -> ThingT | None:
        found = self._things.get(number)
        return None if found is None else found[0]

    def _drop(self, number: int) -> None:
        with self._lock:
            if number in self._things:
                self._free_bytes += self._things.pop(number)[1]

    def _bound(self, most_bytes: int) -> None:
        """Drop all that are not preferred, and have room for so many bytes together from now on; preferred ones stay."""
        with self._lock:
            for number in self._others:
                self._free_bytes += self._things.pop(number)[1]
            self._others.clear()
            self._free_bytes += most_bytes - self._most_bytes
            self._most_bytes = most_bytes

    def clear(self) -> None:
        with self._lock:
            self._free_bytes += sum(size_bytes for _, size_bytes in self._things.values())
            self._things.clear()
            self._others.clear()

    def __contains__(self, number: int) -> bool:
        return number in self._things

    def __iter__(self) -> Iterator[ThingT]:
        return iter([thing for thing, _ in list(self._things.values())])

    def __len__(self) -> int:
        return len(self._things)
