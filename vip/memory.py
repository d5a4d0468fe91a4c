"""What a process holds of the memory that it has freed, where the C library is glibc: by itself that keeps much of it, for each thread."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # of <malloc.h>
IN_HEAP_BYTES = 2**25  # the most that glibc allows; larger pieces go back at once
KEPT_BYTES = 2**26  # of the end of the heap, between two calls of `give_back`


def use_one_heap() -> None:
    """Let all threads that begin from here on share one heap: one each would keep what others could use again.

    The heap holds pictures too, and keeps what is freed until `give_back`: the system clears each page that it gives, 40,000 of them in
    four minutes of 720p.
    """
    if sys.platform == "linux":
        with suppress(AttributeError):  # another C library
            mallopt = ctypes.CDLL(None).mallopt
            mallopt(M_ARENA_MAX, 1)
            mallopt(M_MMAP_THRESHOLD, IN_HEAP_BYTES)
            mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)


def give_back() -> None:
    """Give back to the system what was freed; some milliseconds."""
    if sys.platform == "linux":
        with suppress(AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
