"""How many cores the work on one video may use: all of the machine, unless a batch divides them among its workers."""

from __future__ import annotations

import os

_most: int | None = None


def limit(most: int | None) -> None:
    """For this process and its forks; None for no limit."""
    global _most
    _most = most


def limited() -> bool:
    return _most is not None


def cores() -> int:
    """At least 1."""
    here = os.cpu_count() or 1
    return here if _most is None else max(1, min(_most, here))
