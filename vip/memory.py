"""What a process holds of the memory that it has freed, where the C library is glibc: by itself that keeps much of it, for each thread."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

M_ARENA_MAX = -8  # of <malloc.h>


def use_one_heap() -> None:
    """Let all threads that begin from here on share one heap: one each would keep what others could use again."""
    if sys.platform == "linux":
        with suppress(AttributeError):  # another C library
            ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


def give_back() -> None:
    """Give back to the system what was freed; some milliseconds."""
    if sys.platform == "linux":
        with suppress(AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
