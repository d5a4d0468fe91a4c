"""The command `vip`: one file a group of commands. Everything heavy is imported inside the commands."""

from __future__ import annotations

import gc
import os
import sys
from io import TextIOWrapper

OBJECTS_BETWEEN_COLLECTIONS = 50_000  # importing makes as many, and nothing of that is garbage


def main() -> None:
    """Run the console script."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # pydantic would read the metadata of every installed package

    from vip.cli.app import run

    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # file names need not be valid UTF-8
    sys.exit(run())
