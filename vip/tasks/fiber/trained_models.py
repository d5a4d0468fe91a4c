"""Models of the paper on FIBER: from annotations to a run folder, and from a T5 or a run folder to predictions.

The models themselves are in `vip.baselines.fiber`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vip import store
from vip.baselines.installed import check_installed
from vip.errors import InputError, UsageError
from vip.metrics import Status
from vip.protocols import Observer
from vip.tasks.fiber.noun_phrases import DEFAULT_PARSER, judge_answers, load_parser
from vip.tasks.fiber.records import FiberRecord, read_records
from vip.tasks.files import check_new
from vip.tasks.predict import PredictionSummary, open_samples
from vip.tasks.records import Blank, Prediction, Sample
from vip.untrusted import one_line
from vip.wording import option

if TYPE_CHECKING:
    from vip.baselines.fiber.answer import LoadedFiller
    from vip.baselines.fiber.data import BlankItem
    from vip.baselines.fiber.run_folder import TrainedFiller

TASK = "fiber"
ZERO_SHOT = "t5:"
DIGITS = 6  # of log probabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class FillerRequest:
    """What `vip train fiber` was asked for.

    Args:
        annotations: the folder with train.json and val.json.
        model: None with `resume`: the model of the folder.
        weights: the T5 that training begins with, `t5:NAME`.
        assignments: single settings, `training.epochs=10`.
        others: as of `vip.baselines.fiber.train.FillerData` and `Machine`.
    """

    annotations: Path
    out: Path
    model: str | None = None
    weights: str | None = None
    config: Path | None = None
    assignments: Sequence[str] = ()
    features: Sequence[Path] = ()
    epochs: int | None = None
    seed: int | None = None
    device: str = "auto"
    devices: int = 1
    workers: int = 0
    resume: bool = False
    overwrite: bool = False


def train_on_records(request: FillerRequest, *, observer: Observer) -> TrainedFiller:
    """Train a model of the paper on records in the authors' form.

    Raises:
        UsageError: the model or a setting is unknown, or the folder holds another training.
        InputError: a file cannot be used.
        BackendError: a library, the T5 or the device is missing.
    """
    check_installed()
    if request.model is None and not request.resume:  # before torch is imported, which takes seconds
        raise UsageError(f"Name the model to train: {option('model', 'early-fusion')}, or text, or late-fusion.")
    from vip.baselines.fiber.t5 import check_transformers

    check_transformers()
    from vip.baselines.fiber.settings import load_settings
    from vip.baselines.fiber.train import FillerData, train_filler
    from vip.baselines.settings import merge, parse_assignments
    from vip.baselines.training import Machine

    settings = None
    own = {name: value for name, value in (("epochs", request.epochs), ("seed", request.seed)) if value is not None}
    if request.model is not None:
        assignments = merge([parse_assignments(request.assignments), {"training": own} if own else {}])
        settings = load_settings(request.model, config=request.config, assignments=assignments)
    elif request.config or request.assignments or request.seed is not None:
        raise UsageError(f"Settings are given without {option('model', 'NAME')}. Name it, or leave the settings out to go on as before.")
    data = FillerData(
        train=[_item_of_record(record) for record in read_records(_annotations_of(request.annotations, "train"))],
        val=[_item_of_record(record) for record in read_records(_annotations_of(request.annotations, "val"))],
        features=request.features,
    )
    return train_filler(
        settings,
        data,
        request.weights,
        request.out,
        resume=request.resume,
        overwrite=request.overwrite,
        epochs=request.epochs,
        machine=Machine(device=request.device, devices=request.devices, workers=request.workers),
        observer=observer,
    )


def _annotations_of(folder: Path, split: str) -> Path:
    path = folder / f"{split}.json"
    if not store.exists(path):
        raise InputError(f"{folder} has no {split}.json. Give the folder with train.json and val.json of FIBER, as they were published.")
    return path


def _item_of_record(record: FiberRecord) -> BlankItem:
    from vip.baselines.fiber.data import BlankItem
    from vip.baselines.fiber.video import Clip

    clip = Clip(record.video_id, record.video_start_time, record.video_end_time)
    answers = dict.fromkeys([record.label, *(answer for group in record.additional_answers for answer in group)])
    return BlankItem(record.clip_id, clip, record.masked_caption, record.label, tuple(answers))


def items_of_samples(samples: Iterable[Sample]) -> Iterator[BlankItem]:
    """Yield the caption of each sample, with its label: that is asked for its likelihood alone.

    Raises:
        InputError: a sample asks something else.
    """
    from vip.baselines.fiber.data import BlankItem
    from vip.baselines.fiber.video import Clip

    for sample in samples:
        if not isinstance(sample.ask, Blank):
            raise InputError(f"The sample {one_line(sample.id)[:80]} has no blank. Make samples of fiber.")
        clip = Clip(sample.video, round(sample.start_s or 0), round(sample.end_s or 0))
        yield BlankItem(sample.id, clip, sample.ask.text, sample.reference.label if sample.reference else None)


def is_filler(model: Path) -> bool:
    """Return whether what `--model` names is a T5, or the folder of a model of FIBER."""
    from vip.baselines.fiber.run_folder import FILLER

    return str(model).startswith(ZERO_SHOT) or (model / FILLER).is_file()


def predict_fillers(
    samples: Path,
    out: Path,
    model: str,
    *,
    features: Sequence[Path] = (),
    parser: str | None = None,
    beams: int | None = None,
    device: str = "auto",
    overwrite: bool = False,
    observer: Observer,
) -> PredictionSummary:
    """Fill the blanks of all samples by a T5, or a model of a run folder.

    Args:
        model: `t5:NAME` or a folder.
        parser: says what is a noun phrase: the first beam that is one is taken; `none` takes the first beam.
        beams: None: as the paper, or as the model was trained.

    Raises:
        UsageError: the samples are of another task, features are not given, or the file is there already.
        InputError: the folder, the features or the samples cannot be used.
        BackendError: a library, the T5 or the parser is missing.
    """
    check_new(out, overwrite=overwrite)
    check_installed()
    file = open_samples(samples)
    if file.task.name != TASK:
        raise UsageError(f"{one_line(model)} fills blanks, and {samples} has samples of {file.task.name}. Give samples of {TASK}.")
    loaded_parser = load_parser(parser or DEFAULT_PARSER)
    judge = None if loaded_parser is None else lambda pairs: judge_answers(pairs, loaded_parser)
    loaded = _open(model, beams)
    if not loaded.is_finished:
        observer.note(f"The training of {model} has not ended: its best weights so far answer.")
    from vip.baselines.fiber.answer import fill_blanks

    items = list(items_of_samples(file.read()))
    answers = fill_blanks(loaded, items, features=features, judge=judge, device=device)
    statuses, engine = Counter[Status](), f"{loaded.name} parser:{parser or DEFAULT_PARSER}"

    def rows() -> Iterator[Prediction]:
        with observer.track("Filling blanks", file.count) as advance:
            for item, answer in zip(items, answers, strict=True):
                status: Status = "ok" if answer.phrase else "unparsed"
                statuses[status] += 1
                advance()
                yield Prediction(
                    sample_id=item.id,
                    value=answer.phrase or None,
                    status=status,
                    reason=None if answer.phrase else "the model says nothing",
                    engine=engine,
                    log_probabilities=_rounded(answer.log_probabilities),
                    label_log_probabilities=_rounded(answer.label_log_probabilities),
                )

    store.write_rows(out, rows())
    return PredictionSummary(out, file.task.name, engine, dict(statuses))


def _open(model: str, beams: int | None) -> LoadedFiller:
    from vip.baselines.fiber.answer import open_filler, open_zero_shot

    return open_zero_shot(model, beams=beams) if model.startswith(ZERO_SHOT) else open_filler(Path(model), beams=beams)


def _rounded(values: tuple[float, ...] | None) -> tuple[float, ...] | None:
    return None if values is None else tuple(round(value, DIGITS) for value in values)
