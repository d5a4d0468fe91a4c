"""Answers of a trained model, from its run folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from vip.baselines.nextqa.assemble import TASKS, make_learner, make_words
from vip.baselines.nextqa.data import Collator, Item, check_items, open_features
from vip.baselines.nextqa.interface import load_class
from vip.baselines.nextqa.multi_choice import MultiChoiceLearner
from vip.baselines.nextqa.open_ended import OpenEndedLearner
from vip.baselines.nextqa.words import StoredTexts, StoredWords, WordVectors
from vip.baselines.run_folder import BERT, WEIGHTS, TrainedModel, build_with_weights, find_vocabulary, read_model
from vip.errors import InputError, UsageError
from vip.wording import option


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model says to an item."""

    value: int | str
    """The index of an option, or words; "" where an open-ended model says none."""
    scores: tuple[float, ...] | None = None
    """One an option."""


def open_trained(folder: Path) -> TrainedModel:
    """Return what a run folder holds.

    Raises:
        InputError: it holds no model of NExT-QA that this version knows.
    """
    record = read_model(folder)
    if record.settings.model not in TASKS.get(record.settings.task, {}):
        raise InputError(f"{folder} holds a model {record.settings.model!r:.40} that this version of vip does not know. Train it again.")
    return record


def answer_items(
    folder: Path,
    record: TrainedModel,
    items: Sequence[Item],
    *,
    features: Sequence[Path] = (),
    texts: Path | None = None,
    device: str = "auto",
) -> Iterator[Answer]:
    """Yield the answer to each item, in order.

    Args:
        features: files with the videos of all items.
        texts: stored vectors of these questions, where the model's words are those.
        device: as torch names it; `auto` is a GPU where there is one.

    Raises:
        UsageError: features or stored vectors are not given.
        InputError: the folder, the features or the items cannot be used.
    """
    check_items(items, with_answers=False)
    items = [replace(item, answer=None, file=0) for item in items]
    settings = record.settings
    kind = load_class(TASKS[settings.task], settings.model)
    learner = _build(folder, record)
    device = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    learner.eval().to(device)
    words = learner.words
    if isinstance(words, StoredWords):
        if texts is None:
            raise UsageError(
                f"The words of this model are stored vectors. Give those of these questions: {option('text-features', 'FILE')}."
            )
        words.files = [StoredTexts(texts)]
        words.files[0].check(len(items), len(items[0].options))
    with ExitStack() as stack:
        opened = None
        if kind.sees_video:
            opened = stack.enter_context(open_features(features, [item.video for item in items], kind, record.appearance))
            _check_sizes(record, opened.sizes.clips, opened.sizes.appearance, opened.sizes.motion)
        collate = Collator(words.prepare, opened, maps=kind.needs_maps)
        for start in range(0, len(items), settings.training.batch):
            batch = collate(items[start : start + settings.training.batch]).to(torch.device(device))
            with torch.inference_mode():
                if isinstance(learner, MultiChoiceLearner):
                    for row in learner(batch).cpu().tolist():
                        yield Answer(max(range(len(row)), key=row.__getitem__), tuple(row))
                else:
                    yield from map(Answer, learner.answer(batch))


def _build(folder: Path, record: TrainedModel) -> MultiChoiceLearner | OpenEndedLearner:
    """Return the learner of a folder with its weights."""
    settings, sizes = record.settings, record.sizes
    vocabulary = find_vocabulary(folder, settings)

    def read_words() -> WordVectors:
        return make_words(settings.words, vocabulary, None, bert=folder / BERT, stored_width=sizes.stored_words)

    kept = read_words() if settings.words.kind == "bert" else None  # its weights are in files of its own

    def build() -> MultiChoiceLearner | OpenEndedLearner:
        return make_learner(settings, sizes.to_input_sizes(), read_words() if kept is None else kept, vocabulary, None)

    return build_with_weights(folder / WEIGHTS, build)


def _check_sizes(record: TrainedModel, clips: int, appearance: int, motion: int) -> None:
    sizes = record.sizes
    if (appearance, motion) != (sizes.appearance, sizes.motion):
        raise InputError(
            f"The features have {appearance} + {motion} numbers a clip, and the model was trained on {sizes.appearance} + {sizes.motion}."
            " Give features of the same kind."
        )
    if clips != sizes.clips:
        raise InputError(f"The features have {clips} clips a video, and the model was trained on {sizes.clips}. Give as many.")
