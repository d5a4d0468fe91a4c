"""`vip train fiber`: from captions with blanks, features and a T5 to a run folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from vip import files, store
from vip.baselines.fiber.data import BlankItem, Collator, check_items, items_sha256
from vip.baselines.fiber.filler import Filler
from vip.baselines.fiber.run_folder import FILLER, TrainedFiller, read_filler
from vip.baselines.fiber.settings import FillerSettings
from vip.baselines.fiber.t5 import FOLDER, load_t5, make_t5, read_t5, save_t5
from vip.baselines.fiber.video import ClipFeatures, open_clip_features
from vip.baselines.installed import is_first_process
from vip.baselines.kept import read_before
from vip.baselines.run_folder import EPOCHS, LAST, WEIGHTS, check_begun, count_epochs
from vip.baselines.training import EpochOrder, LinearDecay, Machine, make_loader, train
from vip.errors import StoreError, UsageError
from vip.protocols import Observer
from vip.untrusted import one_line
from vip.wording import counted, option


@dataclass(frozen=True, slots=True, kw_only=True)
class FillerData:
    """What a model is trained on.

    Args:
        features: a folder of npy files, or HDF5 files; none where the model sees no video.
    """

    train: Sequence[BlankItem]
    val: Sequence[BlankItem]
    features: Sequence[Path] = ()

    @property
    def sha256(self) -> str:
        return sha256(f"{items_sha256(self.train)} {items_sha256(self.val)}".encode()).hexdigest()


def train_filler(
    settings: FillerSettings | None,
    data: FillerData,
    weights: str | None,
    folder: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    epochs: int | None = None,
    machine: Machine | None = None,
    observer: Observer,
) -> TrainedFiller:
    """Train a model into a folder and return what was trained.

    Args:
        settings: None with `resume`: those of the folder.
        weights: the T5 that training begins with, `t5:NAME`; with `resume` only needed where no epoch has ended yet.
        epochs: with `resume`, another number of epochs.

    Raises:
        UsageError: the folder holds another training, or what is needed is not named.
        InputError: a file cannot be used, or the loss is not a number any more.
        BackendError: a library, the T5, the device or its memory is missing.
        StoreError: the folder is in use, or cannot be written to.
    """
    check_items(data.train, with_labels=True)
    check_items(data.val, with_labels=True)
    with store.create_folder(folder) if is_first_process() else nullcontext():
        before = read_before(folder / FILLER, read_filler, resume=resume, overwrite=overwrite)
        settings = _resolve(settings, before, epochs, folder)
        with open_features(settings, data.features, (*data.train, *data.val)) as features:
            if before is None:
                record = _begin(settings, data, weights, features, folder)
            else:
                record = _go_on(before, settings, data, features, folder)
            return _run(record, weights, data, features, folder, machine or Machine(), observer, resume=before is not None)


@contextmanager
def open_features(settings: FillerSettings, paths: Sequence[Path], items: Sequence[BlankItem]) -> Iterator[ClipFeatures | None]:
    """Open the features that a model needs, and check that every clip has some; None where it sees no video.

    Raises:
        UsageError: none are given, or some to a model without video.
        InputError: they are damaged, or lack a clip.
    """
    if not settings.sees_video:
        if paths:
            raise UsageError(f"The model {settings.model} sees no video. Leave {option('features')} out.")
        yield None
        return
    features = open_clip_features(paths)
    try:
        features.check([item.clip for item in items])
        yield features
    finally:
        features.close()


def _resolve(settings: FillerSettings | None, before: TrainedFiller | None, epochs: int | None, folder: Path) -> FillerSettings:
    """Return the settings of this training; one that goes on may only have another number of epochs.

    Raises:
        UsageError: others were asked for, or none are known.
    """
    if before is None:
        if settings is None:
            raise UsageError(f"{folder} holds no training. Name the model: {option('model', 'early-fusion')}.")
        return settings
    wanted = epochs or (settings or before.settings).training.epochs
    if settings is not None and _with_epochs(settings, before.settings.training.epochs).sha256 != before.settings_sha256:
        raise UsageError(
            f"{folder} holds a training of {before.settings.model} with other settings. Leave the settings out to go on with it,"
            f" or name another folder with {option('out')}."
        )
    return _with_epochs(before.settings, wanted)


def _with_epochs(settings: FillerSettings, epochs: int) -> FillerSettings:
    return settings.model_copy(update={"training": settings.training.model_copy(update={"epochs": epochs})})


def _begin(settings: FillerSettings, data: FillerData, weights: str | None, features: ClipFeatures | None, folder: Path) -> TrainedFiller:
    """Write what the folder of a new training holds, filler.json last.

    Raises:
        UsageError: no T5 is named.
    """
    if weights is None:
        raise UsageError(f"Name the T5 that training begins with: {option('weights', 't5:google/t5-v1_1-base')}, or t5:FOLDER.")
    save = load_t5(weights)
    _clear(folder)
    save_t5(*save, folder)
    record = TrainedFiller(
        settings=settings,
        settings_sha256=settings.sha256,
        width=features.width if features else 0,
        weights=weights,
        train_items=len(data.train),
        val_items=len(data.val),
        data_sha256=data.sha256,
        versions={name: version(name) for name in ("torch", "lightning", "transformers")},
    )
    store.write_json(folder / FILLER, record)
    return record


def _go_on(before: TrainedFiller, settings: FillerSettings, data: FillerData, features: ClipFeatures | None, folder: Path) -> TrainedFiller:
    """Check that a training goes on with what it began with.

    Raises:
        UsageError: the captions, or the width of the features, are others.
    """
    if data.sha256 != before.data_sha256:
        raise UsageError(f"{folder} was trained on other captions. Give the same annotations, or another folder with {option('out')}.")
    if (features.width if features else 0) != before.width:
        raise UsageError(f"{folder} was trained on features of {before.width} numbers. Give the same features, or another folder.")
    record = before.model_copy(update={"settings": settings, "settings_sha256": settings.sha256})
    if is_first_process() and record != before:
        store.write_json(folder / FILLER, record)
    return record


def _clear(folder: Path) -> None:
    """Delete what an earlier training left."""
    try:
        for name in (FILLER, WEIGHTS, EPOCHS, LAST):
            files.remove(folder / name, inside=folder)
        if store.is_folder(folder / FOLDER):
            files.remove_folder(folder / FOLDER)
    except OSError as exc:
        raise StoreError(f"{folder} cannot be emptied: {exc.strerror}. Choose another folder with {option('out')}.") from exc


def _first_t5(record: TrainedFiller, weights: str | None, folder: Path) -> tuple[Any, Any]:
    """Return the T5 that a training begins with: the one that the command names, since a folder of somebody else may name any.

    Raises:
        UsageError: it names none, or another than at the beginning.
    """
    if weights != record.weights:
        began = one_line(record.weights)[:200]
        raise UsageError(f"{folder} began with {began}, and no epoch has ended. Name it again: {option('weights', began)}.")
    return load_t5(weights)


def _make_learner(record: TrainedFiller, weights: str | None, folder: Path, *, is_begun: bool) -> Filler:
    """Return the learner as it begins; where weights were saved, its T5 is as large as those and has random ones."""
    if not is_begun:
        t5, tokenizer = _first_t5(record, weights, folder)
        return Filler(record.settings, t5, tokenizer, record.width)
    config, tokenizer = read_t5(folder)

    def build() -> Filler:
        return Filler(record.settings, make_t5(config, folder), tokenizer, record.width)

    check_begun(folder, build)
    return build()


def _run(
    record: TrainedFiller,
    weights: str | None,
    data: FillerData,
    features: ClipFeatures | None,
    folder: Path,
    machine: Machine,
    observer: Observer,
    *,
    resume: bool,
) -> TrainedFiller:
    settings = record.settings
    if resume and is_first_process() and count_epochs(folder) >= settings.training.epochs and record.is_finished:
        observer.note(f"{counted(settings.training.epochs, 'epoch')} are done already. Ask for more: {option('epochs', 'NUMBER')}.")
        return record
    torch.manual_seed(settings.training.seed)
    learner = _make_learner(record, weights, folder, is_begun=resume and store.exists(folder / LAST))
    tokenizer = learner.tokenizer
    learner.train()
    collate = Collator(tokenizer, settings.options, features)
    batch = max(1, settings.training.batch // machine.devices)  # each device has its share
    order = EpochOrder(len(data.train), settings.training.seed)
    rows = train(
        learner,
        make_loader(data.train, collate, batch=batch, workers=machine.workers, order=order),
        make_loader(data.val, collate, batch=batch, workers=machine.workers),
        settings=settings.training,
        schedule=LinearDecay(
            warmup_epochs=settings.training.warmup_epochs,
            weight_decay=settings.training.weight_decay,
            each=settings.training.schedule,
        ),
        learning_rate=settings.training.learning_rate,
        folder=folder,
        machine=machine,
        observer=observer,
        resume=resume,
    )
    best = max(rows, key=lambda row: row.score)  # of equals the first, as the weights
    done = record.model_copy(update={"best_epoch": best.epoch, "best_score": best.score, "is_finished": True})
    if is_first_process():
        store.write_json(folder / FILLER, done)
    return done
