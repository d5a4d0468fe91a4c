"""Bounds the memory of a download: a playlist of 600 bytes can state 10^12 parts, and yt-dlp makes a list of them.

yt-dlp repeats parts with `range`, which is replaced while a download lasts. Whatever else grows, such as the names of parts and the
bodies of redirects, meets a limit of the system, which is one for all threads of the process. It holds on Linux alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from vip.errors import ItemError

MOST_PARTS = 1_000_000  # a day in parts of 2 s has 864,000 in 20 qualities
MEMORY_BYTES = 2**31  # beyond what is in use before; a page of `PAGE_BYTES` takes half of it
REPEATING = ("yt_dlp.extractor.common", "yt_dlp.downloader.f4m")  # a newer yt-dlp may lack the second


@contextmanager
def limit_memory() -> Iterator[None]:
    """Bound the memory that this process takes inside the block.

    Raises:
        ItemError: yt-dlp repeats more than `MOST_PARTS` parts.
        MemoryError: more than `MEMORY_BYTES` would be taken.
    """
    with _limit_parts(), _data_limit:
        yield


@contextmanager
def _limit_parts() -> Iterator[None]:
    modules, count = [vars(sys.modules[name]) for name in REPEATING if name in sys.modules], 0

    def bounded_range(*numbers: int) -> range:
        nonlocal count
        found = range(*numbers)
        count += 1 + len(found[:MOST_PARTS])  # the part itself, and how often it is repeated; `len` of a huge range fails
        if count > MOST_PARTS:
            raise ItemError(f"The playlist of the video states more than {MOST_PARTS:,} parts. Give another address.", "unreadable")
        return found

    for module in modules:
        module["range"] = bounded_range
    try:
        yield
    finally:
        for module in modules:
            module.pop("range", None)  # of another thread, it may be gone


class _DataLimit:
    """The limit of the process, from the first of several downloads at once to the end of the last."""

    def __init__(self) -> None:
        self._downloads, self._before, self._lock = 0, (0, 0), Lock()

    def __enter__(self) -> None:
        with self._lock:
            self._downloads += 1
            if self._downloads == 1 and sys.platform == "linux":
                self._set()

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._downloads -= 1
            if self._downloads == 0 and sys.platform == "linux":
                import resource

                resource.setrlimit(resource.RLIMIT_DATA, self._before)

    def _set(self) -> None:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[5])
        self._before = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = pages * resource.getpagesize() + MEMORY_BYTES
        limits = [wanted, *(one for one in self._before if one != resource.RLIM_INFINITY)]
        resource.setrlimit(resource.RLIMIT_DATA, (min(limits), self._before[1]))


_data_limit = _DataLimit()
