"""The folder of a trained model: everything that predictions need, and nothing that is run when it is read.

    model.json            settings, sizes of the inputs, what it was trained on, the best score on val
    vocabulary.txt        a word a line, where words are GloVe's
    bert/                 the BERT, where words are BERT's
    weights.safetensors   the weights with the best score on val
    epochs.jsonl          a row an epoch
    last.ckpt             where training goes on

It may come from a stranger: names are fixed, numbers are bounded, weights are read as tensors alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from vip import files, store
from vip.baselines.learner import Learner
from vip.baselines.nextqa.interface import InputSizes
from vip.baselines.settings import BaselineSettings
from vip.errors import InputError, StoreError
from vip.records import Record, RecordPart
from vip.untrusted import one_line
from vip.wording import option

MODEL, VOCABULARY, BERT, WEIGHTS = "model.json", "vocabulary.txt", "bert", "weights.safetensors"
EPOCHS, LAST = "epochs.jsonl", "last.ckpt"
MOST_WEIGHT_BYTES = 8 * 2**30


class SizesRecord(RecordPart):
    """What the model is given; as of `InputSizes`."""

    appearance: int = Field(ge=0, le=1_000_000)
    motion: int = Field(ge=0, le=1_000_000)
    clips: int = Field(ge=0, le=100_000)
    words: int = Field(ge=1, le=1_000_000)
    length: int = Field(ge=1, le=10_000)
    maps: int = Field(ge=0, le=1_000_000)
    stored_words: int = Field(default=0, ge=0, le=1_000_000)
    """Numbers a piece of a word in the files of stored vectors; 0 where there are none."""

    def to_input_sizes(self) -> InputSizes:
        return InputSizes(**self.model_dump(exclude={"stored_words"}))


class EpochRecord(Record):
    """One row of epochs.jsonl."""

    epoch: int
    """From 1."""
    loss: float
    """Mean over the batches of the training set."""
    score: float
    """Mean over the questions of val, between 0 and 1, by `training.best_by`."""
    learning_rate: float
    is_best: bool
    """Whether no epoch before was as good."""


class TrainedModel(Record):
    """model.json."""

    settings: BaselineSettings
    settings_sha256: str
    sizes: SizesRecord
    appearance: int | None = None
    """How many numbers of a clip are appearance, where the user said so."""
    train_items: int
    val_items: int
    data_sha256: str
    """Of the questions and answers of train and val."""
    glove_words: int | None = None
    """How many words of the vocabulary began with vectors of GloVe; None where all were drawn at random."""
    best_epoch: int | None = None
    """None before the first epoch ended."""
    best_score: float | None = None
    is_finished: bool = False
    versions: dict[str, str] = Field(default_factory=dict)

    @property
    def name(self) -> str:
        """What stands in predictions: `model:hga settings:1a2b3c4d5e6f seed:666`."""
        decoder = f"+{self.settings.decoder}" if self.settings.decoder else ""
        return f"model:{self.settings.model}{decoder} settings:{self.settings_sha256[:12]} seed:{self.settings.training.seed}"


def read_model(folder: Path) -> TrainedModel:
    """Read model.json.

    Raises:
        InputError: the folder holds no trained model, or is damaged.
    """
    if not store.exists(folder / MODEL):
        raise InputError(f"{folder} holds no trained model. Give a folder that `vip train` wrote.")
    try:
        record = store.read_json(folder / MODEL, TrainedModel)
    except StoreError as exc:
        raise InputError(f"{folder / MODEL} is damaged ({one_line(str(exc))[:200]}). Train the model again.") from exc
    if record.settings_sha256 != record.settings.sha256:
        raise InputError(f"{folder / MODEL} was changed by hand: its settings are not those of its hash. Train the model again.")
    return record


def count_epochs(folder: Path) -> int:
    """Return how many epochs have ended."""
    return store.count_rows(folder / EPOCHS) if store.exists(folder / EPOCHS) else 0


def write_weights(path: Path, learner: Learner) -> None:
    """Write the weights that training changes."""
    from safetensors.torch import save

    frozen = learner.frozen_names()
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in learner.state_dict().items() if name not in frozen}
    with store.replacing(path) as file:
        file.write(save(tensors))


def load_weights(path: Path, learner: Learner) -> None:
    """Put the weights of a file into a learner.

    Raises:
        InputError: it is missing or damaged, or is of another model.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    if not store.exists(path):
        raise InputError(f"{path} does not exist: no epoch of the training has ended. Go on with {option('resume')}.")
    try:
        tensors: dict[str, Any] = load(files.read_bytes(path, most_bytes=MOST_WEIGHT_BYTES))
    except (OSError, SafetensorError, ValueError) as exc:
        raise InputError(f"{path} holds no weights that can be read ({one_line(str(exc))[:100]}). Train the model again.") from exc
    wanted = {name: tensor.shape for name, tensor in learner.state_dict().items() if name not in learner.frozen_names()}
    different = sorted(name for name in wanted.keys() | tensors.keys() if name not in tensors or tensors[name].shape != wanted.get(name))
    if different:
        raise InputError(f"{path} holds weights of another model, such as {one_line(different[0])[:80]}. Train the model again.")
    learner.load_state_dict(tensors, strict=False)
