"""Settings of a training: TOML files with the source of every hyper-parameter, and what a user changes in them.

Read in this order, a later one over an earlier: the file of the task (`multi-choice.toml`), the file of the model (`hga.toml`), that of its
decoder, the user's own file, single values (`model.hidden=64`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vip.errors import InputError, UsageError
from vip.files import read_named
from vip.untrusted import one_line, parse_toml
from vip.wording import option

MOST_BYTES = 1_000_000
WordKind = Literal["glove", "bert", "features"]


class Part(BaseModel):
    """A table of settings."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class WordSettings(Part):
    """How texts become vectors."""

    kind: WordKind = "glove"
    """`glove`: a vocabulary, with vectors of GloVe to begin with; `bert`: a BERT; `features`: vectors from a file, one a word piece."""
    size: int = Field(ge=1, le=4096)
    """Numbers a word that the model gets."""
    length: int = Field(ge=2, le=512)
    """The most words of a text."""
    part_length: int = Field(ge=1, le=512)
    """The most words of a question, and of an option."""
    least_count: int = Field(ge=1)
    """How often a word must occur to be in the vocabulary."""
    layer: int = Field(ge=-64, le=64)
    """Which hidden layer of BERT gives the vectors: -2 is the last but one."""
    fine_tune: bool = False
    """Whether BERT is trained too."""
    answer_length: int = Field(default=7, ge=2, le=64)
    """The most words of an open-ended answer, with its start."""


class TrainingSettings(Part):
    """How a model is trained."""

    loss: Literal["hinge", "cross-entropy"]
    margin: float = Field(gt=0)
    """Of the hinge loss."""
    learning_rate: float = Field(gt=0, lt=10)
    bert_learning_rate: float = Field(gt=0, lt=10)
    """The same, where words are those of BERT."""
    batch: int = Field(ge=1, le=65_536)
    epochs: int = Field(ge=1, le=100_000)
    plateau_factor: float = Field(gt=0, lt=1)
    """What the learning rate is multiplied by where the score on val has not risen for `plateau_patience` epochs."""
    plateau_patience: int = Field(ge=0)
    seed: int = Field(ge=0, lt=2**32)
    best_by: Literal["accuracy", "wups", "exact-match"]
    """The score on val by which the weights are kept."""
    teacher_forcing: float = Field(ge=0, le=1)
    """How often a decoder is given the right word before, and not its own."""


class BaselineSettings(Part):
    """All settings of a training. With the files it reads, they decide every weight."""

    task: str
    model: str
    options: dict[str, Any]
    """Those of the model, checked by its class."""
    decoder: str | None = None
    decoder_options: dict[str, Any] = {}
    words: WordSettings
    training: TrainingSettings

    @property
    def sha256(self) -> str:
        """Of all settings, whatever their order."""
        return sha256(json.dumps(self.model_dump(), sort_keys=True).encode()).hexdigest()

    @property
    def learning_rate(self) -> float:
        return self.training.learning_rate if self.words.kind == "glove" else self.training.bert_learning_rate


Tables = dict[str, Any]


def read_tables(path: Path) -> Tables:
    """Return the tables of a TOML file.

    Raises:
        InputError: it is missing, or is no TOML.
    """
    try:
        return parse_toml(read_named(path, most_bytes=MOST_BYTES))
    except (OSError, ValueError) as exc:
        raise InputError(f"{path} cannot be read as settings ({one_line(str(exc))[:150]}). Give a TOML file.") from exc


def merge(tables: Iterable[Tables], within: str = "") -> Tables:
    """Return tables laid over one another; single values of a later one count.

    Args:
        within: where the tables stand, such as "model.", for what is said.

    Raises:
        UsageError: one has a single value where another has a table.
    """
    merged: Tables = {}
    for table in tables:
        for name, value in table.items():
            before: Any = merged.get(name, value)
            if isinstance(before, dict) != isinstance(value, dict):
                raise UsageError(f"{within}{name} is a table of settings. Write {option('set', f'{within}{name}.NAME=VALUE')}.")
            merged[name] = merge([before, value], f"{within}{name}.") if isinstance(value, dict) else value
    return merged


def parse_assignments(texts: Sequence[str]) -> Tables:
    """Return the tables of `model.hidden=64`; a value is one of TOML, or else text.

    Raises:
        UsageError: one has no name or no value.
    """
    tables: Tables = {}
    for text in texts:
        name, sign, value = text.partition("=")
        keys = name.strip().split(".")
        if not sign or not all(keys):
            raise UsageError(f'"{text}" sets nothing. Write {option("set", "training.epochs=10")}.')
        try:
            parsed = parse_toml(f"value = {value}")["value"]
        except ValueError:
            parsed = value.strip()
        tables = merge([tables, _nest(keys, parsed)])
    return tables


def _nest(keys: Sequence[str], value: Any) -> Tables:
    return {keys[0]: _nest(keys[1:], value) if len(keys) > 1 else value}


def check(values: Mapping[str, Any], kind: type[BaseModel], where: str) -> Any:
    """Return the record of `values`.

    Raises:
        UsageError: a name is unknown, or a value does not fit; `where` names the table.
    """
    try:
        return kind.model_validate(dict(values))
    except ValidationError as exc:
        first = exc.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        known = list(kind.model_fields)
        if first["type"] == "extra_forbidden":
            raise UsageError(f"{where} has no setting {name}. It has {', '.join(known) or 'none'}.") from exc
        raise UsageError(f"{where}.{name}: {first['msg']}, got {one_line(repr(first['input']))[:60]}.") from exc
