"""`vip predict --model` with HERO: its own option, and what it does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vip.cli import options
from vip.cli.console import Console

if TYPE_CHECKING:
    from vip.tasks.predict import PredictionSummary

HERO = "hero:"

Tokenizer = Annotated[
    Path | None, options.option("--tokenizer", help="Folder of RoBERTa's tokenizer, for --model hero:FILE.", metavar="DIR")
]


def is_hero(model: Path | None, tokenizer: Path | None, task: str | None) -> bool:
    """Return whether a model is HERO: a checkpoint, a folder of its training, or whatever answers a task of VALUE.

    Raises:
        UsageError: a tokenizer is named, and no such model.
    """
    from vip.errors import UsageError
    from vip.wording import option

    of_value = task is not None and task.startswith("value-")
    found = model is not None and (str(model).startswith(HERO) or of_value or (model / "hero.json").is_file())
    if tokenizer is not None and not found:
        raise UsageError(f"{option('tokenizer')} is for {option('model', 'hero:FILE')}. Add it, or leave {option('tokenizer')} out.")
    return found


def predict_by_hero(
    context: typer.Context,
    model: Path,
    task: str | None,
    annotations: list[str],
    out: Path,
    inputs: dict[str, Any],
    *,
    overwrite: bool,
    console: Console,
) -> PredictionSummary:
    """Predict a task of VALUE by a trained model.

    Raises:
        UsageError: the task or its annotations are not named.
    """
    from vip.config import SampleSettings, resolve
    from vip.errors import UsageError
    from vip.tasks.value.trained_models import PredictRequest, predict_with_hero
    from vip.wording import option

    if task is None or not annotations:
        raise UsageError(f"{option('model', model)} needs {option('task', 'NAME')} and {option('annotations', 'FILE')}.")
    settings = resolve(SampleSettings, options.given(context, SampleSettings), note=console.note)
    request = PredictRequest(task=task, annotations=tuple(annotations), model=str(model), settings=settings, **inputs)
    return predict_with_hero(request, out, overwrite=overwrite, observer=console)
