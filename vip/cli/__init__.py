"""The command `vip`: one file a group of commands. Everything heavy is imported inside the commands."""

from __future__ import annotations

import gc
import os
import sys
from io import TextIOWrapper

OBJECTS_BETWEEN_COLLECTIONS = 100_000  # importing makes nearly as many, and nothing of that is garbage


def main() -> None:
    """Run the console script."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # pydantic would read the metadata of every installed package
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads wait in loops, and take an eighth of the time of the decoders

    from vip.cli.app import run

    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # file names need not be valid UTF-8
    code = run()
    gc.freeze()  # the interpreter would look through everything once more before it ends, for 50 ms
    sys.exit(code)
