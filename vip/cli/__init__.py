"""The command `vip`: one file a group of commands. Everything heavy is imported inside the commands."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from io import TextIOWrapper
from typing import NoReturn

OBJECTS_BETWEEN_COLLECTIONS = 100_000  # importing makes nearly as many, and nothing of that is garbage


def main() -> NoReturn:
    """Run the console script."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # pydantic would read the metadata of every installed package
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads wait in loops, and take an eighth of the time of the decoders

    from vip.cli.app import run

    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # file names need not be valid UTF-8
    end_at_once(run())


def end_at_once(code: int) -> NoReturn:
    """End the process with this exit code, without taking the interpreter apart first, for 50 ms; not under a debugger or a profiler."""
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except (OSError, ValueError):  # a full disk, a closed stream: the interpreter says so
        sys.exit(code)
    if threading.active_count() > 1 or sys.gettrace() or sys.getprofile():
        sys.exit(code)
    atexit._run_exitfuncs()
    os._exit(code)
