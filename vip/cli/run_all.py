"""`vip run`: extract, caption and report in one go."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from vip.cli import caption as caption_cli
from vip.cli import extract as extract_cli
from vip.cli import options
from vip.cli.console import AsJson, Console, Quiet, Verbose, print_json
from vip.cli.console import keyframes as count_of

if TYPE_CHECKING:
    from vip.video import Source

EXAMPLES = """[bold]Examples[/bold]
vip run video.mp4                              keyframes, captions and a page into video.vip/
vip run video.mp4 -n 24 --engine offline       24 keyframes, described without any API
vip run clips/ -o runs/                        a run folder for each video of a folder
"""


def run_command(
    context: typer.Context,
    videos: options.Videos,
    keyframes: options.Keyframes = None,
    out: options.Out = None,
    engine: options.EngineName = None,
    base_url: options.BaseUrl = None,
    recipe: options.Recipe = None,
    topic: options.Topic = None,
    language: options.Language = None,
    verify: options.Verify = None,
    max_usd: options.MaxUsd = None,
    prices: options.PricesFile = None,
    concurrency: options.Concurrency = None,
    query: options.Query = None,
    sampler: options.Sampler = None,
    candidates: options.Candidates = None,
    pruner: options.Pruner = None,
    embedder: options.Embedder = None,
    detector: options.Detector = None,
    labels: options.Labels = None,
    text_weight: options.TextWeight = None,
    min_objects: options.MinObjects = None,
    min_sharpness: options.MinSharpness = None,
    format: options.Format = None,  # noqa: A002 - the option's name
    start: options.Start = None,
    end: options.End = None,
    stream: options.Stream = None,
    timeout: options.Timeout = None,
    device: options.Device = None,
    precision: options.Precision = None,
    overwrite: options.Overwrite = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Do the whole job: choose keyframes, describe them, and write a page to look at."""
    from vip import registry
    from vip.asking.spending import Ledger
    from vip.config import CaptionSettings, ExtractSettings, resolve
    from vip.extraction.backends import load
    from vip.report import run

    console = Console(quiet=quiet, verbose=verbose, as_json=as_json)
    extraction = resolve(ExtractSettings, options.given(context, ExtractSettings))
    captioning = resolve(CaptionSettings, options.given(context, CaptionSettings))
    registry.check(
        sampler=extraction.sampler,
        pruner=extraction.pruner,
        embedder=extraction.embedder,
        detector=extraction.detector,
        engine=captioning.engine,
    )

    ledger = Ledger()  # the ceiling is one for all videos

    def work(video: Source, folder: Path) -> None:
        done = run(
            video,
            out=folder,
            overwrite=overwrite,
            extraction=extraction,
            captioning=captioning,
            observer=console,
            isolated=True,
            ledger=ledger,
        )
        if as_json:
            descriptions = [row.model_dump(mode="json") for row in done.descriptions]
            print_json({**extract_cli.summary(done, video), "descriptions": descriptions, "report": str(done.folder / "report.html")})
            return
        counts = f"{count_of(len(done.keyframes))} of {len(done.candidates)} candidates"
        console.say(f"{video.name}: {counts} in {done.folder}/keyframes/")
        caption_cli.show(done, console)
        console.say(f"Open {done.folder}/report.html")

    extract_cli.each(videos, out, work, console, prepare=partial(load, extraction))
