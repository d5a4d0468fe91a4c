"""`vip train` for NExT-QA: from questions and features to a run folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from vip import files, store
from vip.baselines.features import FeatureStore
from vip.baselines.installed import is_first_process
from vip.baselines.kept import read_before
from vip.baselines.nextqa.assemble import TASKS, make_learner, make_words, score_answer_by, settings_with, texts_for_vocabulary
from vip.baselines.nextqa.data import Collator, Item, ItemDataset, check_items, input_sizes, items_sha256, open_features
from vip.baselines.nextqa.interface import load_class
from vip.baselines.nextqa.multi_choice import MultiChoiceLearner
from vip.baselines.nextqa.open_ended import OpenEndedLearner, ScoreAnswer
from vip.baselines.nextqa.words import BertWords, StoredTexts, StoredWords, WordVectors, load_bert
from vip.baselines.run_folder import (
    BERT,
    EPOCHS,
    LAST,
    MODEL,
    VOCABULARY,
    WEIGHTS,
    SizesRecord,
    TrainedModel,
    check_begun,
    count_epochs,
    find_vocabulary,
    load_weights,
    read_model,
)
from vip.baselines.settings import BaselineSettings
from vip.baselines.training import EpochOrder, Machine, Plateau, make_loader, train
from vip.baselines.vocabulary import WordVocabulary, build_vocabulary, draw_vectors, read_glove, write_vocabulary
from vip.errors import StoreError, UsageError
from vip.protocols import Observer
from vip.wording import counted, option


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingData:
    """What a model is trained on.

    Args:
        features: files of the videos of train and val.
        appearance: how many numbers of a clip are appearance; None: as `FeatureFile` finds it.
        glove: vectors that words begin with; None: drawn at random.
        bert: a folder of transformers, where words are BERT's.
        texts: files of stored vectors of train and val, where words are those.
    """

    train: Sequence[Item]
    val: Sequence[Item]
    features: Sequence[Path] = ()
    appearance: int | None = None
    glove: Path | None = None
    bert: Path | None = None
    texts: Sequence[Path] = ()


def train_model(
    settings: BaselineSettings | None,
    data: TrainingData,
    folder: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    epochs: int | None = None,
    machine: Machine | None = None,
    observer: Observer,
) -> TrainedModel:
    """Train a model into a folder and return what was trained.

    Args:
        settings: None with `resume`: those of the folder.
        epochs: with `resume`, another number of epochs.

    Raises:
        UsageError: the folder holds another training.
        InputError: a file cannot be used, or the loss is not a number any more.
        BackendError: a library, the device or its memory is missing.
        StoreError: the folder is in use, or cannot be written to.
    """
    machine = machine or Machine()
    check_items(data.train, with_answers=True)
    check_items(data.val, with_answers=True)
    with store.create_folder(folder) if is_first_process() else nullcontext():
        before = read_before(folder / MODEL, read_model, resume=resume, overwrite=overwrite)
        settings = _resolve(settings, before, epochs, folder)
        score_answer = score_answer_by(settings.training.best_by)
        with _open_features(settings, data) as features:
            if before is None:
                record = _begin(settings, data, features, folder, observer)
            else:
                record = _go_on(before, settings, data, features, folder)
            return _run(record, data, features, folder, machine, observer, score_answer, resume=before is not None)


# ---------------------------------------------------------------- the folder


def _resolve(settings: BaselineSettings | None, before: TrainedModel | None, epochs: int | None, folder: Path) -> BaselineSettings:
    """Return the settings of this training; one that goes on may only have another number of epochs.

    Raises:
        UsageError: others were asked for, or none are known.
    """
    if before is None:
        if settings is None:
            raise UsageError(f"{folder} holds no training. Name the model: {option('model', 'hga')}.")
        return settings
    if settings is not None:
        epochs = epochs or settings.training.epochs
        if settings_with(settings, epochs=before.settings.training.epochs).sha256 != before.settings_sha256:
            raise UsageError(
                f"{folder} holds a training of {before.settings.model} with other settings. Leave the settings out to go on with it,"
                f" or name another folder with {option('out')}."
            )
    return settings_with(before.settings, epochs=epochs or before.settings.training.epochs)


def _begin(settings: BaselineSettings, data: TrainingData, features: FeatureStore | None, folder: Path, observer: Observer) -> TrainedModel:
    """Write what the folder of a new training holds, model.json last."""
    _clear(folder)
    vocabulary, glove_words = None, None
    if settings.words.kind == "glove" or settings.task == "nextqa-oe":
        vocabulary = build_vocabulary(texts_for_vocabulary(data.train), least_count=settings.words.least_count)
        glove_words = _first_vectors(settings, data, vocabulary)[1]
        beginning = f"{glove_words:,} begin with vectors of GloVe" if glove_words is not None else "all begin with random vectors"
        observer.note(f"vocabulary of {len(vocabulary):,} words; {beginning}")
        with store.replacing(folder / VOCABULARY) as file:
            file.write(write_vocabulary(vocabulary))
    if settings.words.kind == "bert":
        if data.bert is None:
            raise UsageError(f"Words are those of a BERT, and none is named. Add {option('bert', 'FOLDER')}.")
        _save_bert(*load_bert(data.bert), folder)
    record = TrainedModel(
        settings=settings,
        settings_sha256=settings.sha256,
        sizes=_sizes(settings, data, features),
        appearance=data.appearance,
        train_items=len(data.train),
        val_items=len(data.val),
        data_sha256=_data_sha256(data),
        glove_words=glove_words,
        versions={name: version(name) for name in ("torch", "lightning")},
    )
    store.write_json(folder / MODEL, record)
    return record


def _go_on(
    before: TrainedModel, settings: BaselineSettings, data: TrainingData, features: FeatureStore | None, folder: Path
) -> TrainedModel:
    """Check that a training goes on with what it began with.

    Raises:
        UsageError: the questions, or the sizes of the features, are others.
    """
    if _data_sha256(data) != before.data_sha256:
        raise UsageError(f"{folder} was trained on other questions. Give the same annotations, or another folder with {option('out')}.")
    if _sizes(settings, data, features) != before.sizes:
        raise UsageError(f"{folder} was trained on features of other sizes. Give the same features, or another folder.")
    record = before.model_copy(update={"settings": settings, "settings_sha256": settings.sha256})
    if is_first_process() and record != before:
        store.write_json(folder / MODEL, record)
    return record


def _clear(folder: Path) -> None:
    """Delete what an earlier training left."""
    try:
        for name in (MODEL, VOCABULARY, WEIGHTS, EPOCHS, LAST):
            files.remove(folder / name, inside=folder)
        if store.is_folder(folder / BERT):
            files.remove_folder(folder / BERT)
    except OSError as exc:
        raise StoreError(f"{folder} cannot be emptied: {exc.strerror}. Choose another folder with {option('out')}.") from exc


def _data_sha256(data: TrainingData) -> str:
    return sha256(f"{items_sha256(data.train)} {items_sha256(data.val)}".encode()).hexdigest()


def _sizes(settings: BaselineSettings, data: TrainingData, features: FeatureStore | None) -> SizesRecord:
    stored = StoredTexts(data.texts[0]).width if settings.words.kind == "features" else 0
    sizes = input_sizes(features, words=settings.words.size, length=settings.words.length)
    return SizesRecord(**asdict(sizes), stored_words=stored)


def _save_bert(bert: Any, tokenizer: Any, folder: Path) -> None:
    """Write a BERT and its tokenizer beside the folder of the one before, and put it in its place."""
    part, old = folder / f"{BERT}{store.PARTIAL_SUFFIX}", folder / f"old{store.PARTIAL_SUFFIX}"
    try:
        for leftover in (part, old):
            if store.is_folder(leftover):
                files.remove_folder(leftover)
        bert.save_pretrained(part, safe_serialization=True)
        tokenizer.save_pretrained(part)
        if store.is_folder(folder / BERT):
            (folder / BERT).replace(old)
        part.replace(folder / BERT)
        if store.is_folder(old):
            files.remove_folder(old)
    except OSError as exc:
        raise StoreError(f"{folder / BERT} cannot be written: {exc.strerror}. Choose another folder with {option('out')}.") from exc


# ---------------------------------------------------------------- the training


@contextmanager
def _open_features(settings: BaselineSettings, data: TrainingData) -> Iterator[FeatureStore | None]:
    """Open the features that the model needs, and check that every video has some.

    Raises:
        UsageError: none are given.
        InputError: they are damaged, or lack a video.
    """
    kind = load_class(TASKS[settings.task], settings.model)
    if settings.words.kind == "features" and len(data.texts) != 2:
        raise UsageError(f"Words are stored vectors: give two files, of train and val, by {option('text-features', 'FILE')}.")
    if not kind.sees_video:
        yield None
        return
    with open_features(data.features, [item.video for item in (*data.train, *data.val)], kind, data.appearance) as features:
        yield features


def _run(
    record: TrainedModel,
    data: TrainingData,
    features: FeatureStore | None,
    folder: Path,
    machine: Machine,
    observer: Observer,
    score_answer: ScoreAnswer,
    *,
    resume: bool,
) -> TrainedModel:
    settings = record.settings
    if resume and is_first_process() and count_epochs(folder) >= settings.training.epochs and record.is_finished:
        observer.note(f"{counted(settings.training.epochs, 'epoch')} are done already. Ask for more: {option('epochs', 'NUMBER')}.")
        return record
    learner, words = _make_learner(record, data, folder, score_answer, is_begun=store.exists(folder / LAST), resume=resume)
    if isinstance(words, StoredWords):
        words.files = [StoredTexts(path) for path in data.texts]
        for file, items in zip(words.files, (data.train, data.val), strict=True):
            file.check(len(items), len(items[0].options))
    encode = learner.encode_answer if isinstance(learner, OpenEndedLearner) else None
    collate = Collator(words.prepare, features, encode, maps=load_class(TASKS[settings.task], settings.model).needs_maps)
    batch, workers = max(1, settings.training.batch // machine.devices), machine.workers  # each device has its share
    order = EpochOrder(len(data.train), settings.training.seed)
    rows = train(
        learner,
        make_loader(ItemDataset(data.train), collate, batch=batch, workers=workers, order=order),
        make_loader(ItemDataset(data.val), collate, batch=batch, workers=workers),
        settings=settings.training,
        schedule=Plateau(factor=settings.training.plateau_factor, patience=settings.training.plateau_patience),
        learning_rate=settings.learning_rate,
        folder=folder,
        machine=machine,
        observer=observer,
        resume=resume,
    )
    best = max(rows, key=lambda row: row.score)  # of equals the first, as the weights
    done = record.model_copy(update={"best_epoch": best.epoch, "best_score": best.score, "is_finished": True})
    if is_first_process():
        if isinstance(words, BertWords) and settings.words.fine_tune:
            load_weights(folder / WEIGHTS, learner)
            _save_bert(words.bert, words.tokenizer, folder)
        store.write_json(folder / MODEL, done)
    return done


def _make_learner(
    record: TrainedModel, data: TrainingData, folder: Path, score_answer: ScoreAnswer, *, is_begun: bool, resume: bool
) -> tuple[MultiChoiceLearner | OpenEndedLearner, WordVectors]:
    """Return the learner as it begins, and its words. Vectors of GloVe are not read again where weights are there already."""
    settings = record.settings
    vocabulary = find_vocabulary(folder, settings)
    vectors = None

    def words_with(vectors: torch.Tensor | None) -> WordVectors:
        return make_words(settings.words, vocabulary, vectors, bert=folder / BERT, stored_width=record.sizes.stored_words)

    def learner_with(words: WordVectors, vectors: torch.Tensor | None) -> MultiChoiceLearner | OpenEndedLearner:
        return make_learner(settings, record.sizes.to_input_sizes(), words, vocabulary, vectors, score_answer=score_answer)

    if resume:
        kept = words_with(None) if settings.words.kind == "bert" else None  # its weights are in files of its own
        check_begun(folder, lambda: learner_with(words_with(None) if kept is None else kept, None))
    if vocabulary is not None and not is_begun:
        if record.glove_words is not None and data.glove is None:
            raise UsageError(f"This training began with vectors of GloVe. Name them again: {option('glove', 'FILE')}.")
        vectors = torch.from_numpy(_first_vectors(settings, data, vocabulary)[0])
    torch.manual_seed(settings.training.seed)
    words = words_with(vectors)
    return learner_with(words, vectors), words


def _first_vectors(
    settings: BaselineSettings, data: TrainingData, vocabulary: WordVocabulary
) -> tuple[npt.NDArray[np.float32], int | None]:
    """Return (V, E) that words begin with, and how many are GloVe's; None without GloVe."""
    size, seed = settings.words.size, settings.training.seed
    return read_glove(data.glove, vocabulary, size, seed=seed) if data.glove else (draw_vectors(vocabulary, size, seed=seed), None)
