"""Models of the paper on NExT-QA: from annotations to a run folder, and from a run folder to predictions.

The models themselves are in `vip.baselines`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from vip import store
from vip.baselines.installed import check_installed
from vip.errors import InputError, UsageError, did_you_mean
from vip.metrics import Status
from vip.protocols import Observer
from vip.tasks.files import check_new
from vip.tasks.nextqa.files import Kind, Question, read_questions
from vip.tasks.nextqa.oe import EXACT
from vip.tasks.predict import PredictionSummary, open_samples
from vip.tasks.records import Choice, FreeText, Prediction, Sample
from vip.wording import option

if TYPE_CHECKING:
    from vip.baselines.nextqa.data import Item
    from vip.baselines.run_folder import TrainedModel

TASKS = ("nextqa-mc", "nextqa-oe")
SPLITS = ("train", "val")
SCORE_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainRequest:
    """What `vip train` was asked for.

    Args:
        annotations: the folder with train.csv and val.csv.
        model: None with `resume`: the model of the folder.
        assignments: single settings, `training.epochs=10`.
        others: as of `vip.baselines.nextqa.train.TrainingData` and `Machine`.
    """

    task: str
    annotations: Path
    out: Path
    model: str | None = None
    decoder: str | None = None
    config: Path | None = None
    assignments: Sequence[str] = ()
    features: Sequence[Path] = ()
    appearance: int | None = None
    glove: Path | None = None
    bert: Path | None = None
    texts: Sequence[Path] = ()
    epochs: int | None = None
    seed: int | None = None
    device: str = "auto"
    devices: int = 1
    workers: int = 0
    resume: bool = False
    overwrite: bool = False


def train_on_annotations(request: TrainRequest, *, observer: Observer) -> TrainedModel:
    """Train a model of the paper on published annotations.

    Raises:
        UsageError: the task, the model or a setting is unknown, or the folder holds another training.
        InputError: a file cannot be used.
        BackendError: a library or the device is missing.
    """
    if request.task not in TASKS:
        raise UsageError(
            f'No model is trained for "{request.task}".{did_you_mean(request.task, (*TASKS, "value"))} Name {", ".join(TASKS)} or value.'
        )
    check_installed()
    if request.model is None and not request.resume:  # before torch is imported, which takes seconds
        raise UsageError(f"Name the model to train: {option('model', 'hga')}.")
    from vip.baselines.nextqa.assemble import load_settings
    from vip.baselines.nextqa.train import TrainingData, train_model
    from vip.baselines.settings import merge, parse_assignments
    from vip.baselines.training import Machine

    settings = None
    own = {name: value for name, value in (("epochs", request.epochs), ("seed", request.seed)) if value is not None}
    assignments = merge([parse_assignments(request.assignments), {"training": own} if own else {}])
    if request.model is not None:
        settings = load_settings(request.task, request.model, decoder=request.decoder, config=request.config, assignments=assignments)
    elif request.config or request.assignments or request.decoder or request.seed is not None:
        raise UsageError(f"Settings are given without {option('model', 'NAME')}. Name it, or leave the settings out to go on as before.")
    kind = cast("Kind", request.task)
    data = TrainingData(
        train=read_items(_annotations_of(request.annotations, "train"), kind, file=0),
        val=read_items(_annotations_of(request.annotations, "val"), kind, file=1),
        features=request.features,
        appearance=request.appearance,
        glove=request.glove,
        bert=request.bert,
        texts=request.texts,
    )
    machine = Machine(device=request.device, devices=request.devices, workers=request.workers)
    return train_model(
        settings,
        data,
        request.out,
        resume=request.resume,
        overwrite=request.overwrite,
        epochs=request.epochs,
        machine=machine,
        observer=observer,
    )


def _annotations_of(folder: Path, split: str) -> Path:
    for name in (f"{split}.csv", f"{split}.csv.gz"):
        if store.exists(folder / name):
            return folder / name
    raise InputError(f"{folder} has no {split}.csv. Give the folder with train.csv and val.csv of NExT-QA, as they were published.")


def read_items(path: Path, task: Kind, *, file: int = 0) -> list[Item]:
    """Return the questions of a published file for training. Errors as of `read_questions`."""
    return [_item_of_question(question, row, file) for row, question in enumerate(read_questions(path, task))]


def _item_of_question(question: Question, row: int, file: int) -> Item:
    from vip.baselines.nextqa.data import Item

    answer = " ".join(question.answer) if isinstance(question.answer, tuple) else question.answer
    exact = question.type in EXACT
    return Item(question.id, question.video, question.text, question.options, answer, exact, file, row)


def items_of_samples(samples: Iterable[Sample]) -> Iterator[Item]:
    """Yield the question of each sample, without its answer.

    Raises:
        InputError: a sample asks something else.
    """
    from vip.baselines.nextqa.data import Item

    for row, sample in enumerate(samples):
        if not isinstance(sample.ask, Choice | FreeText) or not sample.ask.question:
            raise InputError(f"The sample {sample.id} has no question. Make samples of NExT-QA from a file with the column question.")
        options = sample.ask.options if isinstance(sample.ask, Choice) else ()
        yield Item(sample.id, sample.video, sample.ask.question, options, row=row)


def predict_with_model(
    samples: Path,
    out: Path,
    folder: Path,
    *,
    features: Sequence[Path] = (),
    texts: Path | None = None,
    device: str = "auto",
    overwrite: bool = False,
    observer: Observer,
) -> PredictionSummary:
    """Answer all samples by a trained model.

    Args:
        folder: what `vip train` wrote.
        features: features of the videos.
        texts: stored vectors of the questions, where the model's words are those.

    Raises:
        UsageError: the model is of another task, features are not given, or the file is there already.
        InputError: the folder, the features or the samples cannot be used.
        BackendError: a library is missing.
    """
    check_new(out, overwrite=overwrite)
    check_installed()
    from vip.baselines.nextqa.answer import answer_items, open_trained

    file = open_samples(samples)
    record = open_trained(folder)
    if record.settings.task != file.task.name:
        raise UsageError(f"{folder} holds a model of {record.settings.task}, and {samples} has samples of {file.task.name}.")
    shuffled = any(sample.task != file.task.name for sample in file.read())
    if texts is not None and shuffled:
        raise UsageError(f"Options were put into another order, and {texts} has them in that of the file. Make samples without it.")
    if not record.is_finished:
        observer.note(f"The training of {folder} has not ended: its best weights so far answer.")
    items = list(items_of_samples(file.read()))
    answers = answer_items(folder, record, items, features=features, texts=texts, device=device)
    statuses = Counter[Status]()

    def rows() -> Iterator[Prediction]:
        with observer.track("Answering", file.count) as advance:
            for item, answer in zip(items, answers, strict=True):
                scores = None if answer.scores is None else tuple(round(score, SCORE_DIGITS) for score in answer.scores)
                statuses["ok"] += 1
                advance()
                yield Prediction(sample_id=item.id, value=answer.value, engine=record.name, scores=scores)

    store.write_rows(out, rows())
    return PredictionSummary(out, file.task.name, record.name, dict(statuses))
