"""The command `vip`: one file a group of commands. Everything heavy is imported inside the commands."""

from __future__ import annotations

import sys
from io import TextIOWrapper


def main() -> None:
    """Run the console script."""
    from vip.cli.app import run

    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # file names need not be valid UTF-8
    sys.exit(run())
