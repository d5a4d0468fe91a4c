"""`vip ask`: a question about a video, answered with citations of its frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vip.cli import options
from vip.cli.console import AsJson, Console, Quiet, Verbose, print_json
from vip.errors import SomeFailedError, UsageError
from vip.untrusted import one_line
from vip.wording import again, counted, option

if TYPE_CHECKING:
    from vip.captioning.estimate import Estimate
    from vip.search.ask_records import AskedFrame, VideoAnswer

EXAMPLES = """[bold]Examples[/bold]
vip ask talk.mp4 "why does the pump fail?"       an answer with its moments
vip ask talk.vip "what is on the table?"         frames of a run
vip ask runs/ corpus/ "who repairs a pump?"      search many, then answer
vip ask talk.mp4 "who speaks?" --thoughts        what each frame shows
vip ask talk.mp4 "who speaks?" --frames 24 --max-usd 0.5
vip ask talk.mp4 "who speaks?" --embedder clip   frames that fit it
vip ask talk.mp4 "who speaks?" --engine openai:gpt-5.4-mini --dry-run
vip ask talk.mp4 "who speaks?" --json | jq .status
"""
WITHOUT = (
    *("keyframes", "query", "pruner", "text_weight", "min_objects", "min_sharpness", "format", "candidates"),
    *("recipe", "topic", "context", "verify"),
)
"""Settings of keyframes that the question decides, and of captions that say nothing about an answer."""
MOST_LETTERS = 300  # of the words of a frame

Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE...",
        help="A video file, an http(s) address, a page of a video site, or a run folder. Folders of runs, what vip batch wrote,"
        " and several runs are searched first.",
        show_default=False,
    ),
]
Question = Annotated[str, typer.Argument(metavar="QUESTION", help="What you want to know, in quotes.", show_default=False)]
Frames = Annotated[int, options.option("--frames", help="How many keyframes are looked at, one request each.", metavar="N", default="10")]
Out = Annotated[Path | None, options.option("--out", "-o", help="The run folder of a video.", metavar="DIR", default="NAME.vip")]
NoWords = Annotated[bool, options.switch("--no-words", help="Leave aside subtitles in the video or beside it.")]
Thoughts = Annotated[bool, options.switch("--thoughts", help="Show what each frame shows, and how the answer follows.")]


def ask_command(
    context: typer.Context,
    sources: Sources,
    question: Question,
    frames: Frames = 10,
    thoughts: Thoughts = False,
    no_words: NoWords = False,
    out: Out = None,
    overwrite: options.Overwrite = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
    dry_run: options.DryRun = False,
) -> None:
    """Ask a question about a video, or about many; the answer cites the frames that show it."""
    from vip.captioning import caption_job
    from vip.cli.caption import suggest_local_model
    from vip.config import CaptionSettings, ExtractSettings, resolve
    from vip.search.ask import ask_moments, check_question, expected_cost, nothing_found
    from vip.search.ask_corpus import check_sources, choose_frames_of_corpus, is_corpus
    from vip.search.ask_frames import choose_frames, run_folder_of

    console = Console(quiet=quiet, verbose=verbose, as_json=as_json)
    given = options.given(context, ExtractSettings)
    is_search = len(sources) > 1 or is_corpus(sources[0])
    _check_order(sources, question)
    if is_search:
        check_sources(sources)
        _check_unused({"out": out, **given}, "runs and data sets", searched=True)
    elif run_folder_of(sources[0]) is not None:
        _check_unused({"out": out, **given}, "a run")
    extraction = resolve(ExtractSettings, given, note=console.note)
    captioning = resolve(CaptionSettings, options.given(context, CaptionSettings), note=console.note)
    question = check_question(question)
    caption_job.check(captioning, asks=not dry_run)
    if is_search:
        chosen = choose_frames_of_corpus(sources, question, frames=frames, embedder=extraction.embedder, observer=console)
    else:
        chosen = choose_frames(
            sources[0],
            question,
            frames=frames,
            words=not no_words,
            out=out,
            overwrite=overwrite,
            settings=extraction,
            observer=console,
            isolated=True,
        )
    for note in chosen.notes:
        console.note(note)
    if not chosen.keyframes:
        show(nothing_found(question, chosen), console)
        return
    if dry_run:
        _show_cost(expected_cost(question, chosen.keyframes, captioning), console)
        return
    answer = ask_moments(question, chosen.keyframes, captioning, observer=console, descriptions=chosen.descriptions)
    show(answer, console, thoughts=thoughts)
    if answer.status == "not_asked":
        suggest_local_model(captioning, console)
    if answer.failed:
        count = f"{len(answer.failed)} of {counted(len(answer.frames), 'frame')}"
        raise SomeFailedError(f"{count} could not be looked at: {answer.failed[0].problem} {again()} to try only those.")


def show(answer: VideoAnswer, console: Console, *, thoughts: bool = False) -> None:
    """Print an answer and its moments, for people or as JSON."""
    from vip.search.ask_ranking import fitting_words

    if console.as_json:
        print_json(answer.model_dump(mode="json"))
        return
    if answer.status == "nothing_found":
        console.write_line("Nothing fits the question, so no model was asked. Ask with other words, or describe the keyframes first.")
        return
    if answer.sentence is None:
        console.write_line(f"No model was asked: {answer.engine} answers no questions. Moments whose words fit the question come first:")
        for frame in answer.frames:
            _show_moment(frame, fitting_words(answer.question, frame, MOST_LETTERS - 4), console)
        return
    console.write_line(one_line(answer.sentence))
    shown = answer.frames if thoughts else answer.citations or [frame for frame in answer.frames if frame.is_relevant]
    for frame in shown:
        _show_moment(frame, frame.observation or frame.problem, console)
    if thoughts and answer.reasoning:
        console.write_line(f"Reasoning: {one_line(answer.reasoning)}")
    looked = len(answer.frames) - len(answer.failed)
    console.write_line(f"{counted(looked, 'frame')} looked at by {answer.engine}, {len(answer.citations)} cited.")


def _show_moment(frame: AskedFrame, text: str | None, console: Console) -> None:
    said = one_line(text or "")
    said = said if len(said) <= MOST_LETTERS else f"{said[: MOST_LETTERS - 2]} …"
    console.write_item(f"[{frame.label}]", f"{said} ({frame.image_path})" if said else frame.image_path)


def _show_cost(expected: Estimate, console: Console) -> None:
    if console.as_json:
        print_json(asdict(expected))
    elif expected.requests:
        console.write_line(f"{counted(expected.keyframes, 'frame')} to look at: {expected}.")
    else:
        console.write_line(f"{counted(expected.keyframes, 'frame')} to show, and no model to ask: it costs nothing.")


def _check_order(sources: Sequence[str], question: str) -> None:
    """Refuse a question in front of its source.

    Raises:
        UsageError: the last argument is a file or folder, and the first is none.
    """
    if _is_there(question) and not any("://" in source or _is_there(source) for source in sources):
        raise UsageError(f"The question comes last: `vip ask {one_line(question)} QUESTION`.")


def _is_there(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # no name of a file: it is too long
        return False


def _check_unused(given: Mapping[str, object], what: str, *, searched: bool = False) -> None:
    """Refuse what runs have settled already; a search may be told which embedder made their vectors.

    Raises:
        UsageError: one of these options was given.
    """
    from vip.config import CaptionSettings

    allowed = set(CaptionSettings.model_fields) - {"embedder", "detector", "labels"} | ({"embedder"} if searched else set())
    for name, value in given.items():
        if value is not None and name not in allowed:
            raise UsageError(
                f"{option(name)} says nothing about {what}, whose frames are analyzed already. Leave it out, or name the video."
            )
