"""Settings of the models of FIBER: TOML files with the source of every number, and what a user changes in them."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Literal

from pydantic import Field

from vip.baselines.settings import Part, Tables, check, merge, read_tables
from vip.errors import UsageError, did_you_mean

MODELS = ("text", "early-fusion", "late-fusion")
_FOLDER = Path(__file__).parent
ModelName = Literal["text", "early-fusion", "late-fusion"]


class ModelSettings(Part):
    """How caption and video are read."""

    modality_embeddings: bool
    """Whether a learned vector says of each place if it is text or video."""
    single_feature: bool
    """Whether the video is its feature of the third second alone."""
    joint: Literal["random", "first-layer"]
    """What the layer over both begins with, in late fusion: random weights, or the first layer of T5's encoder."""
    text_length: int = Field(ge=4, le=512)
    """The most pieces of a caption; of a longer one the end is left out."""
    video_length: int = Field(ge=1, le=10_000)
    """The most features of a video; of more the later ones are left out."""


class DecodingSettings(Part):
    """How a phrase is generated."""

    beams: int = Field(ge=1, le=64)
    most_tokens: int = Field(ge=3, le=128)
    """Of an answer, its start included."""
    no_repeat: int = Field(ge=0, le=16)
    """No so many tokens in a row come twice; 0: any may."""


class TrainingSettings(Part):
    """How a model is trained."""

    learning_rate: float = Field(gt=0, lt=10)
    weight_decay: float = Field(ge=0, lt=10)
    batch: int = Field(ge=1, le=65_536)
    epochs: int = Field(ge=1, le=100_000)
    warmup_epochs: float = Field(ge=0)
    schedule: Literal["step", "epoch"]
    """How often the learning rate changes."""
    seed: int = Field(ge=0, lt=2**32)
    best_by: Literal["exact-match", "token-f1"]
    """The score on val by which the weights are kept."""


class FillerSettings(Part):
    """All settings of a training. With the files it reads, they decide every weight."""

    task: Literal["fiber"] = "fiber"
    model: ModelName
    options: ModelSettings
    decoding: DecodingSettings
    training: TrainingSettings

    @property
    def sha256(self) -> str:
        """Of all settings, whatever their order."""
        return sha256(json.dumps(self.model_dump(), sort_keys=True).encode()).hexdigest()

    @property
    def sees_video(self) -> bool:
        return self.model != "text"


def load_settings(model: str, *, config: Path | None = None, assignments: Tables | None = None) -> FillerSettings:
    """Return the settings of a model: its own files, the user's file over them, single values over that.

    Raises:
        UsageError: the model or a setting is unknown, or a value does not fit.
        InputError: the user's file cannot be read.
    """
    if model not in MODELS:
        raise UsageError(f'fiber has no model "{model}".{did_you_mean(model, MODELS)} It has {", ".join(MODELS)}.')
    given = merge([read_tables(config) if config else {}, assignments or {}])
    known: dict[str, type[Part]] = {"model": ModelSettings, "decoding": DecodingSettings, "training": TrainingSettings}
    if unknown := sorted(given.keys() - known.keys()):
        raise UsageError(f"There is no setting {unknown[0]}. The tables are {', '.join(known)}.")
    tables = merge([read_tables(_FOLDER / "fiber.toml"), read_tables(_FOLDER / f"{model}.toml"), given])
    parts = {name: check(tables[name], kind, name) for name, kind in known.items()}
    return FillerSettings.model_validate(
        {"model": model, "options": parts["model"], "decoding": parts["decoding"], "training": parts["training"]}
    )
