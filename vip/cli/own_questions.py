"""`vip samples --task nextqa-mc --from questions.csv`: options for questions of one's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from vip.cli.console import Console, print_json
from vip.cli.options import option
from vip.wording import counted
from vip.wording import option as named

if TYPE_CHECKING:
    from vip.config import SampleSettings

TASK = "nextqa-mc"
FROM_CAPTIONS = ("fiber",)
"""Tasks whose samples are made from captions: --from names them, as arguments do."""

FromQuestions = Annotated[
    Path | None,
    option(
        "--from",
        help="nextqa-mc: find distractors for your own questions, with a page to check them. fiber: captions, as arguments.",
        metavar="CSV",
    ),
]
Encoder = Annotated[
    str | None,
    option(
        "--encoder",
        help="With --from: folder or model of sentence-transformers that says how alike texts are.",
        metavar="NAME",
        default="sentence-transformers/all-MiniLM-L6-v2",
    ),
]
StoredVectors = Annotated[
    Path | None,
    option("--vectors", help="With --from: npz with questions and answers, a row each, instead of an encoder.", metavar="FILE"),
]


@dataclass(frozen=True, slots=True)
class OwnQuestionsRequest:
    """What the command line says."""

    source: Path
    encoder: str | None
    vectors: Path | None
    task: str
    sources: list[str] | None
    """Published files, which do not go together with questions of one's own."""
    out: Path
    overwrite: bool


def make_own_samples(request: OwnQuestionsRequest, settings: SampleSettings, console: Console) -> None:
    """Write the csv with its page, and samples where the name of the file to write ends in .jsonl.

    Raises:
        UsageError: options contradict each other, or a file is there already.
    """
    from vip.errors import InputError
    from vip.metrics.sentence_bert import DEFAULT_ENCODER
    from vip.tasks.files import check_new, write_samples
    from vip.tasks.frames import make_samples
    from vip.tasks.nextqa.own_questions import make_own_questions, open_embed
    from vip.tasks.registry import load_task
    from vip.tasks.task import SampleSource

    _check(request)
    table = request.out if request.out.suffix == ".csv" else request.out.with_suffix(".csv")
    html = (table.with_suffix(".html"), table.with_name(f"{table.stem}-1.html"))  # the first of several, where there are many questions
    for path in dict.fromkeys((request.out, table, *html)):
        check_new(path, overwrite=request.overwrite)
    if table.exists() and request.source.exists() and table.samefile(request.source):
        raise InputError(f"{table} holds the questions themselves. Name another file with -o.")
    with console.track("Finding distractors", 0):
        embed = open_embed(request.source, encoder=request.encoder or DEFAULT_ENCODER, vectors=request.vectors)
        made = make_own_questions(request.source, table, embed=embed, seed=settings.seed)
    if request.out != table:
        write_samples(request.out, make_samples(load_task(TASK), SampleSource(paths=(str(table),), settings=settings)))
    if console.as_json:
        pages = [str(page) for page in made.pages]
        of_questions = {"questions": made.complete, "lacking": made.lacking, "binary": made.binary, "places": list(made.places)}
        print_json({"task": TASK, **of_questions, "path": str(request.out), "csv": str(table), "pages": pages})
        return
    console.write_line(f"{counted(made.complete, 'question')} with five options in {table}")
    if request.out != table:
        console.write_line(f"{counted(made.complete, 'sample')} of {TASK} in {request.out}")
    if made.lacking:
        console.write_line(f"{counted(made.lacking, 'question')} with too few distractors: add options by hand on the page.")
    if made.binary:
        console.write_line(f"{counted(made.binary, 'question')} of the type DB left out: they have no options.")
    console.write_line(f"Check them: open {', '.join(map(str, made.pages))}")


def _check(request: OwnQuestionsRequest) -> None:
    from vip.errors import UsageError

    if request.task != TASK:
        raise UsageError(f"{named('from')} makes options for {TASK}, not for {request.task}. Write {named('task', TASK)}.")
    if request.sources:
        raise UsageError(f"{named('from')} takes your own questions, and {request.sources[0]} is given too. Leave one of them out.")
    if request.encoder and request.vectors:
        raise UsageError(f"{named('encoder')} and {named('vectors')} exclude each other. Leave one of them out.")
