"""`vip report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vip.cli.console import AsJson, Console, Quiet, print_json

EXAMPLES = """[bold]Example[/bold]
vip report video.vip/        writes video.vip/report.html, one page for all
"""


Folder = Annotated[
    Path, typer.Argument(help="A run folder, its keyframes/ folder, or any folder of described pictures.", show_default=False)
]


def report_command(folder: Folder, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Write report.html: the keyframes on a timeline, their captions, and why the others were dropped."""
    from vip.report.page import write_report
    from vip.store import load_run

    path = write_report(load_run(folder))
    if as_json:
        print_json({"report": str(path)})
    else:
        Console(quiet=quiet).say(f"Open {path}")
