"""The folder of a trained model of FIBER: everything that predictions need, and nothing that is run when it is read.

    filler.json           settings, width of the features, what it was trained on, the best score on val
    t5/                   how T5 is built, and its tokenizer
    weights.safetensors   the weights with the best score on val
    epochs.jsonl          a row an epoch
    last.ckpt             where training goes on

It may come from a stranger: names are fixed, numbers are bounded, weights are read as tensors alone.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from vip import store
from vip.baselines.features import MOST_WIDTH
from vip.baselines.fiber.settings import FillerSettings
from vip.baselines.kept import read_kept
from vip.records import Record

FILLER = "filler.json"


class TrainedFiller(Record):
    """filler.json."""

    settings: FillerSettings
    settings_sha256: str
    width: int = Field(ge=0, le=MOST_WIDTH)
    """Numbers a feature; 0 where the model sees no video."""
    weights: str
    """What it began with: `t5:google/t5-v1_1-base`."""
    train_items: int
    val_items: int
    data_sha256: str
    """Of the captions, labels and answers of train and val."""
    best_epoch: int | None = None
    """None before the first epoch ended."""
    best_score: float | None = None
    is_finished: bool = False
    versions: dict[str, str] = Field(default_factory=dict)

    @property
    def name(self) -> str:
        """What stands in predictions: `model:early-fusion settings:1a2b3c4d5e6f seed:42`."""
        return f"model:{self.settings.model} settings:{self.settings_sha256[:12]} seed:{self.settings.training.seed}"


def is_filler(folder: Path) -> bool:
    """Return whether a folder holds a model of FIBER."""
    return store.exists(folder / FILLER)


def read_filler(folder: Path) -> TrainedFiller:
    """Read filler.json.

    Raises:
        InputError: the folder holds no trained model, or is damaged.
    """
    return read_kept(
        folder / FILLER, TrainedFiller, f"{folder} holds no trained model of fiber. Give a folder that `vip train fiber` wrote."
    )
