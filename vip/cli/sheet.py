"""`vip sheet`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vip.cli.completion import picture_models
from vip.cli.console import AsJson, Console, Quiet, print_json
from vip.cli.options import option
from vip.wording import counted

EXAMPLES = """[bold]Examples[/bold]
vip sheet talk.vip                                 for 4,000 tokens
vip sheet talk.vip --tokens 1500                   fewer and smaller pictures
vip sheet talk.vip --model claude-sonnet-5 --json  what each sheet costs there
"""
DEFAULT_MODEL = "gpt-5.4-mini"

Folder = Annotated[Path, typer.Argument(help="A run folder, or any folder of pictures that vip described.", show_default=False)]
Tokens = Annotated[int, typer.Option("--tokens", help="What all sheets may cost together.", metavar="N", min=1, rich_help_panel=None)]
Model = Annotated[
    str,
    option(
        "--model",
        help="The model that will see them; it says how tokens are counted.",
        metavar="NAME",
        default=True,
        complete=picture_models,
    ),
]
Prices = Annotated[Path | None, option("--prices", help="TOML file with models of your own.", metavar="FILE")]


def sheet_command(
    folder: Folder,
    tokens: Tokens = 4000,
    model: Model = DEFAULT_MODEL,
    prices: Prices = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Put the keyframes of a run on contact sheets with time stamps, under a budget of tokens."""
    from vip.export.stamped_sheet import FOLDER, INDEX, write_sheets
    from vip.llm.prices import load_prices
    from vip.store import load_run

    console = Console(quiet=quiet, as_json=as_json)
    done = write_sheets(load_run(folder), model=model, tokens=tokens, prices=load_prices(prices), note=console.note)
    out = folder / FOLDER
    if as_json:
        print_json({"folder": str(out), **done.model_dump(mode="json")})
    frames = sum(len(sheet.cells) for sheet in done.sheets)
    for sheet in done.sheets:
        console.write_line(f"{out / sheet.path}: {sheet.width_px} x {sheet.height_px}, {counted(sheet.tokens, 'token')}")
    pictures = counted(len(done.sheets), "picture")
    console.write_line(f"{counted(frames, 'keyframe')} on {pictures}: {done.tokens:,} tokens of {model}. Cells and times: {out / INDEX}")
