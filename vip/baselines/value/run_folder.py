"""The folders of a training of VALUE: one a stage, each with everything that predictions need, and nothing that is run when it is read.

    run/tvqa/             a stage: one model
      hero.json           settings, regime, tasks, what it was trained on, the best scores on val
      tokenizer/          RoBERTa's vocabulary
      weights.safetensors the weights with the best mean on val
      validations.jsonl   a row a validation
      last.ckpt           where training goes on

They may come from a stranger: names are fixed, numbers are bounded, weights are read as tensors alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field
from torch import nn

from vip import store
from vip.baselines.kept import build_with_tensors, load_tensors, read_kept, write_tensors
from vip.baselines.resumed import check_sizes
from vip.baselines.run_folder import read_last
from vip.baselines.value.interface import HeroModel, HeroSettings, build
from vip.baselines.value.settings import ValueSettings, known_tasks
from vip.errors import InputError
from vip.records import Record
from vip.untrusted import one_line
from vip.wording import option

HERO, WEIGHTS, VALIDATIONS, LAST = "hero.json", "weights.safetensors", "validations.jsonl", "last.ckpt"
ALL_TASKS = 11
MOST_TASKS, MOST_FEATURES, MOST_LETTERS, MOST_SCORE, MOST_STEPS = 100, 100, 200, 1e6, 10**12
Name = Annotated[str, Field(max_length=MOST_LETTERS)]
"""What stands in predictions and messages."""
Score = Annotated[float, Field(ge=-MOST_SCORE, le=MOST_SCORE)]


class ValidationRecord(Record):
    """One row of validations.jsonl."""

    step: int = Field(ge=1, le=MOST_STEPS)
    """From 1."""
    losses: dict[Name, float] = Field(max_length=MOST_TASKS)
    """Of each task the mean over its batches since the last validation."""
    scores: dict[Name, Score] = Field(min_length=1, max_length=MOST_TASKS)
    """Of each task its target metric on val, × 100."""
    learning_rate: float
    """Of the encoder."""
    is_best: bool
    """Whether no validation before was as good."""

    @property
    def mean(self) -> float:
        """Meta-Ave where all eleven tasks are trained; else the mean of those that are."""
        return sum(self.scores.values()) / len(self.scores)

    @property
    def text(self) -> str:
        """The mean with two digits, and that it is partial."""
        return mean_text(self.scores)


def mean_text(scores: dict[str, float]) -> str:
    """Return the mean of tasks in words: that of all eleven is Meta-Ave, another is partial."""
    value = f"{sum(scores.values()) / len(scores):.2f}" if scores else "–"
    of = next(iter(scores)) if len(scores) == 1 else f"mean of {len(scores)} tasks, partial"
    return f"{value} (Meta-Ave)" if len(scores) == ALL_TASKS else f"{value} ({of})"


class TrainedHero(Record):
    """hero.json."""

    settings: ValueSettings
    settings_sha256: str
    regime: Name
    stage: Name
    tasks: tuple[Name, ...] = Field(max_length=MOST_TASKS)
    weights: Name | None = None
    """What it began with: `hero`, `roberta`, a stage such as `at`; None: random weights."""
    features: tuple[Name, ...] = Field(default=(), max_length=MOST_FEATURES)
    """Names of the folders or files of its features, side by side."""
    train_items: dict[str, int]
    val_items: dict[str, int]
    data_sha256: str
    """Of the examples of train and val."""
    best_step: int | None = None
    """None before the first validation."""
    best_scores: dict[Name, Score] = Field(default_factory=dict, max_length=MOST_TASKS)
    is_finished: bool = False
    versions: dict[str, str] = Field(default_factory=dict)

    def name_for(self, task: str) -> str:
        """Return what stands in predictions: `model:hero st video+sub resnet+slowfast from:hero`.

        It is one for all stages of a run, which are one row of a table. A task of another stage says what was trained.
        """
        parts = [f"model:{self.settings.model.fusion}", self.regime, self.settings.input.channels, "+".join(self.features)]
        parts += [f"from:{self.weights}"] if self.weights else []
        return one_line(" ".join(parts) + ("" if task in self.tasks else f" trained on {self.stage}"))


def is_stage(folder: Path) -> bool:
    """Return whether a folder holds a stage."""
    return store.exists(folder / HERO)


def stages_in(folder: Path) -> list[Path]:
    """Return the folders of stages: the folder itself, or those in it."""
    if is_stage(folder):
        return [folder]
    inside = sorted(one for one in folder.iterdir() if one.is_dir() and not one.is_symlink()) if store.is_folder(folder) else []
    return [one for one in inside if is_stage(one)]


def read_hero(folder: Path) -> TrainedHero:
    """Read hero.json.

    Raises:
        InputError: the folder holds no stage, or is damaged, or its tasks are none that there are.
    """
    record = read_kept(folder / HERO, TrainedHero, f"{folder} holds no trained HERO. Give a folder that `vip train value` wrote.")
    if unknown := sorted(set(record.tasks) - known_tasks()):
        raise InputError(f"{folder / HERO} is damaged (there is no task {one_line(unknown[0])}). Train the model again.")
    return record


def stage_of_task(folder: Path, task: str) -> tuple[Path, TrainedHero]:
    """Return the stage of a run that answers a task: its own, else the one with fewest tasks.

    Raises:
        InputError: none does.
    """
    found = [(path, read_hero(path)) for path in stages_in(folder)]
    if not found:
        raise InputError(f"{folder} holds no trained HERO. Give a folder that `vip train value` wrote.")
    fitting = [one for one in found if task in one[1].tasks]
    if not fitting:
        known = ", ".join(dict.fromkeys(key for _, record in found for key in record.tasks)) or "nothing"
        raise InputError(f"{folder} holds no model of {task}: it was trained on {known}. Train {task}, or name another folder.")
    return min(fitting, key=lambda one: (one[1].stage != task, len(one[1].tasks)))


def _own_names(model: nn.Module) -> set[str]:
    """Return the names of weights; of those that share one tensor the first alone."""
    return {name for name, _ in model.named_parameters()} | {name for name, _ in model.named_buffers()}


def write_weights(path: Path, model: nn.Module) -> None:
    """Write the weights of a model."""
    write_tensors(path, model, _own_names(model))


def load_weights(path: Path, model: nn.Module) -> None:
    """Put the weights of a file into a model.

    Raises:
        InputError: it is missing or damaged, or is of another model.
    """
    load_tensors(path, model, _own_names(model), _missing(path))


def build_with_weights(path: Path, settings: HeroSettings) -> HeroModel:
    """Return the model of these settings with the weights of a file; settings that state other sizes take no memory.

    Raises:
        InputError: it is missing or damaged, or is of another model.
    """
    return build_with_tensors(path, lambda: build(settings), _own_names, _missing(path))


def check_begun(folder: Path, settings: HeroSettings) -> None:
    """Refuse a folder whose settings state other sizes than its weights have, before they take memory.

    Raises:
        InputError: they do, or what the training goes on from is damaged.
    """
    check_sizes(folder / LAST, read_last(folder), lambda: build(settings), lambda model: model.state_dict().keys())


def _missing(path: Path) -> str:
    return f"{path} does not exist: the training was not validated yet. Go on with {option('resume')}."
