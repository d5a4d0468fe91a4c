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

import os
import pickle
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch
from pydantic import Field

from vip import files, store
from vip.baselines.features import MOST_CLIPS, MOST_WIDTH
from vip.baselines.kept import MOST_WEIGHT_BYTES, build_with_tensors, load_tensors, read_kept, write_tensors
from vip.baselines.learner import Learner
from vip.baselines.nextqa.interface import InputSizes
from vip.baselines.resumed import anew, check_sizes, most_of_file, stated_bytes
from vip.baselines.settings import BaselineSettings
from vip.baselines.vocabulary import WordVocabulary, read_vocabulary
from vip.errors import InputError
from vip.records import Record, RecordPart
from vip.untrusted import DAMAGE
from vip.wording import option

MODEL, VOCABULARY, BERT, WEIGHTS = "model.json", "vocabulary.txt", "bert", "weights.safetensors"
EPOCHS, LAST = "epochs.jsonl", "last.ckpt"
PART = f"{LAST}{store.PARTIAL_SUFFIX}"
MOST_EPOCHS, MOST_SCORE = 1_000_000, 1e6
LearnerT = TypeVar("LearnerT", bound=Learner)


class SizesRecord(RecordPart):
    """What the model is given; as of `InputSizes`."""

    appearance: int = Field(ge=0, le=MOST_WIDTH)
    motion: int = Field(ge=0, le=MOST_WIDTH)
    clips: int = Field(ge=0, le=MOST_CLIPS)
    words: int = Field(ge=1, le=1_000_000)
    length: int = Field(ge=1, le=10_000)
    maps: int = Field(ge=0, le=MOST_WIDTH)
    stored_words: int = Field(default=0, ge=0, le=MOST_WIDTH)
    """Numbers a piece of a word in the files of stored vectors; 0 where there are none."""

    def to_input_sizes(self) -> InputSizes:
        return InputSizes(**self.model_dump(exclude={"stored_words"}))


class EpochRecord(Record):
    """One row of epochs.jsonl."""

    epoch: int = Field(ge=1, le=MOST_EPOCHS)
    """From 1."""
    loss: float
    """Mean over the batches of the training set."""
    score: float = Field(ge=-MOST_SCORE, le=MOST_SCORE)
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
    return read_kept(folder / MODEL, TrainedModel, f"{folder} holds no trained model. Give a folder that `vip train` wrote.")


def count_epochs(folder: Path) -> int:
    """Return how many epochs have ended."""
    path, advice = folder / EPOCHS, f"Begin the training anew: {option('overwrite')}."
    return sum(1 for line in store.lines(path, advice=advice) if line.strip()) if store.exists(path) else 0


def write_weights(path: Path, learner: Learner) -> None:
    """Write the weights that training changes."""
    write_tensors(path, learner, _trained_names(learner))


def load_weights(path: Path, learner: Learner) -> None:
    """Put the weights of a file into a learner.

    Raises:
        InputError: it is missing or damaged, or is of another model.
    """
    load_tensors(path, learner, _trained_names(learner), _missing(path))


def build_with_weights(path: Path, build: Callable[[], LearnerT]) -> LearnerT:
    """Return a learner with the weights of a file; settings that state other sizes take no memory.

    Raises:
        InputError: it is missing or damaged, or is of another model.
    """
    return build_with_tensors(path, build, _trained_names, _missing(path))


def _trained_names(learner: Learner) -> set[str]:
    return learner.state_dict().keys() - learner.frozen_names()


def _missing(path: Path) -> str:
    return f"{path} does not exist: no epoch of the training has ended. Go on with {option('resume')}."


def find_vocabulary(folder: Path, settings: BaselineSettings) -> WordVocabulary | None:
    """Return the vocabulary of a training; None where its words are no words of a vocabulary.

    Raises:
        InputError: it is missing or damaged.
    """
    path = folder / VOCABULARY
    if os.path.lexists(path):
        return read_vocabulary(path)
    if settings.words.kind == "glove" or settings.task == "nextqa-oe":
        raise InputError(f"{path} is missing. Train the model again.")
    return None


def find_last(folder: Path) -> Path | None:
    """Return the file that a training goes on from; None where there is none. Errors as of `read_last`."""
    return None if read_last(folder) is None else folder / LAST


def read_last(folder: Path) -> dict[str, Any] | None:
    """Return what a training goes on from; None where there is none. Lightning opens it by its name, whatever it is.

    Raises:
        InputError: it is a link, no regular file, damaged, or has more numbers than a file of its size can have.
    """
    path = folder / LAST
    if not os.path.lexists(path):
        return None
    try:
        with files.open_file(path, most_bytes=MOST_WEIGHT_BYTES) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch, about tensors that are refused later
            most = most_of_file(os.fstat(file.fileno()).st_size, MOST_WEIGHT_BYTES)
            files.check_unpacked(file, most)
            state = torch.load(file, map_location="cpu", weights_only=True)
        if not isinstance(state, dict):
            raise ValueError("it is no state of a training")
        if stated_bytes(state) > most:
            raise ValueError("it names more numbers than it has bytes")
    except (OSError, RuntimeError, *DAMAGE, pickle.UnpicklingError, zipfile.BadZipFile) as exc:
        raise anew(path, getattr(exc, "strerror", None) or str(exc)) from exc
    return state


def check_begun(folder: Path, build: Callable[[], LearnerT]) -> None:
    """Refuse a folder whose settings state other sizes than its weights have, before they take memory.

    Raises:
        InputError: they do, or what the training goes on from is damaged.
    """
    check_sizes(folder / LAST, read_last(folder), build, _trained_names)
