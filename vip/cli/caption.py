"""`vip caption`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vip.cli import options
from vip.cli.console import AsJson, Console, Quiet, Verbose, print_json, print_json_rows
from vip.cli.extract import show_index
from vip.timecode import timecode
from vip.wording import counted

if TYPE_CHECKING:
    from vip.captioning.estimate import Estimate
    from vip.config import CaptionSettings
    from vip.store import Run

REPORT = "report.html"
PAPER_TOKENS = 114  # Table 1 of the paper: mean length of a caption
MOST_SHOWN = 100  # keyframes of a run
EXAMPLES = """[bold]Examples[/bold]
vip caption video.vip/                   an API if a key is set, else offline
vip caption photos/ --engine offline     any folder of pictures, nothing sent
vip caption runs/*.vip --engine openai:gpt-5.4-mini --dry-run
vip caption runs/*.vip --engine openai:gpt-5.4-mini --max-usd 20 --verify
vip caption runs/*.vip --engine openai:gpt-5.4-mini --batch
vip caption video.vip/ --base-url http://localhost:8000/v1
vip caption video.vip/ --engine transformers        a small model, in here
vip caption video.vip/ --recipe paper --topic "A dog learns to surf"
"""

Folders = Annotated[
    list[Path],
    typer.Argument(help="Run folders, their keyframes/ folders, folders of runs, or any folders of pictures.", show_default=False),
]
Batch = Annotated[
    bool,
    options.switch("--batch", help="Ask through the server's Batch API: half the price, within a day.", panel=options.MONEY),
]
Status = Annotated[bool, options.switch("--status", help="With --batch: show the progress of the batches.", panel=options.MONEY)]


def caption_command(
    context: typer.Context,
    folders: Folders,
    overwrite: options.Overwrite = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
    dry_run: options.DryRun = False,
    batch: Batch = False,
    status: Status = False,
) -> None:
    """Describe keyframes: a dense caption each, then Focus, Action, Mood, Objects and Setting (FAMOuS)."""
    from vip import store
    from vip.captioning import caption_job
    from vip.config import CaptionSettings, resolve
    from vip.extraction.picture_folder import list_pictures
    from vip.pipeline import caption

    console = Console(quiet=quiet, verbose=verbose, as_json=as_json)
    settings = resolve(CaptionSettings, options.given(context, CaptionSettings), note=console.note)
    runs = store.runs_in(folders)
    if status:
        show_status(runs, batch, settings, console)
        return
    if dry_run:
        show_cost(
            caption_job.expected_cost(runs, overwrite=overwrite, in_batches=batch, settings=settings, list_pictures=list_pictures), console
        )
        return
    for run in caption(runs, overwrite=overwrite, in_batches=batch, settings=settings, observer=console):
        show(run, console)
    for folder in folders:
        if store.home_of(folder) not in runs:
            show_index(folder, console)
    suggest_local_model(settings, console)


def suggest_local_model(settings: CaptionSettings, console: Console) -> None:
    """Name the small local model, if only the missing key made the engine offline."""
    from vip import registry
    from vip.captioning.session import is_auto_offline

    if not is_auto_offline(settings, os.environ):
        return
    install = "" if find_spec("torch") and find_spec("transformers") else ", after pip install 'vip-keyframes[transformers]'"
    console.note(f"Without a key, --engine transformers describes what it sees by {registry.local_model()}{install}.")


def show_cost(expected: Estimate, console: Console) -> None:
    """Print what describing would cost, for people or as JSON."""
    if console.as_json:
        print_json(asdict(expected))
    else:
        console.write_line(f"{counted(expected.keyframes, 'keyframe')} to describe: {expected}.")


def show_status(runs: Sequence[Path], batch: bool, settings: CaptionSettings, console: Console) -> None:
    """Print the progress of the batches of these folders, for people or as JSON."""
    from vip.captioning import caption_job
    from vip.errors import UsageError

    if not batch:
        raise UsageError("--status shows the progress of batches. Add --batch.")
    jobs = caption_job.batches_of(runs, settings, console)
    for job in jobs:
        if console.as_json:
            print_json({**job.model_dump(mode="json"), "is_strange": job.is_strange})
        else:
            done = f"{job.completed + job.failed:,} of {job.rows:,} done, {job.failed:,} failed"
            where = job.job or "not handed in yet"
            console.write_item(f"{job.part}", f"{job.status_text}, {done}, {job.size_bytes / 1e6:.1f} MB, {where}, since {job.created_utc}")
    if not jobs:
        console.write_line("No batches were handed in for these folders.")


def show(run: Run, console: Console) -> None:
    """Print the descriptions, all as JSON or the first ones for people."""
    if console.as_json:
        print_json_rows({"run": str(run.folder)}, "descriptions", (row.model_dump(mode="json") for row in run.each_description()))
        return
    count, engines, summary = _sum_up(run)
    console.write_line(f"{counted(count, 'keyframe')} described by {', '.join(engines)} in {run.folder}/descriptions.jsonl")
    for row in islice(run.each_description(), MOST_SHOWN):
        console.write_item(row.keyframe_id if row.time_s is None else timecode(row.time_s), row.dense_caption)
    if count > MOST_SHOWN:
        console.write_item("…", f"and {count - MOST_SHOWN:,} more")
    console.write_line(summary)
    console.write_line(f"Open {run.folder / REPORT}")


def _sum_up(run: Run) -> tuple[int, list[str], str]:
    """Return the number of descriptions, their engines, and a sentence on their length and their checks."""
    from vip.caption_length import tokens_in

    count = tokens = claims = marked = 0
    engines: set[str] = set()
    for row in run.each_description():
        count, tokens = count + 1, tokens + tokens_in(row.dense_caption)
        engines.add(row.engine)
        checks = row.verification.checks if row.verification else ()
        claims, marked = claims + len(checks), marked + sum(check.verdict == "unsupported" for check in checks)
    verified = f"; {marked} of {claims} claims found no support in their frame" if claims else ""
    mean = f"{tokens / count:.0f}" if count else "no"
    return count, sorted(engines), f"Dense captions have {mean} tokens on average (the paper's {PAPER_TOKENS}){verified}"
