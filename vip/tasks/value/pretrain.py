"""Pre-training of HERO on videos with subtitles, without annotations (Li et al. 2020, section 3.2; Li et al. 2021, section 4.1).

In: features and subtitles of videos, RoBERTa's tokenizer and weights. Out: a folder as of `vip train value`, whose weights a training
begins with. One video of fifty is kept for validation, chosen by its name. A task scores 100 · exp(−loss) there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from vip import store
from vip.baselines.installed import check_installed, is_first_process
from vip.baselines.kept import check_kept_folder
from vip.errors import InputError, UsageError
from vip.protocols import Observer
from vip.tasks.files import digest_of
from vip.tasks.value.trained_models import clear_training, load_weights
from vip.wording import option

if TYPE_CHECKING:
    from vip.baselines.value.data import Example
    from vip.baselines.value.pretraining import PretrainingMaker
    from vip.baselines.value.run_folder import TrainedHero
    from vip.baselines.value.settings import ValueSettings
    from vip.baselines.value.tokenizer import TextEncoder

STAGE = "pretrain"
ONE_OF = 50
"""One video of so many is kept for validation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainRequest:
    """What `vip pretrain` was asked for."""

    out: Path
    features: Sequence[Path] = ()
    subtitles: Path | None = None
    """One file, whose videos are trained on."""
    tokenizer: Path | None = None
    weights: str | None = None
    """`roberta:FILE` or `hero:FILE`; None: random weights."""
    config: Path | None = None
    assignments: Sequence[str] = ()
    seed: int | None = None
    device: str = "auto"
    devices: int = 1
    workers: int = 0
    resume: bool = False
    overwrite: bool = False


def pretrain(request: PretrainRequest, *, observer: Observer) -> TrainedHero:
    """Pre-train HERO by MLM, MFM-NCE, FOM and VSM.

    Raises:
        UsageError: features, subtitles or a tokenizer are not given, a setting is unknown, or the folder holds another training.
        InputError: a file cannot be used.
        BackendError: a library, the device or its memory is missing.
        StoreError: the folder is in use, or cannot be written to.
    """
    check_installed()
    if request.subtitles is None or not request.subtitles.is_file():  # before torch is imported, which takes seconds
        raise UsageError(f"Sentences are masked and searched for. Name one file of subtitles: {option('subtitles', 'FILE')}.")
    from vip.baselines.training import Machine
    from vip.baselines.value import run_folder
    from vip.baselines.value.pretraining import scores_on
    from vip.baselines.value.tokenizer import TextEncoder
    from vip.baselines.value.training import StageData, draw_model, train_stage

    folder = request.out
    with store.create_folder(folder) if is_first_process() else nullcontext():
        before = _begun(request)
        settings, read, videos = _prepare(request)
        encoder = TextEncoder(_tokenizer(request), settings.model.vocabulary)
        makers = _makers(settings, read, encoder)
        train, val = (_examples(some) for some in split_videos(videos))
        record = _record(request, settings, train, val)
        if before is not None:
            _check_same(before, record, folder)
            if before.is_finished:
                observer.note(f"{folder} is trained already.")
                return before.model_copy(update={"train_items": record.train_items, "val_items": record.val_items})
        model = draw_model(settings)
        load_weights(model, request.weights, observer)
        if before is None and is_first_process():
            _begin(request, record, encoder)
        scores = partial(scores_on, makers=makers, videos=val, options=settings.loss, seed=settings.training.seed)
        data = StageData(train=dict.fromkeys(makers, train), makers=makers, validate=scores)
        machine = Machine(device=request.device, devices=request.devices, workers=request.workers)
        rows = train_stage(model, settings, data, folder, machine=machine, observer=observer, resume=before is not None)
        best = max(rows, key=lambda row: row.mean)
        done = record.model_copy(update={"best_step": best.step, "best_scores": best.scores, "is_finished": True})
        if is_first_process():
            store.write_json(folder / run_folder.HERO, done)
        return done


def _check_same(before: TrainedHero, now: TrainedHero, folder: Path) -> None:
    for name, what in (("settings_sha256", "other settings"), ("data_sha256", "other videos"), ("weights", "other weights")):
        if getattr(before, name) != getattr(now, name):
            raise UsageError(f"{folder} was begun with {what}. Give the same, or name another folder with {option('out')}.")


def _begin(request: PretrainRequest, record: TrainedHero, encoder: TextEncoder) -> None:
    """Write what a new training begins with, and delete what an earlier one left."""
    from vip.baselines.value import run_folder
    from vip.baselines.value.tokenizer import FOLDER

    clear_training(request.out)
    if _tokenizer(request) != request.out / FOLDER:
        encoder.copy_to(request.out / FOLDER)
    store.write_json(request.out / run_folder.HERO, record)


def split_videos(videos: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the videos that are trained on, and those of validation: one of fifty by its name, at least one of each.

    Raises:
        InputError: there are fewer than two.
    """
    ranked = sorted(videos, key=lambda name: digest_of(name, 8))
    if len(ranked) < 2:
        raise InputError(f"Two videos with subtitles and features are needed, and there are {len(ranked)}. Give more of them.")
    val = set(ranked[: max(1, len(ranked) // ONE_OF)])
    return sorted(name for name in videos if name not in val), sorted(val)


def _prepare(request: PretrainRequest) -> tuple[ValueSettings, Callable[[str], object], list[str]]:
    """Return the settings, what reads the channels of a video, and the videos that have both."""
    from vip.baselines.settings import merge, parse_assignments
    from vip.baselines.value.pretraining import RATIOS
    from vip.baselines.value.settings import load_settings
    from vip.tasks.value.training_data import ChannelReader

    reader = ChannelReader(request.features, request.subtitles)
    videos = reader.videos()
    if not videos:
        raise InputError(f"{request.subtitles} has no video whose features are given. Give subtitles and features of the same videos.")
    seed = {} if request.seed is None else {"training": {"seed": request.seed}}
    settings = load_settings(
        STAGE,
        tuple(RATIOS),
        features=reader.width(videos[0], ""),
        has_weights=True,
        config=request.config,
        assignments=merge([parse_assignments(request.assignments), seed]),
    )
    if settings.model.fusion != "hero":
        raise UsageError(f"The fusion {settings.model.fusion} has no pre-training. Leave model.fusion out.")
    return settings, reader.of_source(""), videos


def _makers(settings: ValueSettings, read: Callable[[str], object], encoder: TextEncoder) -> dict[str, PretrainingMaker]:
    from vip.baselines.value.data import ItemMaker
    from vip.baselines.value.pretraining import RATIOS, PretrainingMaker

    items = ItemMaker(encoder.encode, read, settings.input)  # type: ignore[arg-type]  # the channels of a video
    return {task: PretrainingMaker(task, items.video, settings.input, words=encoder.words, mask=encoder.mask) for task in RATIOS}


def _examples(videos: Sequence[str]) -> list[Example]:
    from vip.baselines.value.data import Example

    return [Example(name, "retrieval", name, ()) for name in videos]


def _record(request: PretrainRequest, settings: ValueSettings, train: Sequence[Example], val: Sequence[Example]) -> TrainedHero:
    from vip.baselines.value.data import examples_sha256
    from vip.baselines.value.run_folder import MOST_LETTERS, TrainedHero

    return TrainedHero(
        settings=settings,
        settings_sha256=settings.sha256,
        regime=STAGE,
        stage=STAGE,
        tasks=tuple(settings.tasks),
        weights=request.weights.partition(":")[0][:MOST_LETTERS] if request.weights else None,
        train_items=dict.fromkeys(settings.tasks, len(train)),
        val_items=dict.fromkeys(settings.tasks, len(val)),
        data_sha256=examples_sha256({"train": train, "val": val}),
        versions={name: version(name) for name in ("torch", "lightning", "transformers")},
    )


def _begun(request: PretrainRequest) -> TrainedHero | None:
    """Return the training that goes on.

    Raises:
        UsageError: the folder holds one, and it is neither to go on nor to be replaced.
    """
    from vip.baselines.value.run_folder import is_stage, read_hero

    if not is_stage(request.out) or request.overwrite:
        return None
    if not request.resume and is_first_process():
        raise UsageError(
            f"{request.out} holds a training already. Add {option('resume')} to go on with it, or {option('overwrite')} to begin anew."
        )
    return read_hero(request.out)


def _tokenizer(request: PretrainRequest) -> Path:
    from vip.baselines.value.tokenizer import FOLDER

    if request.tokenizer is None and not (request.resume and store.is_folder(request.out / FOLDER)):
        raise UsageError(f"Name the folder of RoBERTa's tokenizer, with vocab.json and merges.txt: {option('tokenizer', 'DIR')}.")
    if request.tokenizer is not None:
        return request.tokenizer
    check_kept_folder(request.out / FOLDER)
    return request.out / FOLDER
