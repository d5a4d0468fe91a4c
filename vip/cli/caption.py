"""`vip caption`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vip.cli import options
from vip.cli.console import AsJson, Console, Quiet, Verbose, cost_of, keyframes, print_json
from vip.clock import clock

if TYPE_CHECKING:
    from vip.store import Run

EXAMPLES = """[bold]Examples[/bold]
vip caption video.vip/                                      with what works here: an API if a key is set, else offline
vip caption photos/ --engine offline                        any folder of pictures, nothing sent anywhere
vip caption video.vip/ --engine openai:gpt-5-mini           OPENAI_API_KEY is in the environment
vip caption video.vip/ --base-url http://localhost:8000/v1  vLLM, llama.cpp, Ollama, LM Studio …
"""

Folder = Annotated[Path, typer.Argument(help="A run folder, its keyframes/ folder, or any folder of pictures.", show_default=False)]


def caption_command(
    context: typer.Context,
    folder: Folder,
    engine: options.EngineName = None,
    base_url: options.BaseUrl = None,
    detector: options.Detector = None,
    labels: options.Labels = None,
    device: options.Device = None,
    precision: options.Precision = None,
    overwrite: options.Overwrite = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Describe keyframes: a dense caption each, then Focus, Action, Mood, Objects and Setting (FAMOuS)."""
    from vip.config import CaptionSettings, resolve
    from vip.pipeline import caption

    console = Console(quiet=quiet, verbose=verbose, as_json=as_json)
    settings = resolve(CaptionSettings, options.given(context, CaptionSettings))
    show(caption(folder, overwrite=overwrite, settings=settings, observer=console), console)


def show(run: Run, console: Console) -> None:
    """The descriptions for people, or as JSON."""
    if console.as_json:
        print_json({"run": str(run.folder), "descriptions": [row.model_dump(mode="json") for row in run.descriptions]})
        return
    engines = ", ".join(sorted({row.engine for row in run.descriptions}))
    console.say(f"{keyframes(len(run.descriptions))} described by {engines} in {run.folder}/descriptions.jsonl")
    for row in run.descriptions:
        console.item(row.keyframe_id if row.time_s is None else clock(row.time_s), row.dense_caption)
    if cost := cost_of([call for row in run.descriptions for call in row.calls]):
        console.say(cost)
