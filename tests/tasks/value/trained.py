"""What takes the place of a training of HERO, and keeps what it was given."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.baselines.value.made_value import SMALL
from vip.baselines.value import run_folder
from vip.baselines.value.run_folder import ValidationRecord
from vip.protocols import SilentObserver

SETTINGS = tuple(f"{table}.{name}={value}" for table, values in SMALL.items() for name, value in values.items())


class Notes(SilentObserver):
    """Keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


class Trained:
    """Trains nothing: writes the weights that it was given, and says how good they are.

    Args:
        name: of the score.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: list[SimpleNamespace] = []
        self.rows = [(3, 50.0), (6, 50.0), (9, 10.0)]

    def __call__(self, model: Any, settings: Any, data: Any, folder: Path, *, machine: Any, observer: Any, resume: bool) -> Any:
        call = SimpleNamespace(settings=settings, data=data, folder=folder, machine=machine, resume=resume)
        call.weights = {name: value.clone() for name, value in model.state_dict().items()}
        call.scores = data.validate(model)
        call.there = {path.name for path in folder.iterdir()}
        self.calls.append(call)
        run_folder.write_weights(folder / run_folder.WEIGHTS, model)
        return [
            ValidationRecord(step=step, losses={}, scores={self.name: score}, learning_rate=0.1, is_best=step == 3)
            for step, score in self.rows
        ]
