"""The number of cores for the work on one video: all of the machine, unless a limit is set."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_most: int | None = None


def limit(most: int | None) -> None:
    """Set the limit for this process and its forks; None for no limit."""
    global _most
    _most = most


def cores() -> int:
    """Return the number of cores, at least 1."""
    count = os.cpu_count() or 1
    return count if _most is None else max(1, min(_most, count))


@contextmanager
def one_opencv_thread() -> Iterator[None]:
    """Keep OpenCV from having threads of its own meanwhile."""
    import cv2

    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        yield
    finally:
        cv2.setNumThreads(before)
