"""Settings of a training of VALUE: those of its stage in training.toml, and what a user changes in them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from vip.baselines.settings import Part, Tables, check, merge, read_tables
from vip.baselines.value.interface import CollateOptions, HeroSettings, LossOptions, RankingOptions
from vip.errors import UsageError

TABLES = Path(__file__).with_name("training.toml")
DEFAULTS, WITHOUT_WEIGHTS = "defaults", "without_weights"
PARTS = ("model", "input", "loss", "ranking", "training", "tasks")


class TrainingSettings(Part):
    """How a model is trained."""

    learning_rate: float = Field(gt=0, lt=10)
    head_factor: float = Field(gt=0, le=1000)
    """What the learning rate of all that is not the encoder is multiplied by."""
    steps: int = Field(ge=1, le=100_000_000)
    warmup_steps: int = Field(ge=0)
    validate_every: int = Field(ge=1)
    """Steps between two validations."""
    accumulate: int = Field(ge=1, le=4096)
    """Batches a step."""
    betas: tuple[float, float]
    epsilon: float = Field(gt=0, lt=1)
    weight_decay: float = Field(ge=0, lt=1)
    gradient_norm: float = Field(gt=0)
    """To what longer gradients are cut."""
    hard_negatives_from: int = Field(ge=0)
    """The step from which hard negatives weigh more."""
    seed: int = Field(ge=0, lt=2**32)
    precision: Literal["32-true", "16-mixed", "bf16-mixed"]


class TaskShare(Part):
    """How much of a training is a task's."""

    ratio: int = Field(ge=1, le=1_000_000)
    """How often it is drawn."""
    batch: int = Field(ge=1, le=65_536)
    by_video: bool = False
    """Whether a batch counts videos, each with all that is asked of it."""


class ValueSettings(Part):
    """All settings of a training. With the files it reads, they decide every weight."""

    stage: str
    model: HeroSettings
    input: CollateOptions
    loss: LossOptions
    ranking: RankingOptions
    training: TrainingSettings
    tasks: dict[str, TaskShare]

    @property
    def sha256(self) -> str:
        """Of all settings, whatever their order."""
        return sha256(json.dumps(self.model_dump(), sort_keys=True).encode()).hexdigest()


def known_tasks() -> set[str]:
    """Return the tasks that models are trained on, those of pre-training among them."""
    return set(read_tables(TABLES)[DEFAULTS]["tasks"])


def load_settings(
    stage: str,
    tasks: Sequence[str],
    *,
    features: int,
    has_weights: bool,
    config: Path | None = None,
    assignments: Tables | None = None,
) -> ValueSettings:
    """Return the settings of a stage.

    Args:
        tasks: those that it trains.
        features: numbers a frame.
        has_weights: whether it begins with pre-trained weights of HERO; without them the paper trains longer.
        config: a TOML file over the published settings.
        assignments: tables over all of them.

    Raises:
        UsageError: a name is unknown, or a value does not fit.
        InputError: the file cannot be read.
    """
    published = read_tables(TABLES)
    own = published.get(stage, {})
    tables = [published[DEFAULTS], {name: table for name, table in own.items() if name != WITHOUT_WEIGHTS}]
    tables += [] if has_weights else [own.get(WITHOUT_WEIGHTS, {})]
    tables += [{"model": {"features": features}}, read_tables(config) if config else {}, assignments or {}]
    merged = merge(tables)
    if unknown_tables := merged.keys() - PARTS:
        raise UsageError(f"Settings of VALUE have no table {min(unknown_tables)}. They have {', '.join(PARTS)}.")
    if merged["model"]["features"] != features:
        raise UsageError(f"The features have {features} numbers a frame. Leave model.features out.")
    shares: Mapping[str, Any] = merged["tasks"]
    if unknown := shares.keys() - published[DEFAULTS]["tasks"].keys():
        raise UsageError(f"There is no task tasks.{min(unknown)}. Name one of {', '.join(published[DEFAULTS]['tasks'])}.")
    return ValueSettings(
        stage=stage,
        model=check(merged["model"], HeroSettings, "model"),
        input=check(merged["input"], CollateOptions, "input"),
        loss=check(merged["loss"], LossOptions, "loss"),
        ranking=check(merged["ranking"], RankingOptions, "ranking"),
        training=check(merged["training"], TrainingSettings, "training"),
        tasks={key: check(shares[key], TaskShare, f"tasks.{key}") for key in tasks},
    )
