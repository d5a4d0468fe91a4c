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
from vip.wording import counted

if TYPE_CHECKING:
    from vip.video import Source

EXAMPLES = """[bold]Examples[/bold]
vip run video.mp4                    keyframes, captions, a page: video.vip/
vip run video.mp4 -n 24 --engine offline         described without any API
vip run talk.mp4 --words auto        with the subtitles around each keyframe
vip run talk.mp4 --words subtitles,text          also the text in the pictures
vip run talk.mp4 --words speech --speech-model base      what is said
vip run clips/ -o runs/              a run folder for each video in a folder
vip run https://youtu.be/YE7VzlLtp-4     a page of a video site
vip run talk.mp4 --engine openai:gpt-5.4-mini --dry-run        what it costs
"""


def run_command(
    context: typer.Context,
    videos: options.Videos,
    out: options.Out = None,
    recursive: options.Recursive = False,
    overwrite: options.Overwrite = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
    dry_run: options.DryRun = False,
) -> None:
    """Do the whole job: choose keyframes, describe them, and write a page to look at."""
    from vip import registry
    from vip.captioning.caption_job import check, expected_cost
    from vip.config import CaptionSettings, ExtractSettings, RunSettings, resolve
    from vip.extraction.backends import load
    from vip.llm.budget import Budget
    from vip.pipeline import check_sources, extract_with_words, run

    console = Console(quiet=quiet, verbose=verbose, as_json=as_json)
    extraction = resolve(ExtractSettings, options.given(context, ExtractSettings), note=console.note)
    captioning = resolve(CaptionSettings, options.given(context, CaptionSettings), note=console.note)
    words = resolve(RunSettings, options.given(context, RunSettings), note=console.note)
    registry.check(
        sampler=extraction.sampler,
        pruner=extraction.pruner,
        embedder=extraction.embedder,
        detector=extraction.detector,
        engine=captioning.engine,
    )
    check(captioning, asks=not dry_run)
    check_sources(words, extraction)
    budget = Budget()  # one ceiling for all videos

    def work(video: Source, folder: Path) -> None:
        done = run(
            video,
            out=folder,
            overwrite=overwrite,
            extraction=extraction,
            captioning=captioning,
            words=words.words,
            speech_model=words.speech_model,
            speech_language=words.speech_language,
            observer=console,
            isolated=True,
            budget=budget,
        )
        if as_json:
            descriptions = [row.model_dump(mode="json") for row in done.descriptions]
            print_json({**extract_cli.summary(done, str(video)), "descriptions": descriptions, "report": str(done.folder / "report.html")})
            return
        counts = f"{counted(len(done.keyframes), 'keyframe')} of {counted(len(done.candidates), 'candidate')}"
        console.write_line(f"{video.name}: {counts} in {done.folder}/keyframes/")
        caption_cli.show(done, console)

    def only_extract(video: Source, folder: Path) -> None:
        done = extract_with_words(video, out=folder, overwrite=overwrite, settings=extraction, words=words, observer=console, isolated=True)
        folders.append(done.folder)

    folders: list[Path] = []
    work_on = only_extract if dry_run else work
    extract_cli.process_each(videos, out, work_on, console, recursive=recursive, prepare=partial(load, extraction))
    if dry_run:
        caption_cli.show_cost(expected_cost(folders, overwrite=overwrite, settings=captioning), console)
    else:
        caption_cli.suggest_local_model(captioning, console)
