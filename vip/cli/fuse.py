"""`vip fuse`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from vip.cli import options
from vip.cli.console import AsJson, Console, Quiet, print_json
from vip.wording import counted

EXAMPLES = """[bold]Examples[/bold]
vip fuse video.jsonl subtitles.jsonl -o both.jsonl
vip fuse tvr_video.json tvr_subtitles.json -o tvr_both.json
"""

First = Annotated[
    Path, typer.Argument(help="Predictions with scores: .jsonl of vip predict, or .json of a VALUE server.", show_default=False)
]
Second = Annotated[Path, typer.Argument(help="Predictions of the same samples by another model.", show_default=False)]
Out = Annotated[Path, options.option("--out", "-o", help="File to write.", metavar="FILE", default="fused.jsonl")]
Overwrite = Annotated[bool, options.switch("--overwrite", help="Replace a file that is there.")]


def fuse_command(
    first: First,
    second: Second,
    out: Out = Path("fused.jsonl"),
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Average the scores of two models, as the two-stream fusion of VALUE."""
    from vip.tasks.value.fuse import fuse

    console = Console(quiet=quiet, as_json=as_json)
    done = fuse(first, second, out, overwrite=overwrite)
    if as_json:
        print_json({key: str(value) if isinstance(value, Path) else value for key, value in asdict(done).items()})
        return
    console.write_line(f"{counted(done.answers, 'answer')} in {out}; {done.changed:,} are not those of {first}.")
