"""Blanks filled by a model: a T5 as it is, or one of a run folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from vip.baselines.fiber.data import BlankItem, Collator, check_items
from vip.baselines.fiber.filler import FilledBlank, Filler, JudgePhrases
from vip.baselines.fiber.run_folder import read_filler
from vip.baselines.fiber.settings import load_settings
from vip.baselines.fiber.t5 import load_t5, make_t5, read_t5
from vip.baselines.fiber.train import open_features
from vip.baselines.run_folder import WEIGHTS, build_with_weights
from vip.errors import InputError

ZERO_SHOT_BEAMS = 8  # paper, section 4.2


@dataclass(frozen=True, slots=True)
class LoadedFiller:
    """A model that is ready to fill blanks."""

    learner: Filler
    name: str
    """What stands in predictions."""
    width: int
    is_finished: bool = True
    """Whether its training has ended."""


def open_zero_shot(named: str, *, beams: int | None = None) -> LoadedFiller:
    """Return a T5 that was not trained on FIBER, by `t5:NAME`. Errors as of `load_t5`."""
    settings = load_settings("text", assignments={"decoding": {"beams": beams or ZERO_SHOT_BEAMS}})
    t5, tokenizer = load_t5(named)
    return LoadedFiller(Filler(settings, t5, tokenizer, 0), f"{named} zero-shot beams:{settings.decoding.beams}", 0)


def open_filler(folder: Path, *, beams: int | None = None) -> LoadedFiller:
    """Return the model of a run folder.

    Args:
        beams: None: as in its settings.

    Raises:
        InputError: the folder is damaged.
        BackendError: transformers is not installed.
    """
    record = read_filler(folder)
    settings = record.settings
    if beams is not None:
        settings = settings.model_copy(update={"decoding": settings.decoding.model_copy(update={"beams": beams})})
    config, tokenizer = read_t5(folder)
    learner = build_with_weights(folder / WEIGHTS, lambda: Filler(settings, make_t5(config, folder), tokenizer, record.width))
    return LoadedFiller(learner, f"{record.name} beams:{settings.decoding.beams}", record.width, record.is_finished)


def fill_blanks(
    loaded: LoadedFiller,
    items: Sequence[BlankItem],
    *,
    features: Sequence[Path] = (),
    judge: JudgePhrases | None = None,
    device: str = "auto",
) -> Iterator[FilledBlank]:
    """Yield what fills each blank, in order. Labels are used for their likelihoods alone.

    Raises:
        UsageError: the model needs features and has none, or the other way round.
        InputError: the features or the items cannot be used.
    """
    check_items(items, with_labels=False)
    learner = loaded.learner
    settings = learner.settings
    device = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    learner.eval().to(device)
    with open_features(settings, features, items) as opened, torch.inference_mode():
        if opened is not None and opened.width != loaded.width:
            raise InputError(
                f"The features have {opened.width} numbers each, and the model was trained on {loaded.width}."
                " Give features of the same kind."
            )
        collate = Collator(learner.tokenizer, settings.options, opened)
        for start in range(0, len(items), settings.training.batch):
            yield from learner.fill(collate(items[start : start + settings.training.batch]).to(torch.device(device)), judge)
