"""`vip report`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from vip.cli.console import AsJson, Console, Quiet, print_error, print_json

EXAMPLES = """[bold]Examples[/bold]
vip report video.vip/    writes video.vip/report.html, one page for all
vip report runs/         the page of each run, and runs/index.html
"""


Folder = Annotated[
    Path,
    typer.Argument(help="A run folder, its keyframes/ folder, any folder of described pictures, or a folder of runs.", show_default=False),
]


def report_command(folder: Folder, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Write report.html: the keyframes on a timeline, their captions, and why the others were dropped."""
    from vip.report.index import run_folders_in
    from vip.report.page import write_report
    from vip.store import load_run

    console = Console(quiet=quiet, as_json=as_json)
    if runs := run_folders_in(folder):
        _report_all(folder, runs, console)
        return
    path = write_report(load_run(folder))
    if as_json:
        print_json({"report": str(path)})
    console.write_line(f"Open {path}")


def _report_all(folder: Path, runs: Sequence[Path], console: Console) -> None:
    """Write the page of each run, and the index; a damaged run does not stop the rest."""
    from vip.errors import InputError, SomeFailedError, StoreError
    from vip.report.index import write_index
    from vip.report.page import write_report
    from vip.store import load_run

    failed: dict[Path, str] = {}
    with console.track("Writing pages", len(runs)) as advance:
        for run in runs:
            row: dict[str, str | int] = {"run": str(run)}
            try:
                row["report"] = str(write_report(load_run(run)))
            except (InputError, StoreError) as exc:
                print_error(str(exc))
                failed[run] = str(exc)
                row |= {"error": str(exc), "exit_code": exc.exit_code}
            if console.as_json:
                print_json(row)
            advance()
    index = write_index(folder, failed=failed, pages_are_new=True)
    if console.as_json:
        print_json({"index": str(index)})
    console.write_line(f"Open {index}")
    if failed:
        raise SomeFailedError(
            f"{len(failed)} of {len(runs)} runs could not be reported. {index} names {'it' if len(failed) == 1 else 'them'}."
        )
