"""The command `vip`: one file a group of commands. Everything heavy is imported inside the commands."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the console script."""
    from vip.cli.app import run

    sys.exit(run())
