"""`vip evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vip.cli import options
from vip.cli.console import AsJson, Console, Quiet
from vip.cli.score import Metrics, print_results, print_tables
from vip.cli.tasks import Overwrite, Sources, Train, complete_task

EXAMPLES = """[bold]Examples[/bold]
vip evaluate runs/ --task infilling,prediction     without a model
vip evaluate corpus/ --task infilling --engine openai:gpt-5.4-mini
vip evaluate corpus/ --task infilling-1,infilling-2 --most 500
vip evaluate corpus/ --task infilling --metric all
vip evaluate val.csv videos/ --task nextqa-mc --frames 4,8,16,32
"""

WITHOUT = (
    *("describe_engine", "structure_engine", "recipe", "schema", "topic", "language", "verify", "prompts", "embedder", "detector"),
    *("frames", "picture_detail", "split", "request_timeout", "concurrency", "rpm", "tpm"),
)
"""Settings that say nothing about answers, or that few need: vip.toml has them."""

TaskNames = Annotated[
    str,
    options.option("--task", "-t", help="Names with commas between them; vip tasks lists them.", metavar="NAMES", complete=complete_task),
]
Frames = Annotated[
    str | None,
    options.option(
        "--frames", help="Frames of each video that are shown, by vip and evenly spaced; several numbers give a curve.", metavar="4,8,16"
    ),
]
Out = Annotated[Path | None, options.option("--out", "-o", help="Folder for all of it.", metavar="DIR", default="evaluation")]


def evaluate_command(
    context: typer.Context,
    sources: Sources,
    task: TaskNames,
    out: Out = None,
    frames: Frames = None,
    train: Train = None,
    metric: Metrics = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Make samples, answer them by an engine and the baselines, and score the answers: one folder, one page."""
    from vip.config import CaptionSettings, PredictSettings, SampleSettings, resolve
    from vip.errors import SomeFailedError
    from vip.store import unlinked
    from vip.tasks.evaluate import evaluate
    from vip.tasks.score_output import all_tables
    from vip.wording import counted

    console = Console(quiet=quiet, as_json=as_json)
    scores, written = evaluate(
        sources,
        [name.strip() for name in task.split(",") if name.strip()],
        out or unlinked(Path("evaluation")),
        samples=resolve(SampleSettings, {**options.given(context, SampleSettings), "frames": None}, note=console.note),
        predictions=resolve(PredictSettings, options.given(context, PredictSettings), note=console.note),
        asking=resolve(CaptionSettings, {**options.given(context, CaptionSettings), "context": None, "labels": None}, note=console.note),
        frames=_numbers(frames) if frames is not None else (),
        train=train,
        metrics=metric or (),
        overwrite=overwrite,
        observer=console,
    )
    if as_json:
        print_results(scores)
    else:
        print_tables(all_tables(scores), "text", console)
        for path in written:
            if path.suffix == ".html":
                console.write_line(f"Open {path}")
    if failed := sum(result.unscored.get("failed", 0) for result in scores.results):
        raise SomeFailedError(f"{counted(failed, 'sample')} could not be asked about; the same command asks again. The rows say why.")


def _numbers(text: str) -> list[int]:
    """Return numbers of frames from `4,8,16`.

    Raises:
        UsageError: it is no list of numbers from 1 on.
    """
    from vip.errors import UsageError

    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and 0 < int(word) <= 1000 for word in words):
        raise UsageError(f"--frames {text}: write numbers from 1 to 1000 with commas between them, such as 4,8,16,32.")
    return [int(word) for word in words]
