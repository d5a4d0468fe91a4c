"""`vip compare`: a table in the terminal, and a page to look at."""

from __future__ import annotations

import shutil
import sys
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vip.cli import options
from vip.cli.completion import backends
from vip.cli.console import AsJson, Console, Quiet, Verbose, print_error, print_json
from vip.errors import SomeFailedError
from vip.untrusted import printable
from vip.wording import counted

if TYPE_CHECKING:
    from vip.report.combinations import Comparison

EXAMPLES = """[bold]Examples[/bold]
vip compare video.mp4                   every sampler and pruner
vip compare video.mp4 --with katna      katna beside vip's own choice
vip compare video.mp4 --with shots+k-center --with uniform -n 24
vip compare video.mp4 --json | jq '{combination, seconds, coverage}'
"""
WITHOUT = ("query", "sampler", "candidates", "pruner", "format")  # settings that the combinations make, or that change no choice
WIDE = 106  # columns of a terminal that has room for the minor figures

Video = Annotated[str, typer.Argument(help="A video file, an http(s) address, or a folder of pictures.", show_default=False)]
Out = Annotated[
    Path | None,
    options.option(
        "--out", "-o", help="The folder for the page, and for a run folder of each combination.", metavar="DIR", default="NAME.compare"
    ),
]
With = Annotated[
    list[str] | None,
    options.option(
        "--with",
        help="Compare only this with what vip extract does and with evenly spaced frames; may be given several times.",
        metavar="SAMPLER+PRUNER",
        complete=backends("sampler"),
    ),
]


def compare_command(
    context: typer.Context,
    video: Video,
    with_: With = None,
    out: Out = None,
    overwrite: options.Overwrite = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Choose keyframes in several ways, and show on one page what each chose, how long it took and how good it is."""
    from vip import registry, store
    from vip.compare import compare
    from vip.config import ExtractSettings, resolve
    from vip.report.combinations import combinations, further_samplers

    console = Console(quiet=quiet, verbose=verbose, as_json=as_json)
    settings = resolve(ExtractSettings, options.given(context, ExtractSettings), note=console.note)
    registry.check(embedder=settings.embedder, detector=settings.detector)
    wanted = combinations(with_ or [], settings)
    comparison = compare(video, wanted, out=out, overwrite=overwrite, settings=settings, observer=console, isolated=True)
    show(comparison, console)
    if not with_ and (others := further_samplers(wanted)):
        console.write_line(f"Not compared: {', '.join(others)}. Add one by --with {others[0]}.")
    if failures := comparison.failures:
        total = len(failures) + len(comparison.choices)
        where = comparison.folder / store.FAILURES
        raise SomeFailedError(
            f"{len(failures)} of {counted(total, 'combination')} failed; {where} says why. Run the command again to retry only those."
        )


def show(comparison: Comparison, console: Console) -> None:
    """Print the figures as a table or as JSON, one row a combination, and what failed."""
    from dataclasses import asdict

    for failure in comparison.failures:
        print_error(f"{failure.item}: {failure.message}")
    if console.as_json:
        for choice in comparison.choices:
            combination, measures = choice.combination, asdict(choice.measures)
            names = {"combination": combination.name, "sampler": combination.sampler, "pruner": combination.pruner}
            print_json(
                {
                    **names,
                    "evenly_spaced": combination.is_evenly_spaced,
                    "run": str(choice.run.folder),
                    "page": str(comparison.page),
                    "reused": choice.reused,
                    **measures,
                }
            )
        for failure in comparison.failures:
            print_json({"combination": failure.item, "error": failure.message, "exit_code": failure.exit_code})
        return
    console.show(table(comparison))
    if any(choice.reused for choice in comparison.choices):
        console.write_line("* measured by an earlier command, whose run is used again")
    for name in (choice.combination.name for choice in comparison.choices if choice.combination.is_evenly_spaced):
        console.write_line(f"{name} is as many evenly spaced frames, good or bad: what the others are held against.")
    for choice in comparison.choices:
        seconds = choice.run.manifest.seconds if choice.run.manifest else {}
        console.detail(f"{choice.combination.name}: {', '.join(f'{stage} {spent:.2f}' for stage, spent in seconds.items())} s")
    console.write_line(f"Open {comparison.page}")


def table(comparison: Comparison) -> str:
    """Return the table: for a terminal in its width with the best values in bold; elsewhere plain, with every figure."""
    from rich.console import Console as RichConsole
    from rich.table import Table
    from rich.text import Text

    from vip.report.measures import COLUMNS, best

    terminal = bool(sys.stdout and sys.stdout.isatty())
    page = RichConsole(file=StringIO(), width=shutil.get_terminal_size().columns if terminal else 160, force_terminal=terminal)
    columns = [column for column in COLUMNS if page.width >= WIDE or not column.minor]
    measures = [choice.measures for choice in comparison.choices]
    tops = [best(column, measures) for column in columns]
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column("", overflow="fold")
    for column in columns:
        name = column.name.replace(" ", "\n") if " " in column.name else f"\n{column.name}"
        grid.add_column(name if terminal and page.width >= WIDE else column.name, justify="right", no_wrap=True)
    for i, choice in enumerate(comparison.choices):
        cells = [Text(column.shown(choice.measures).replace("\u202f", "")) for column in columns]
        if choice.reused:
            cells[[column.name for column in columns].index("Seconds")].append("*")
        for cell, top in zip(cells, tops, strict=True):
            cell.stylize("bold green" if i in top else "")
        grid.add_row(Text(printable(choice.combination.name)), *cells)
    for failure in comparison.failures:
        grid.add_row(Text(printable(failure.item)), Text("failed", "red"))
    with page.capture() as capture:
        page.print(grid)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())
