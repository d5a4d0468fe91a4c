"""`vip score`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vip.cli.completion import backends, choices
from vip.cli.console import AsJson, Console, Quiet, print_json
from vip.cli.data_statistics import data_tables, describe_data, print_data, write_page
from vip.cli.options import option

if TYPE_CHECKING:
    from vip.tasks.data_description import DataDescription
    from vip.tasks.judge import JudgeMetric
    from vip.tasks.score_files import Scores
    from vip.tasks.table import Table

EXAMPLES = """[bold]Examples[/bold]
vip score predictions.jsonl                   against samples.jsonl beside it
vip score gpt.jsonl copy-nearest.jsonl        each, and how they differ
vip score evaluation/ -o evaluation/          all of a folder, with a page
vip score p.jsonl --metric rouge-l --json
vip score p.jsonl --missing wrong             no answer is a wrong one
vip score results.json --task nextqa-mc --annotations val.csv
vip score evaluation/ --paper --table latex   the tables of the paper
vip score submission/ --suite value --annotations reference_data/
vip score --data train.csv --task nextqa-mc -o data.html
vip score results/ --suite nextqa --annotations mc.csv --annotations oe.csv
vip score mc.json --task nextqa-mc --annotations mc.csv --questions q.html
"""

FORMATS = ("text", "markdown", "latex", "csv", "json")
MISSING = ("refuse", "wrong", "leave-out")

Files = Annotated[
    list[Path] | None,
    typer.Argument(
        help="Files of predictions, of which those behind the first are compared with it; result.json files; or folders of both.",
        show_default=False,
    ),
]
Samples = Annotated[
    Path | None,
    option("--samples", help="The samples that were predicted.", metavar="FILE", default="samples.jsonl beside the predictions"),
]
TaskName = Annotated[str | None, option("--task", help="The task of published files; `vip tasks` lists them.", metavar="NAME")]
Annotations = Annotated[
    list[Path] | None,
    option("--annotations", help="Published annotations, as they are; may be given several times.", metavar="FILE"),
]
References = Annotated[Path | None, option("--references", help="Second references, as published.", metavar="FILE")]
VideoIndex = Annotated[Path | None, option("--video-index", help="Numbers and lengths of videos, as published.", metavar="FILE")]
Split = Annotated[str | None, option("--split", help="Split of the annotations, by its published name.", metavar="NAME")]
Metrics = Annotated[
    list[str] | None,
    option(
        "--metric",
        help="Score by this one, such as rouge-l or sentence-bert:FOLDER with an encoder of your own; repeatable. all: every one.",
        metavar="NAME",
        default="those that work here",
    ),
]
MissingOption = Annotated[
    str,
    option(
        "--missing",
        help="Samples without a prediction: refuse the file, count them as wrong, or leave them out.",
        metavar="HOW",
        default="refuse",
        complete=choices(*MISSING),
    ),
]
TableOption = Annotated[
    str, option("--table", help=f"Print tables as {', '.join(FORMATS)}.", metavar="FORMAT", default="text", complete=choices(*FORMATS))
]
Paper = Annotated[bool, typer.Option("--paper", metavar=" ", help="Print the tables of the task's paper, published rows beside your own.")]
Out = Annotated[Path | None, option("--out", "-o", help="Folder for results, tables and the page; or the page: NAME.html.", metavar="PATH")]

Suite = Annotated[
    str | None,
    option(
        "--suite", help="Score all tasks of a suite: value (--annotations names a folder), nextqa (files of both tasks).", metavar="NAME"
    ),
]
Runs = Annotated[
    list[Path] | None,
    option("--runs", help="Run folders of the samples, or the folder of the videos, for the pictures on pages; repeatable.", metavar="DIR"),
]
Questions = Annotated[
    Path | None,
    option("--questions", help="NExT-QA: page with the answers of all files, options and open answers side by side.", metavar="PAGE"),
]
Show = Annotated[
    list[str] | None,
    option("--show", help="Video on the page of --questions; repeatable.", metavar="ID", default="12 that the files differ on"),
]

Data = Annotated[
    list[str] | None,
    option(
        "--data",
        help="Print statistics of runs or a data set too; with --task nextqa-mc or nextqa-oe, of annotations. May be given several times.",
        metavar="PATH",
    ),
]
Setting = Annotated[
    list[str] | None,
    option(
        "--setting",
        help="What a file of predictions does not say: clips=16,features=Res+I3D. Once for each file, in their order.",
        metavar="NAME=VALUE",
    ),
]
Judge = Annotated[
    str | None,
    option("--judge", help="Let this engine judge open answers too; costs requests.", metavar="ENGINE", complete=backends("engine")),
]
JudgeLabels = Annotated[
    Path | None,
    option("--judge-labels", help="Verdicts of people, to hold the judge against: CSV with sample_id,correct.", metavar="FILE"),
]


def score_command(
    files: Files = None,
    samples: Samples = None,
    task: TaskName = None,
    annotations: Annotations = None,
    references: References = None,
    video_index: VideoIndex = None,
    split: Split = None,
    suite: Suite = None,
    metric: Metrics = None,
    missing: MissingOption = "refuse",
    table: TableOption = "text",
    paper: Paper = False,
    out: Out = None,
    runs: Runs = None,
    questions: Questions = None,
    show: Show = None,
    data: Data = None,
    setting: Setting = None,
    judge: Judge = None,
    judge_labels: JudgeLabels = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Score saved predictions, with error bars; compare files of the same samples. Needs no model and no network."""
    from vip.tasks.score_files import ScoreOptions, score_files
    from vip.tasks.score_output import all_tables, write_scores
    from vip.tasks.value.suite import suite_tables

    check_word("missing", missing, MISSING)
    check_word("table", table, FORMATS)
    console = Console(quiet=quiet, as_json=as_json)
    description = describe_data(task, data or [])
    if not files:
        _show_data(data or [], description, table, out, console)
        return
    options = ScoreOptions(
        samples=samples,
        task=task,
        annotations=tuple(annotations or ()),
        references=references,
        video_index=video_index,
        split=split,
        suite=suite,
        metrics=tuple(metric or ()),
        judge=_open_judge(judge, judge_labels, console),
        settings=tuple(map(_read_setting, setting or ())),
        missing=missing,  # type: ignore[arg-type]  # checked above
    )
    scores = score_files(files, options, observer=console)
    if as_json:
        print_results(scores)
        if suite == "value":
            _print_averages(scores)
    else:
        own = data_tables(data or [], description, max(result.n for result in scores.results))
        of_suite = suite_tables(scores.results) if suite == "value" and not paper else []
        print_tables([*all_tables(scores, paper=paper or suite == "nextqa"), *of_suite, *own], table, console)
    if description is not None:
        print_data(description, console)
    if questions is not None:
        from vip.tasks.nextqa.answers_page import write_answers_page

        write_answers_page(scores, questions, folders=runs or (), video_index=video_index, show=show or ())
        console.write_line(f"Open {questions}")
    if out is not None:
        written = write_scores(scores, out, runs=runs or ())
        if description is not None and out.suffix not in {".html", ".htm"}:
            written.append(write_page(description, out, in_folder=True))
        for path in written:
            console.write_line(f"{'Open' if path.suffix == '.html' else 'Wrote'} {path}")


def _open_judge(engine: str | None, labels: Path | None, console: Console) -> JudgeMetric | None:
    from vip.config import CaptionSettings, resolve
    from vip.errors import UsageError
    from vip.tasks.judge import engine_judge, read_labels

    if engine is None:
        if labels is not None:
            raise UsageError("--judge-labels needs a judge: --judge ENGINE.")
        return None
    known = read_labels(labels) if labels else None
    return engine_judge(resolve(CaptionSettings, {"engine": engine}, note=console.note), labels=known, observer=console)


def _read_setting(text: str) -> dict[str, str]:
    """Return `clips=16,features=Res+I3D` as a table.

    Raises:
        UsageError: it is of another form.
    """
    from vip.errors import UsageError

    pairs = [part.partition("=") for part in text.split(",")]
    if not all(name.strip().isidentifier() and sign and value.strip() for name, sign, value in pairs):
        raise UsageError(f"--setting {text}: write names and values, such as clips=16,features=Res+I3D.")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _show_data(data: list[str], description: DataDescription | None, table: str, out: Path | None, console: Console) -> None:
    """Show the statistics of data without any score.

    Raises:
        UsageError: there is nothing to score and nothing to describe.
    """
    from vip.errors import UsageError

    if not data:
        raise UsageError("Name a file of predictions. To describe a data set without scores, name it with --data.")
    if description is None and (out is not None or console.as_json):
        raise UsageError("Of runs and data sets there are tables only. Leave -o and --json out, or name the --task of annotations.")
    tables = data_tables(data, description, None)
    if not console.as_json:
        print_tables(tables, table, console)
    if description is not None:
        print_data(description, console)
        if out is not None:
            console.write_line(f"Open {write_page(description, out, in_folder=False)}")


def _print_averages(scores: Scores) -> None:
    """Print the averages of VALUE; a task that was not scored is missing, and makes them partial."""
    from vip.tasks.value.suite import category_averages, meta_average, target_scores

    targets = target_scores(scores.results)
    averages = [("meta_average", meta_average(targets)), *category_averages(targets).items()]
    rows = {name: {"value": one.rounded, "partial": one.is_partial, "missing": one.missing} for name, one in averages}
    print_json({"suite": "value", "scores": targets, "averages": rows})


def check_word(name: str, word: str, known: tuple[str, ...]) -> None:
    from vip.errors import UsageError, did_you_mean

    if word not in known:
        raise UsageError(f'--{name} knows no "{word}".{did_you_mean(word, known)}')


def print_results(scores: Scores) -> None:
    """Print each result, and the differences, as JSON."""
    from dataclasses import asdict

    from vip.tasks.score_output import as_json_row

    for result in scores.results:
        print_json(as_json_row(result))
    if scores.differences:
        rows: list[dict[str, Any]] = [asdict(one) for one in scores.differences]
        print_json({"differences": rows})


def print_tables(tables: list[Table], form: str, console: Console) -> None:
    """Print tables in a format of `FORMATS`."""
    from vip.tasks.table import render

    for number, one in enumerate(tables):
        if number and form != "json":
            console.write_line()
        for line in render(one, form).split("\n"):  # type: ignore[arg-type]  # checked above
            console.write_line(line)
