"""Default models where the user names none: a dated choice, in local_models.toml beside this file."""

from __future__ import annotations

import tomllib
from datetime import date
from functools import cache
from pathlib import Path

from vip.records import RecordPart

FILE = Path(__file__).with_suffix(".toml")


class LocalModel(RecordPart):
    """A model that runs in this process."""

    model: str
    parameters: float
    """In billions."""
    download_gb: float
    licence: str
    why: str

    def __str__(self) -> str:
        """Return `Qwen/Qwen3-VL-2B-Instruct (2.1 billion parameters, 4.3 GB to download once, Apache-2.0)`."""
        return f"{self.model} ({self.parameters:g} billion parameters, {self.download_gb:g} GB to download once, {self.licence})"


class LocalModels(RecordPart):
    """The contents of local_models.toml."""

    as_of: date
    vision: LocalModel


@cache
def local_models() -> LocalModels:
    """Return the models of the file that comes with vip."""
    return LocalModels.model_validate(tomllib.loads(FILE.read_text(encoding="utf-8")))


def vision_model() -> LocalModel:
    """Return the model for `--engine transformers`."""
    return local_models().vision
