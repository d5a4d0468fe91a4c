"""`vip tasks`, `vip samples` and `vip predict`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vip.cli import options
from vip.cli import zero_shot as by_similarity
from vip.cli.caption import Batch
from vip.cli.console import AsJson, Console, Quiet, print_json
from vip.cli.hero import Tokenizer, is_hero, predict_by_hero
from vip.cli.own_questions import FROM_CAPTIONS, Encoder, FromQuestions, OwnQuestionsRequest, StoredVectors, make_own_samples
from vip.cli.train_fiber import Beams, Parser, is_filler, predict_by_filler
from vip.wording import counted, option

if TYPE_CHECKING:
    from vip.tasks.predict import PredictionSummary

TASKS_EXAMPLES = """[bold]Examples[/bold]
vip tasks                  what there is, and where its data comes from
vip tasks --suite value    the tasks of one benchmark
vip tasks --suite value --data annotations/     what its files hold
vip tasks --json
"""
SAMPLES_EXAMPLES = """[bold]Examples[/bold]
vip samples video.vip/ --task infilling
vip samples corpus/ --task prediction-3 --representation dense
vip samples runs/ --task infilling --pictures --labels labels.csv
vip samples val.csv videos/ --task nextqa-mc --frames 8
vip samples val.json --task fiber --videos clips/ --frames 8
vip samples corpus/ --task infilling --most 1500 --seed 7
vip samples --task nextqa-mc --from questions.csv -o mine.csv
"""
PREDICT_EXAMPLES = """[bold]Examples[/bold]
vip predict samples.jsonl --engine openai:gpt-5.4-mini
vip predict samples.jsonl --engine openai:gpt-5.4-mini --dry-run
vip predict samples.jsonl --engine openai:gpt-5.4-mini --batch
vip predict samples.jsonl --base-url http://localhost:8000/v1
vip predict samples.jsonl --baseline copy-nearest -o nearest.jsonl
vip predict --task nextqa-mc --annotations val.csv --videos clips/ --frames 8
vip predict --task nextqa-mc --annotations val.csv --baseline longest
vip predict -t value-yc2r --annotations a.jsonl --videos v/ --zero-shot clip
"""

WITHOUT = (
    *("describe_engine", "structure_engine", "recipe", "schema", "topic", "language", "context", "verify", "prompts"),
    *("embedder", "detector", "labels"),
    *("targets", "representation", "pictures", "frames_folder"),
)
"""Settings of captions that say nothing about answers, and of samples that are made from runs."""


def _task_names() -> list[str]:
    from vip.tasks.registry import task_names

    return task_names()


def complete_task(start: str) -> list[str]:
    return [name for name in _task_names() if name.startswith(start)]


Suite = Annotated[str | None, options.option("--suite", help="Show the tasks of one benchmark: vip, value, …", metavar="NAME")]
TaskName = Annotated[
    str, options.option("--task", "-t", help="Name of the task; `vip tasks` lists them.", metavar="NAME", complete=complete_task)
]
SOURCES_HELP = "Run folders, folders of them, data sets; or published annotation files."
Sources = Annotated[list[str], typer.Argument(help=SOURCES_HELP, show_default=False)]
SourcesOrQuestions = Annotated[list[str] | None, typer.Argument(help=SOURCES_HELP, show_default=False)]
SamplesFile = Annotated[Path | None, typer.Argument(help="What vip samples wrote; or --task and --annotations.", show_default=False)]
TaskOfAnnotations = Annotated[
    str | None,
    options.option("--task", "-t", help="Task of the annotations; `vip tasks` lists them.", metavar="NAME", complete=complete_task),
]
Annotations = Annotated[
    list[str] | None,
    options.option("--annotations", help="Published annotation file, as it is. Repeatable.", metavar="FILE"),
]
SamplesOut = Annotated[Path, options.option("--out", "-o", help="File to write.", metavar="FILE", default="samples.jsonl")]
PredictionsOut = Annotated[Path, options.option("--out", "-o", help="File to write.", metavar="FILE", default="predictions.jsonl")]
Overwrite = Annotated[bool, options.switch("--overwrite", help="Replace the file that is there.")]
BaselineName = Annotated[
    str | None, options.option("--baseline", help="Answer without a model: copy-nearest, frequent-words, …", metavar="NAME")
]
Train = Annotated[
    Path | None, options.option("--train", help="Training set as published, for baselines that count its answers.", metavar="FILE")
]
ModelFolder = Annotated[
    Path | None,
    options.option("--model", help="Answer by a model: a folder of `vip train`, hero:FILE or t5:NAME.", metavar="DIR"),
]
Features = Annotated[
    list[Path] | None, options.option("--features", help="Features of the videos, for --model. Repeatable.", metavar="FILE")
]
TextFeatures = Annotated[
    Path | None, options.option("--text-features", help="Stored vectors of the questions, for a --model of such words.", metavar="FILE")
]


DataFolder = Annotated[
    Path | None, options.option("--data", help="Describe the published files in this folder, with --suite value.", metavar="DIR")
]
DataPage = Annotated[Path | None, options.option("--out", "-o", help="Page to write, with --data.", metavar="FILE")]


def tasks_command(
    suite: Suite = None, data: DataFolder = None, out: DataPage = None, as_json: AsJson = False, quiet: Quiet = False
) -> None:
    """List the tasks: what is asked, what each needs, where its data comes from."""
    from vip.errors import UsageError, did_you_mean
    from vip.tasks.registry import load_task, task_names

    console = Console(quiet=quiet, as_json=as_json)
    tasks = [load_task(name) for name in task_names()]
    suites = {task.info.suite for task in tasks if task.info.suite}
    if suite is not None and suite not in suites:
        raise UsageError(f'There is no suite "{suite}".{did_you_mean(suite, suites)}')
    if data is not None or out is not None:
        _describe_data(suite, data, out, console)
        return
    for task in tasks:
        if suite is not None and task.info.suite != suite:
            continue
        if as_json:
            info = task.info
            print_json(
                {
                    **{"task": task.name, "version": task.version, "paper": task.paper, "summary": info.summary, "data": info.data},
                    **{"needs": info.needs, "splits": list(info.splits), "groupings": list(info.groupings), "suite": info.suite},
                    "over_videos": info.over_videos,
                    **{"metrics": [metric.name for metric in task.metrics], "baselines": sorted(task.baselines)},
                }
            )
            continue
        console.write_line(f"{task.name}  {task.info.summary}")
        console.write_line(f"    {task.paper}. Data: {task.info.data}")
        about = [f"metrics: {', '.join(metric.name for metric in task.metrics)}" if task.metrics else ""]
        about += [f"splits: {', '.join(task.info.splits)}" if task.info.splits else ""]
        about += [f"baselines: {', '.join(task.baselines)}" if task.baselines else ""]
        about += ["shows frames of videos: --frames, --frames-by" if task.info.over_videos else "", task.info.needs]
        for line in filter(None, about):
            console.write_line(f"    {line}")


def _describe_data(suite: str | None, data: Path | None, out: Path | None, console: Console) -> None:
    """Print the statistics of the published files of VALUE, and write them as a page."""
    from vip.cli.score import print_tables
    from vip.errors import UsageError
    from vip.tasks.value.statistics import measure_folder
    from vip.tasks.value.statistics_page import statistics_json, statistics_tables, write_statistics_page

    if suite != "value" or data is None:
        raise UsageError(f"{option('data', 'DIR')} describes files of VALUE. Write `vip tasks --suite value --data DIR`.")
    found = measure_folder(data)
    if console.as_json:
        print_json(statistics_json(found))
    else:
        print_tables(statistics_tables(found), "text", console)
    if out is not None:
        write_statistics_page(out, found)
        if not console.as_json:
            console.write_line(f"Open {out}")


def samples_command(
    context: typer.Context,
    task: TaskName,
    sources: SourcesOrQuestions = None,
    out: SamplesOut = Path("samples.jsonl"),
    from_questions: FromQuestions = None,
    encoder: Encoder = None,
    vectors: StoredVectors = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Make the samples of a task from runs and data sets, or read them from published files."""
    from vip.config import SampleSettings, resolve
    from vip.errors import UsageError
    from vip.tasks.files import check_new, write_samples
    from vip.tasks.frames import make_samples
    from vip.tasks.registry import context_in, load_task
    from vip.tasks.task import SampleSource

    console = Console(quiet=quiet, as_json=as_json)
    settings = resolve(SampleSettings, options.given(context, SampleSettings), note=console.note)
    settings = settings.model_copy(update={"context": context_in(task) or settings.context})
    if from_questions is not None and task in FROM_CAPTIONS:
        sources, from_questions = [*(sources or ()), str(from_questions)], None
    if from_questions is not None:
        make_own_samples(OwnQuestionsRequest(from_questions, encoder, vectors, task, sources, out, overwrite), settings, console)
        return
    if not sources or encoder or vectors:
        raise UsageError(
            f"{option('encoder' if encoder else 'vectors')} goes with {option('from', 'CSV')}. Leave it out."
            if sources
            else f"Name run folders, data sets or published annotation files; or questions of your own with {option('from', 'CSV')}."
        )
    check_new(out, overwrite=overwrite)
    loaded = load_task(task)
    with console.track("Making samples", 0):
        count = write_samples(out, make_samples(loaded, SampleSource(paths=tuple(sources), settings=settings, note=console.note)))
    if as_json:
        print_json({"task": loaded.name, "version": loaded.version, "samples": count, "path": str(out)})
        return
    console.write_line(f"{counted(count, 'sample')} of {loaded.name} in {out}")


def predict_command(
    context: typer.Context,
    samples: SamplesFile = None,
    task: TaskOfAnnotations = None,
    annotations: Annotations = None,
    out: PredictionsOut = Path("predictions.jsonl"),
    baseline: BaselineName = None,
    train: Train = None,
    zero_shot: by_similarity.ZeroShot = None,
    video_features: by_similarity.VideoFeatures = None,
    video_index: by_similarity.VideoIndex = None,
    window: by_similarity.Window = 10,
    threshold: by_similarity.ThresholdOption = None,
    model: ModelFolder = None,
    features: Features = None,
    text_features: TextFeatures = None,
    tokenizer: Tokenizer = None,
    parser: Parser = None,
    beams: Beams = None,
    overwrite: Overwrite = False,
    dry_run: options.DryRun = False,
    batch: Batch = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Answer the samples of a task by an engine, a trained model, CLIP without training, or a baseline."""
    from vip.config import CaptionSettings, PredictSettings, SampleSettings, resolve
    from vip.errors import UsageError
    from vip.tasks.predict import expected_cost, predict, predict_with_baseline

    console = Console(quiet=quiet, as_json=as_json)
    settings = resolve(PredictSettings, options.given(context, PredictSettings), note=console.note)
    index_of_similarity = None if model is not None else video_index
    by_similarity.check_options(zero_shot, video_features, index_of_similarity, threshold, others=(samples, baseline, train, model))
    _check_ways(baseline, train, model, features, text_features)
    fills = is_filler(model, parser, beams)
    if is_hero(model, tokenizer, task):
        assert model is not None
        inputs = {"features": features or (), "video_index": video_index, "tokenizer": tokenizer}
        if samples is not None:
            raise UsageError(f"{model} reads annotations by itself. Leave {samples} out, and name {option('task', 'NAME')}.")
        done = predict_by_hero(context, model, task, annotations or [], out, inputs, overwrite=overwrite, console=console)
        show_predictions(done, console)
        return
    if zero_shot is not None:
        how = by_similarity.Similarity(video_features, video_index, window, threshold)
        done = by_similarity.predict_by_similarity(
            context, zero_shot, task, annotations or [], out, how, overwrite=overwrite, console=console
        )
        show_predictions(done, console)
        return
    if baseline == "human" and samples is None:
        show_predictions(_predict_human(context, task, annotations or [], out, overwrite=overwrite, console=console), console)
        return
    sources: list[Path] = []
    of_samples = [name for name, value in options.given(context, SampleSettings).items() if value is not None and name != "seed"]
    if task is not None or annotations or samples is None:
        samples = _samples_of_annotations(context, samples, task, annotations or [], out, overwrite=overwrite, console=console)
    elif of_samples == ["videos"] and model is None and baseline is None:
        sources.append(Path(context.params["videos"]))
    elif of_samples:
        raise UsageError(f"{samples} holds samples already: {option(of_samples[0])} is for `vip samples`. Leave it out.")
    if model is not None and fills:
        show_predictions(predict_by_filler(samples, out, model, features, parser, beams, overwrite=overwrite, console=console), console)
        return
    if model is not None:
        from vip.tasks.nextqa.trained_models import predict_with_model

        done = predict_with_model(samples, out, model, features=features or (), texts=text_features, overwrite=overwrite, observer=console)
        show_predictions(done, console)
        return
    if baseline is not None:
        done = predict_with_baseline(samples, out, baseline, train=train, seed=settings.seed, overwrite=overwrite, observer=console)
        show_predictions(done, console)
        return
    asking = resolve(CaptionSettings, options.given(context, CaptionSettings), note=console.note)
    if dry_run:
        expected = expected_cost(samples, settings=settings, asking=asking, sources=sources, in_batches=batch)
        if as_json:
            print_json({name: value for name, value in asdict(expected).items() if name != "keyframes"})
        console.write_line(f"{counted(expected.requests, 'sample')}: {expected}.")
        return
    done = predict(samples, out, settings=settings, asking=asking, sources=sources, in_batches=batch, overwrite=overwrite, observer=console)
    show_predictions(done, console)


def _predict_human(
    context: typer.Context, task: str | None, annotations: list[str], out: Path, *, overwrite: bool, console: Console
) -> PredictionSummary:
    """Score people on captions of VALUE: one of a clip against the others."""
    from vip.config import SampleSettings, resolve
    from vip.tasks.value.human import predict_human

    settings = resolve(SampleSettings, options.given(context, SampleSettings), note=console.note)
    return predict_human(task, annotations, out, settings, overwrite=overwrite)


def _check_ways(
    baseline: str | None, train: Path | None, model: Path | None, features: list[Path] | None, text_features: Path | None
) -> None:
    """Refuse options of one way of answering beside another.

    Raises:
        UsageError: they do not go together.
    """
    from vip.errors import UsageError

    if model is not None and (baseline is not None or train is not None):
        raise UsageError(f"{option('model')} answers by itself. Leave {option('baseline' if baseline else 'train')} out.")
    if model is None and (features or text_features):
        raise UsageError(f"{option('features' if features else 'text-features')} is for trained models. Add {option('model', 'DIR')}.")
    if train is not None and baseline is None:
        raise UsageError(f"{option('train')} is for baselines. Add {option('baseline', 'NAME')}, or leave it out.")


def _samples_of_annotations(
    context: typer.Context, samples: Path | None, task: str | None, annotations: list[str], out: Path, *, overwrite: bool, console: Console
) -> Path:
    """Write the samples of published files beside the predictions and return their path.

    Raises:
        UsageError: samples are given too, or the task or the annotations are not; or there are predictions already.
    """
    from vip.config import SampleSettings, resolve
    from vip.errors import UsageError
    from vip.tasks.files import check_new, write_samples
    from vip.tasks.frames import make_samples
    from vip.tasks.registry import context_in, load_task
    from vip.tasks.task import SampleSource

    if samples is not None:
        raise UsageError(f"{samples} holds samples already. Leave {option('task')} and {option('annotations')} out.")
    if task is None or not annotations:
        raise UsageError(f"Name the file that `vip samples` wrote, or {option('task', 'NAME')} and {option('annotations', 'FILE')}.")
    check_new(out, overwrite=overwrite)
    settings = resolve(SampleSettings, options.given(context, SampleSettings), note=console.note)
    settings = settings.model_copy(update={"context": context_in(task) or settings.context})
    path = out.with_name(f"{out.stem}.samples.jsonl")
    with console.track("Making samples", 0):
        write_samples(path, make_samples(load_task(task), SampleSource(paths=tuple(annotations), settings=settings, note=console.note)))
    return path


def show_predictions(done: PredictionSummary, console: Console) -> None:
    """Print what was written, and fail where an engine failed for single samples.

    Raises:
        SomeFailedError: some samples could not be asked about.
    """
    from vip.errors import SomeFailedError

    count, statuses = sum(done.statuses.values()), done.statuses
    if console.as_json:
        print_json({"task": done.task, "engine": done.engine, "predictions": count, "statuses": statuses, "path": str(done.path)})
    else:
        without = ", ".join(f"{number:,} {status}" for status, number in sorted(statuses.items()) if status != "ok")
        console.write_line(f"{counted(count, 'prediction')} by {done.engine} in {done.path}{f' ({without})' if without else ''}")
    if failed := statuses.get("failed", 0):
        raise SomeFailedError(f"{counted(failed, 'sample')} could not be asked about; the same command asks again. The rows say why.")
