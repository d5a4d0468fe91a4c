"""HERO on VALUE: from published files to a run folder, and from a run folder or a published checkpoint to predictions.

The model is in `vip.baselines.value`; what is read, scored and written is here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vip import store
from vip.baselines.installed import check_installed, is_first_process
from vip.baselines.kept import check_kept_folder
from vip.config import SampleSettings
from vip.errors import InputError, StoreError, UsageError, did_you_mean
from vip.protocols import Observer
from vip.tasks.files import check_new, draw_samples, write_samples
from vip.tasks.predict import PredictionSummary
from vip.tasks.records import Found, FoundMoments, Moment, Prediction, Sample
from vip.tasks.registry import load_task
from vip.tasks.task import SampleSource
from vip.tasks.value.annotations import read_samples, read_video_index
from vip.tasks.value.datasets import BY_KEY, DATASETS, PREFIX, Dataset
from vip.tasks.value.metrics import value_metrics
from vip.tasks.value.suite import find_annotations
from vip.tasks.value.task import ValueTask
from vip.untrusted import one_line
from vip.wording import option

if TYPE_CHECKING:
    from vip.baselines.settings import Tables
    from vip.baselines.value.answer import QueryAnswer
    from vip.baselines.value.data import Example, ItemMaker
    from vip.baselines.value.interface import HeroModel, RankingOptions
    from vip.baselines.value.regimes import Stage
    from vip.baselines.value.run_folder import TrainedHero
    from vip.baselines.value.settings import ValueSettings
    from vip.baselines.value.tokenizer import TextEncoder
    from vip.tasks.value.training_data import ChannelReader

NAME = "value"
HERO, ROBERTA = "hero:", "roberta:"
SCORE_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainValueRequest:
    """What `vip train value` was asked for."""

    regime: str
    annotations: Path
    """The folder with the published annotations of train and val."""
    out: Path
    features: Sequence[Path] = ()
    """Side by side: as of `ChannelReader`."""
    subtitles: Path | None = None
    tokenizer: Path | None = None
    """The folder of RoBERTa's tokenizer; None with `resume`: that of the run."""
    tasks: Sequence[str] = ()
    """Those that are trained, `tvqa` or `value-tvqa`; none: all eleven."""
    weights: str | None = None
    """`hero:FILE`, `roberta:FILE`, or a folder of a training; None: random weights."""
    config: Path | None = None
    assignments: Sequence[str] = ()
    seed: int | None = None
    device: str = "auto"
    devices: int = 1
    workers: int = 0
    resume: bool = False
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class _ValData:
    """The val split of a task."""

    dataset: Dataset
    samples: list[Sample]
    examples: list[Example]
    corpus: tuple[str, ...]
    """The videos that are searched; empty but for retrieval."""


@dataclass(slots=True)
class _Run:
    """What all stages of a run share."""

    request: TrainValueRequest
    encoder: TextEncoder
    reader: ChannelReader
    assignments: Tables
    observer: Observer
    done: list[TrainedHero] = field(default_factory=list)


# ---------------------------------------------------------------- training


def train_value(request: TrainValueRequest, *, observer: Observer) -> list[TrainedHero]:
    """Train HERO under a regime and return its stages.

    Raises:
        UsageError: the regime, a task or a setting is unknown, or the folder holds another training.
        InputError: a file cannot be used, or the loss is not a number any more.
        BackendError: a library, the device or its memory is missing.
        StoreError: the folder is in use, or cannot be written to.
    """
    check_installed()
    from vip.baselines.settings import merge, parse_assignments
    from vip.baselines.value.regimes import TaskTraits, plan_stages
    from vip.baselines.value.run_folder import is_stage
    from vip.baselines.value.tokenizer import TextEncoder
    from vip.tasks.value.training_data import ChannelReader

    datasets = _datasets(request.tasks)
    stages = plan_stages(request.regime, [TaskTraits(one.key, one.category, one.domain) for one in datasets])
    if request.weights is not None and request.regime == "at-st" and not request.weights.startswith((HERO, ROBERTA)):
        stages = tuple(stage for stage in stages if stage.after is not None)  # the training of all tasks is there
    for stage in stages:  # all of them before the first is trained
        store.unlinked(request.out / stage.name)
    begun = next((stage for stage in stages if is_stage(request.out / stage.name)), None)
    if begun is not None and is_first_process() and not (request.resume or request.overwrite):
        raise UsageError(
            f"{request.out / begun.name} holds a training already. Add {option('resume')} to go on with it, or {option('overwrite')}"
            " to begin anew."
        )
    seed = {} if request.seed is None else {"training": {"seed": request.seed}}
    assignments = merge([parse_assignments(request.assignments), seed])
    size = merge([{"model": {}}, assignments])["model"].get("vocabulary")
    encoder = TextEncoder(_tokenizer_of(request, stages), size if isinstance(size, int) else 50_272)
    run = _Run(request, encoder, ChannelReader(request.features, request.subtitles), assignments, observer)
    for stage in stages:
        run.done.append(_train_stage(stage, run))
    return run.done


def _datasets(names: Sequence[str]) -> list[Dataset]:
    keys = [name.removeprefix(PREFIX).replace("-", "_") for name in names]
    for name, key in zip(names, keys, strict=True):
        if key not in BY_KEY:
            known = [one.name for one in DATASETS]
            raise UsageError(f'VALUE has no task "{one_line(name)[:60]}".{did_you_mean(name, known)} It has {", ".join(known)}.')
    return [one for one in DATASETS if not keys or one.key in keys]


def _tokenizer_of(request: TrainValueRequest, stages: Sequence[Stage]) -> Path:
    from vip.baselines.value.tokenizer import FOLDER

    if request.tokenizer is not None:
        return request.tokenizer
    kept = [request.out / stage.name / FOLDER for stage in stages]
    kept += [Path(request.weights) / FOLDER] if request.weights and not request.weights.startswith((HERO, ROBERTA)) else []
    found = next((one for one in kept if store.is_folder(one)), None)
    if found is None or not (request.resume or request.weights):
        raise UsageError(f"Name the folder of RoBERTa's tokenizer, with vocab.json and merges.txt: {option('tokenizer', 'DIR')}.")
    check_kept_folder(found)
    return found


def _train_stage(stage: Stage, run: _Run) -> TrainedHero:
    """Train one stage into its folder; one that is finished is left as it is."""
    from vip.baselines.training import Machine
    from vip.baselines.value.run_folder import HERO as RECORD
    from vip.baselines.value.run_folder import check_begun, is_stage, read_hero
    from vip.baselines.value.tokenizer import FOLDER
    from vip.baselines.value.training import StageData, draw_model, train_stage

    request, folder = run.request, run.request.out / stage.name
    with store.create_folder(folder) if is_first_process() else nullcontext():
        before = read_hero(folder) if is_stage(folder) and (request.resume or not is_first_process()) else None
        settings = _settings(stage, run, before)
        train, val, makers = _stage_data(stage, run, settings)
        record = _record(stage, run, settings, train, val)
        if before is not None:
            _check_same(before, record, folder)
            record = before
        if before is not None and before.is_finished:
            run.observer.note(f"{folder} is trained already.")
            return before
        if before is None and is_first_process():
            clear_training(folder)
            run.encoder.copy_to(folder / FOLDER)
            store.write_json(folder / RECORD, record)
        if before is not None:
            check_begun(folder, settings.model)
        model = draw_model(settings)
        _load_first_weights(model, stage, run)
        machine = Machine(device=request.device, devices=request.devices, workers=request.workers)
        checked = StageData(train=train, makers=makers, validate=lambda trained: _validate(trained, val, makers, settings, run.encoder))
        rows = train_stage(model, settings, checked, folder, machine=machine, observer=run.observer, resume=before is not None)
        best = max(rows, key=lambda row: row.mean)  # of equals the first, as the weights
        done = record.model_copy(update={"best_step": best.step, "best_scores": best.scores, "is_finished": True})
        if is_first_process():
            store.write_json(folder / RECORD, done)
        return done


def _settings(stage: Stage, run: _Run, before: TrainedHero | None) -> ValueSettings:
    """Return the settings of a stage: those that it began with, or the published ones with what the user changes.

    Raises:
        UsageError: a training that goes on was given others.
    """
    from vip.baselines.value.settings import load_settings

    request = run.request
    if before is not None and not run.assignments and request.config is None:
        return before.settings
    first = _first_video(stage, request.annotations)
    settings = load_settings(
        stage.name,
        stage.tasks,
        features=run.reader.width(*first),
        has_weights=stage.after is not None or (request.weights is not None and not request.weights.startswith(ROBERTA)),
        config=request.config,
        assignments=run.assignments,
    )
    if before is not None and settings.sha256 != before.settings_sha256:
        raise UsageError(
            f"{request.out / stage.name} was begun with other settings. Leave them out to go on with it, or name another folder with"
            f" {option('out')}."
        )
    return settings


def _first_video(stage: Stage, annotations: Path) -> tuple[str, str]:
    from vip.tasks.value.training_data import SOURCE_OF, read_train

    key = stage.tasks[0]
    return read_train(annotations, BY_KEY[key])[0].video, SOURCE_OF[key]


def _stage_data(stage: Stage, run: _Run, settings: ValueSettings) -> tuple[dict[str, list[Example]], list[_ValData], dict[str, ItemMaker]]:
    """Return the examples of train, the val splits, and what reads the videos, of each task.

    Raises:
        InputError: a file is missing or damaged, or videos have no features.
    """
    from vip.baselines.value.data import ItemMaker
    from vip.tasks.value.training_data import SOURCE_OF, read_train

    by_source: dict[str, ItemMaker] = {}
    train, val, makers = {}, [], {}
    for key in stage.tasks:
        dataset, source = BY_KEY[key], SOURCE_OF[key]
        train[key] = read_train(run.request.annotations, dataset)
        found = _val_data(dataset, run.request.annotations)
        val.append(found)
        run.reader.check([one.video for one in (*train[key], *found.examples)] + list(found.corpus), source)
        if source not in by_source:
            by_source[source] = ItemMaker(run.encoder.encode, run.reader.of_source(source), settings.input)
        makers[key] = by_source[source]
    return train, val, makers


def _val_data(dataset: Dataset, annotations: Path) -> _ValData:
    from vip.tasks.value.training_data import example_of

    split = dataset.validation.name
    path, index = find_annotations(annotations, dataset, split)
    samples = list(read_samples(path, dataset))
    hidden = next((sample for sample in samples if sample.reference is None), None)
    if hidden is not None:
        raise InputError(f'{path}: "{one_line(hidden.id)[:80]}" has no answer, so that nothing can be validated. Give the split {split}.')
    examples = [example_of(sample, dataset) for sample in samples]
    names: Sequence[str] = ()
    if dataset.category == "retrieval":
        names = list(read_video_index(index, split).values()) if index else list(dict.fromkeys(one.video for one in examples))
    return _ValData(dataset, samples, examples, tuple(names))


def _record(stage: Stage, run: _Run, settings: ValueSettings, train: dict[str, list[Example]], val: Sequence[_ValData]) -> TrainedHero:
    from vip.baselines.value.data import examples_sha256
    from vip.baselines.value.run_folder import TrainedHero

    request = run.request
    digests = (examples_sha256(train), examples_sha256({one.dataset.key: one.examples for one in val}))
    return TrainedHero(
        settings=settings,
        settings_sha256=settings.sha256,
        regime=request.regime,
        stage=stage.name,
        tasks=stage.tasks,
        weights=_weights_name(request.weights),
        features=tuple(one_line(path.stem)[:60] for path in request.features),
        train_items={key: len(some) for key, some in train.items()},
        val_items={one.dataset.key: len(one.samples) for one in val},
        data_sha256=" ".join(digests),
        versions={name: version(name) for name in ("torch", "lightning", "transformers")},
    )


def _weights_name(weights: str | None) -> str | None:
    """Return in a word what a training begins with."""
    if weights is None:
        return None
    return weights.partition(":")[0] if weights.startswith((HERO, ROBERTA)) else one_line(Path(weights).name)[:60]


def _check_same(before: TrainedHero, now: TrainedHero, folder: Path) -> None:
    for name, what in (("regime", "under another regime"), ("tasks", "on other tasks"), ("data_sha256", "on other annotations")):
        if getattr(before, name) != getattr(now, name):
            raise UsageError(f"{folder} was trained {what}. Give the same, or name another folder with {option('out')}.")
    if (before.weights, before.features) != (now.weights, now.features):
        raise UsageError(f"{folder} was trained on other features, or from other weights. Give the same, or another folder.")


def clear_training(folder: Path) -> None:
    """Delete what an earlier training left."""
    from vip import files
    from vip.baselines.value import run_folder

    try:
        for name in (run_folder.HERO, run_folder.WEIGHTS, run_folder.VALIDATIONS, run_folder.LAST):
            files.remove(folder / name, inside=folder)
    except OSError as exc:
        raise StoreError(f"{folder} cannot be emptied: {exc.strerror}. Choose another folder with {option('out')}.") from exc


def _load_first_weights(model: HeroModel, stage: Stage, run: _Run) -> None:
    """Put the weights into a model that its training begins with."""
    from vip.baselines.value import run_folder

    if stage.after is not None and (run.request.out / stage.after / run_folder.WEIGHTS).is_file():
        run_folder.load_weights(run.request.out / stage.after / run_folder.WEIGHTS, model)
        return
    load_weights(model, run.request.weights, run.observer)


def load_weights(model: HeroModel, weights: str | None, observer: Observer) -> None:
    """Put weights into a model: `hero:FILE`, `roberta:FILE`, or the folder of a training; None: they stay as drawn.

    Raises:
        UsageError: the folder holds several models.
        InputError: a file is missing or damaged, or is of another model.
    """
    from vip.baselines.value import run_folder
    from vip.baselines.value.checkpoint import load_checkpoint, load_roberta, read_tensors
    from vip.baselines.value.two_stream import TwoStream

    if weights is None:
        return
    if not weights.startswith((HERO, ROBERTA)):
        found = run_folder.stages_in(Path(weights))
        if len(found) != 1:
            raise UsageError(f"{weights} holds {len(found)} trained models. Name the folder of one: {option('weights', 'run/at')}.")
        run_folder.load_weights(found[0] / run_folder.WEIGHTS, model)
        return
    path = Path(weights.partition(":")[2])
    parts: list[Any] = [model.video, model.subtitles] if isinstance(model, TwoStream) else [model]
    for part in parts:
        is_hero = weights.startswith(HERO)
        report = load_checkpoint(path, part) if is_hero else load_roberta(read_tensors(path), part, str(path))
        observer.note(f"{path}: {report}")


# ---------------------------------------------------------------- answers


def _validate(
    model: HeroModel, val: Sequence[_ValData], makers: dict[str, ItemMaker], settings: ValueSettings, encoder: TextEncoder
) -> dict[str, float]:
    """Return the target metric of each task on val, × 100."""
    device = str(next(model.parameters()).device)
    scores = {}
    for one in val:
        found = answer(model, one.dataset, one.examples, one.corpus, makers[one.dataset.key], settings.ranking, encoder, device=device)
        pairs = [(sample, Prediction(sample_id=sample.id, **values)) for sample, values in zip(one.samples, found, strict=True)]
        scores[one.dataset.key] = round(100 * (value_metrics(one.dataset)[0].score(pairs).value or 0.0), 6)
    return scores


def answer(
    model: HeroModel,
    dataset: Dataset,
    examples: Sequence[Example],
    corpus: Sequence[str],
    maker: ItemMaker,
    ranking: RankingOptions,
    encoder: TextEncoder,
    *,
    device: str = "auto",
) -> Iterator[dict[str, Any]]:
    """Yield `value` and `scores` of the prediction for each example, in order.

    Args:
        corpus: the videos that queries search.
    """
    from vip.baselines.value.answer import answer_queries, answer_questions, caption_items, index_videos

    options = maker.options
    items: Iterable[Any] = map(maker.item, examples)
    if dataset.category == "qa":
        for said in answer_questions(model, items, options, device=device):
            yield {"value": said.value, "scores": tuple(round(score, SCORE_DIGITS) for score in said.scores)}
    elif dataset.category == "captioning":
        for ids in caption_items(model, items, options, device=device):
            yield {"value": encoder.decode(ids)}
    else:
        rows = {name: row for row, name in enumerate(corpus)}
        index = index_videos(model, map(maker.video, corpus), options, device=device)
        queries = ((maker.query(example), rows.get(example.video)) for example in examples)
        chosen = ranking if dataset.kind == "vcmr" else None
        for found in answer_queries(model, queries, index, options, ranking=chosen, device=device):
            yield {"value": _found(found, corpus)}


def _found(found: QueryAnswer, corpus: Sequence[str]) -> Found:
    def moments(ranked: Any) -> FoundMoments | None:
        if ranked is None:
            return None
        return FoundMoments(videos=tuple(corpus[row] for row in ranked.videos), starts_s=ranked.starts_s, ends_s=ranked.ends_s)

    videos = tuple(corpus[row] for row in found.videos.videos)
    return Found(vcmr=moments(found.moments), svmr=moments(found.own_moments), vr=videos)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictRequest:
    """What `vip predict --model` is asked for."""

    task: str
    annotations: tuple[str, ...]
    model: str
    """A folder that `vip train value` wrote, or `hero:FILE`."""
    settings: SampleSettings = field(default_factory=SampleSettings)
    """Subtitles, the split, how many samples."""
    features: Sequence[Path] = ()
    video_index: Path | None = None
    tokenizer: Path | None = None
    """For published checkpoints; a folder has its own."""
    device: str = "auto"


def predict_with_hero(request: PredictRequest, out: Path, *, overwrite: bool = False, observer: Observer) -> PredictionSummary:
    """Answer all samples of a task of VALUE by a trained HERO.

    Raises:
        UsageError: the task is no such task, or the model cannot answer it.
        InputError: a file cannot be used.
        BackendError: a library is missing.
    """
    check_new(out, overwrite=overwrite)
    check_installed()
    from vip.baselines.value.data import ItemMaker
    from vip.tasks.value.training_data import SOURCE_OF, ChannelReader, example_of

    task = load_task(request.task)
    if not isinstance(task, ValueTask):
        raise UsageError(f"{request.model} is a model of VALUE, and {task.name} is none of its tasks. Name a task such as value-tvqa.")
    dataset = task.dataset
    plain = request.settings.model_copy(update={"videos": None, "subtitles": None})  # what it reads is read below
    source = SampleSource(paths=request.annotations, settings=plain, video_index=request.video_index)
    samples = list(draw_samples(task.samples(source), plain.most, plain.seed))
    examples = [example_of(sample, dataset) for sample in samples]
    opened = _open_model(request, dataset, observer)
    reader = ChannelReader(request.features, request.settings.subtitles)
    corpus = _corpus(dataset, samples, request)
    reader.check(corpus or [one.video for one in examples], SOURCE_OF[dataset.key])
    _check_width(reader, (corpus or [examples[0].video])[0], SOURCE_OF[dataset.key], opened.model)
    maker = ItemMaker(opened.encoder.encode, reader.of_source(SOURCE_OF[dataset.key]), opened.settings.input)
    answers = answer(opened.model, dataset, examples, corpus, maker, opened.settings.ranking, opened.encoder, device=request.device)
    write_samples(out.with_name(f"{out.stem}.samples.jsonl"), samples)
    with observer.track("Answering", len(samples)) as advance:

        def rows() -> Iterator[Prediction]:
            for sample, values in zip(samples, answers, strict=True):
                advance()
                yield Prediction(sample_id=sample.id, engine=opened.name, **values)

        store.write_rows(out, rows())
    return PredictionSummary(out, dataset.name, opened.name, {"ok": len(samples)})


@dataclass(frozen=True, slots=True)
class _OpenModel:
    model: HeroModel
    settings: ValueSettings
    encoder: TextEncoder
    name: str


def _open_model(request: PredictRequest, dataset: Dataset, observer: Observer) -> _OpenModel:
    return _open_checkpoint(request, dataset, observer) if request.model.startswith(HERO) else _open_run(request, dataset, observer)


def _open_checkpoint(request: PredictRequest, dataset: Dataset, observer: Observer) -> _OpenModel:
    from vip.baselines.value.answer import open_checkpoint
    from vip.baselines.value.settings import load_settings
    from vip.baselines.value.tokenizer import TextEncoder

    if request.tokenizer is None:
        raise UsageError(f"A checkpoint has no tokenizer. Name the folder of RoBERTa's: {option('tokenizer', 'DIR')}.")
    path = Path(request.model.removeprefix(HERO))
    model, report = open_checkpoint(path, dataset.category)
    observer.note(f"{path}: {report}")
    settings = load_settings(dataset.key, [dataset.key], features=model.settings.features, has_weights=True)
    return _OpenModel(model, settings, TextEncoder(request.tokenizer, model.settings.vocabulary), f"model:hero {one_line(path.name)[:80]}")


def _open_run(request: PredictRequest, dataset: Dataset, observer: Observer) -> _OpenModel:
    """Open the stage of a run that answers a task; a stage's own folder may answer others of its kind (table 5)."""
    from vip.baselines.value import run_folder
    from vip.baselines.value.tokenizer import FOLDER, TextEncoder

    folder = Path(request.model)
    if run_folder.is_stage(folder):
        record = run_folder.read_hero(folder)
        _check_kind(record, dataset, folder)
    else:
        folder, record = run_folder.stage_of_task(folder, dataset.key)
    if not record.is_finished:
        observer.note(f"The training of {folder} has not ended: its best weights so far answer.")
    model = run_folder.build_with_weights(folder / run_folder.WEIGHTS, record.settings.model)
    if request.tokenizer is None:
        check_kept_folder(folder / FOLDER)
    encoder = TextEncoder(request.tokenizer or folder / FOLDER, record.settings.model.vocabulary)
    return _OpenModel(model, record.settings, encoder, record.name_for(dataset.key))


def _check_kind(record: TrainedHero, dataset: Dataset, folder: Path) -> None:
    """Refuse a model that learned no task of this kind; of moments it must have learned some, as in table 5."""
    known = [BY_KEY[key] for key in record.tasks if key in BY_KEY]  # those of pre-training are none of the suite
    if not any(one.category == dataset.category for one in known):
        learned = ", ".join(dict.fromkeys(record.tasks)) or "nothing"
        raise UsageError(f"{folder} was trained on {learned}, and {dataset.name} is of another kind. Name another model.")
    if dataset.kind == "vcmr" and not any(one.kind == "vcmr" for one in known):
        raise UsageError(f"{folder} was trained on videos as a whole, and {dataset.name} asks for moments. Name a model of TVR or How2R.")


def _corpus(dataset: Dataset, samples: Sequence[Sample], request: PredictRequest) -> list[str]:
    """Return the videos that are searched; none but for retrieval.

    Raises:
        InputError: they are hidden, and no index names them.
    """
    if dataset.category != "retrieval":
        return []
    if request.video_index is not None:
        return list(read_video_index(request.video_index, request.settings.split).values())
    names = []
    for sample in samples:
        value = sample.reference.values[0] if sample.reference else None
        if not isinstance(value, tuple):
            raise InputError(
                f"The videos of these queries are hidden. Name the corpus with {option('video_index', 'FILE')} and {option('split')}."
            )
        names.append(value[0].video if isinstance(value[0], Moment) else str(value[0]))
    return list(dict.fromkeys(names))


def _check_width(reader: ChannelReader, video: str, source: str, model: HeroModel) -> None:
    width = reader.width(video, source)
    if width != model.settings.features:
        raise InputError(
            f"The features have {width:,} numbers a frame, and the model was trained on {model.settings.features:,}."
            " Give features of the same kind."
        )
