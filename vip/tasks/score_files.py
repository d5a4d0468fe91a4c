"""What `vip score` does: find the files, join each with its samples, score, compare, and write what was asked for.

In: files of predictions, result.json files, or folders with them. Out: `Scores`; result.json, tables and a page in a folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from vip import files, store
from vip.config import SampleSettings
from vip.errors import InputError, UsageError
from vip.protocols import Observer, SilentObserver
from vip.tasks.comparison import Difference, compare_sets
from vip.tasks.files import file_sha256, read_predictions, unlinked_file
from vip.tasks.judge import JudgeMetric
from vip.tasks.nextqa.suite import SUITE as NEXTQA
from vip.tasks.nextqa.suite import nextqa_files
from vip.tasks.pairs import JoinedFile, Missing, is_ours, join_files, join_lists
from vip.tasks.records import TaskResult
from vip.tasks.registry import load_task
from vip.tasks.score import ScoredFile, choose_metrics, score
from vip.tasks.score_tables import result_labels
from vip.tasks.shown_results import shown_result
from vip.tasks.task import SampleSource, Task, TaskMetric
from vip.tasks.value.archive import unpacked_submission
from vip.tasks.value.suite import SUITE, suite_files
from vip.untrusted import parse_json
from vip.wording import counted, option

SAMPLES = "samples.jsonl"
RESULT = "result.json"
MOST_RESULT_BYTES = 64 * 2**20
MOST_FIGURE = 1e15
"""Of the scores of a result.json: tables and axes hold no larger ones, and no metric has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreOptions:
    """How files are scored."""

    samples: Path | None = None
    """None: samples.jsonl beside each file of predictions."""
    task: str | None = None
    """None: as the samples say."""
    annotations: tuple[Path, ...] = ()
    """Published files that the samples are read from."""
    references: Path | None = None
    """Second references, as published."""
    video_index: Path | None = None
    """Numbers and lengths of videos, as published."""
    split: str | None = None
    suite: str | None = None
    """`value`: the paths are folders of submissions, and `annotations` names a folder. `nextqa`: `annotations` are of both tasks."""
    metrics: tuple[str, ...] = ()
    """Names; empty: all that work here."""
    missing: Missing = "refuse"
    judge: JudgeMetric | None = None
    """Scores open answers too."""
    settings: tuple[Mapping[str, str], ...] = ()
    """Of each file of predictions, in their order, what it does not say itself: `{"clips": "16"}`; empty: nothing of any."""


@dataclass(frozen=True)
class Scores:
    """Scored files, results that were scored before, and how the files differ."""

    scored: tuple[ScoredFile, ...]
    results: tuple[TaskResult, ...]
    """Of all files, in the order in which they were given."""
    differences: tuple[Difference, ...] = ()
    tasks: dict[str, Task] = field(default_factory=dict)

    @cached_property
    def shown(self) -> list[TaskResult]:
        """The results as tables and pages show them."""
        return list(map(shown_result, self.results))

    @cached_property
    def labels(self) -> list[str]:
        return result_labels(self.shown)


def score_files(paths: Sequence[Path], options: ScoreOptions, *, observer: Observer | None = None) -> Scores:
    """Score files of predictions, and compare those of the same samples.

    Raises:
        UsageError: options contradict each other, or the task has no such metric.
        InputError: a file is damaged, or predictions do not fit their samples.
        BackendError: a metric lacks a library, weights or data.
    """
    observer = observer or SilentObserver()
    with ExitStack() as unpacked:
        if options.suite == SUITE:
            paths = [unpacked.enter_context(unpacked_submission(path)) for path in paths]
        return _score_each(_files_with_options(paths, options), options.settings, observer)


def _score_each(found: Sequence[tuple[Path, ScoreOptions]], settings: Sequence[Mapping[str, str]], observer: Observer) -> Scores:
    scored: list[ScoredFile] = []
    results: list[TaskResult] = []
    tasks: dict[str, Task] = {}
    versions: dict[str, int] = {}
    if settings and len(settings) != len(found):
        raise UsageError(f"{option('setting')} is given {len(settings)} times for {counted(len(found), 'file')}. Give it once for each.")
    for number, (path, own) in enumerate(found):
        if before := read_result(path):
            if before.task not in versions:
                versions[before.task] = load_task(before.task).version
            _check_result(before, path, versions[before.task])
            more = settings[number] if settings else {}
            results.append(before.model_copy(update={"parameters": {**before.parameters, **more}}))
            continue
        task, joined = _join(path, own)
        if settings:
            joined = replace(joined, parameters={**joined.parameters, **settings[number]})
        done = score(joined, task, _metrics(task, own, observer), observer=observer)
        tasks[done.result.task] = task
        scored.append(done)
        results.append(done.result)
    return Scores(tuple(scored), tuple(results), _compare(scored, results), tasks)


def _metrics(task: Task, options: ScoreOptions, observer: Observer) -> list[TaskMetric]:
    judge = [options.judge] if options.judge else []
    return [*choose_metrics(task, options.metrics, observer.note), *judge]


def _files_with_options(paths: Sequence[Path], options: ScoreOptions) -> list[tuple[Path, ScoreOptions]]:
    """Return each file with its own options: of a suite, each task has annotations of its own."""
    if options.suite is None:
        return [(found, options) for given in paths for found in find_files(given)]
    if options.suite == NEXTQA:
        return _files_of_nextqa(paths, options)
    if options.suite != SUITE:
        raise UsageError(f'There is no suite "{options.suite}". There are: {SUITE}, {NEXTQA}.')
    if len(options.annotations) != 1 or options.task or options.samples:
        raise UsageError(f"A suite is scored against one folder of annotations: {option('annotations', 'DIR')}. It names the tasks itself.")
    files = [one for given in paths for one in suite_files(given, options.annotations[0], options.split)]
    return [
        (one.predictions, replace(options, task=one.task, annotations=(one.annotations,), video_index=one.video_index, split=None))
        for one in files
    ]


def _files_of_nextqa(paths: Sequence[Path], options: ScoreOptions) -> list[tuple[Path, ScoreOptions]]:
    if not options.annotations or options.task or options.samples:
        raise UsageError(f"The suite {NEXTQA} needs the files of questions: {option('annotations', 'val.csv')}. It names the tasks itself.")
    return [
        (one.predictions, replace(options, task=one.task, annotations=one.annotations, references=_references(one.task, options)))
        for one in nextqa_files(paths, options.annotations)
    ]


def _references(task: str, options: ScoreOptions) -> Path | None:
    return options.references if task == "nextqa-oe" else None


def _compare(scored: Sequence[ScoredFile], results: Sequence[TaskResult]) -> tuple[Difference, ...]:
    """Return the differences within each task; files with other samples of one task are an error only where nothing else is compared."""
    labels = dict(zip(map(id, results), result_labels(results), strict=True))
    by_samples: dict[tuple[object, ...], list[ScoredFile]] = {}
    for one in scored:
        by_samples.setdefault((one.result.task, str(one.result.parameters.get("representation"))), []).append(one)
    groups = [some for some in by_samples.values() if len(some) > 1]
    return tuple(compare_sets([(some, [labels[id(one.result)] for one in some]) for some in groups]))


def find_files(path: Path) -> list[Path]:
    """Return a file as it is; of a folder its files of predictions, else its results.

    Raises:
        InputError: there is none, or a link.
    """
    if not store.is_folder(path):
        if not store.exists(path):
            raise InputError(f"{path} does not exist. Give a file of predictions, a result.json, or a folder with them.")
        return [path]
    folders = [path, *sorted(one for one in path.iterdir() if one.is_dir() and not one.is_symlink())]
    if found := [one for folder in folders for one in sorted(folder.glob("*.jsonl")) if is_ours(unlinked_file(one))]:
        return found
    if found := [unlinked_file(one) for folder in folders for one in sorted(folder.glob(f"*{RESULT}"))]:
        return found
    raise InputError(f"{path} holds no predictions and no {RESULT}. Run `vip predict` first, or give the file itself.")


def read_result(path: Path) -> TaskResult | None:
    """Return a result.json of vip; None for a file of another kind.

    Raises:
        InputError: it is a damaged result.
    """
    if not path.name.endswith(RESULT):
        return None
    try:
        data = files.read_named(path, most_bytes=MOST_RESULT_BYTES)
        if not isinstance(value := parse_json(data), dict) or "metrics" not in value:
            return None
        if (figure := _too_large(value["metrics"])) is not None:
            raise ValueError(f"a figure of {figure:.3g}")
        return TaskResult.model_validate_json(data)
    except OSError as exc:
        raise InputError(f"{path} cannot be read: {exc.strerror}.") from exc
    except ValueError as exc:
        raise InputError(f"{path} is no result of vip ({str(exc).splitlines()[0]}). Score its predictions again.") from exc


def _too_large(value: object) -> float | None:
    """Return a number in JSON that no score has; None where there is none."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, dict | list):
            left.extend(one.values() if isinstance(one, dict) else one)
        elif isinstance(one, int | float) and abs(one) > MOST_FIGURE:
            return one
    return None


def _check_result(result: TaskResult, path: Path, version: int) -> None:
    if result.task_version != version:
        raise InputError(
            f"{path} was scored for version {result.task_version} of {result.task}, and this vip has version {version}: the scores"
            " cannot be compared. Score its predictions again."
        )


def _join(path: Path, options: ScoreOptions) -> tuple[Task, JoinedFile]:
    """Return the task of a file of predictions, and the file with its samples."""
    if options.annotations:
        return _join_published(path, options)
    if not is_ours(path):
        raise UsageError(
            f"{path} is no JSONL file of `vip predict`. For a published file name its task and its annotations:"
            f" {option('task', 'NAME')} {option('annotations', 'FILE')}."
        )
    samples = options.samples or unlinked_file(path.parent / SAMPLES)
    if not store.exists(samples):
        raise InputError(
            f"There is no {samples}, which {path.name} would be scored against. Name the samples with {option('samples', 'FILE')}."
        )
    joined = join_files(samples, path, missing=options.missing)
    task = load_task(joined.task)
    if options.task and load_task(options.task).name != task.name:
        raise InputError(f"{path} answers samples of {joined.task}, not of {options.task}. Leave {option('task')} out.")
    return task, joined


def _join_published(path: Path, options: ScoreOptions) -> tuple[Task, JoinedFile]:
    """Read samples and predictions of published files as they are."""
    if options.task is None:
        raise UsageError(f"{option('annotations')} needs the name of the task: {option('task', 'NAME')}. `vip tasks` lists them.")
    task = load_task(options.task)
    for one in options.annotations:
        if not store.exists(one):
            raise InputError(f"{one} does not exist. Give the annotations of {task.name} as they were published.")
    settings = SampleSettings(split=options.split)
    source = SampleSource(
        paths=tuple(map(str, options.annotations)),
        settings=settings,
        references=options.references,
        video_index=options.video_index,
    )
    samples = list(task.samples(source))
    predictions = read_predictions(path) if is_ours(path) else task.read_predictions(path, samples)
    digests = [file_sha256(one) for one in options.annotations]
    return task, join_lists(
        samples,
        predictions,
        name=path.name,
        samples_name=" and ".join(one.name for one in options.annotations) if len(digests) < 4 else counted(len(digests), "file"),
        samples_sha256=digests[0] if len(digests) == 1 else None,
        predictions_sha256=file_sha256(path),
        missing=options.missing,
    )
