"""Questions as models are trained on and answer them: items, and batches of vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from vip.baselines.features import FeatureStore
from vip.baselines.nextqa.interface import InputSizes, VideoFeatures
from vip.baselines.nextqa.words import QuestionText, TextBatch
from vip.errors import InputError, UsageError
from vip.wording import option


@dataclass(frozen=True, slots=True)
class Item:
    """A question about a video."""

    id: str
    video: str
    question: str
    options: tuple[str, ...] = ()
    """None for open-ended questions."""
    answer: int | str | None = None
    """The right option, or the right words; None where they are not known."""
    exact: bool = False
    """Whether an open-ended answer must be equal to be right (yes-or-no questions, numbers)."""
    file: int = 0
    """Which file of stored vectors of texts it is in."""
    row: int = 0
    """Its place there."""


@dataclass(frozen=True, slots=True)
class Batch:
    """B questions."""

    items: tuple[Item, ...]
    video: VideoFeatures
    texts: TextBatch
    """Of B × O pairs, the options of a question one after the other; of B questions where there are none."""
    answers: Tensor | None = None
    """(B,) int64, the right options; or (B, T) int64, the words of the right answers; None where they are not known."""

    def to(self, device: torch.device) -> Batch:
        answers = None if self.answers is None else self.answers.to(device)
        return replace(self, video=self.video.to(device), texts=self.texts.to(device), answers=answers)


class ItemDataset(Dataset[Item]):
    """Items by number."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, number: int) -> Item:
        return self.items[number]


@dataclass(frozen=True)
class Collator:
    """Makes a batch of items: reads the features of their videos and prepares their texts.

    Args:
        prepare_texts: of the model's words.
        features: None where the model sees no video.
        encode_answer: an open-ended answer to the numbers of its words, as many for each; None for options.
        maps: whether the model is given feature maps, and not only their means.
    """

    prepare_texts: Callable[[Sequence[QuestionText]], TextBatch]
    features: FeatureStore | None
    encode_answer: Callable[[str], list[int]] | None = None
    maps: bool = False

    def __call__(self, items: Sequence[Item]) -> Batch:
        texts = [text for item in items for text in texts_of(item)]
        return Batch(tuple(items), self._video(items), self.prepare_texts(texts), self._answers(items))

    def _video(self, items: Sequence[Item]) -> VideoFeatures:
        if self.features is None:
            return VideoFeatures(torch.zeros(len(items), 0, 0), torch.zeros(len(items), 0, 0))
        found = torch.from_numpy(self.features.read([item.video for item in items], pooled=not self.maps))
        maps = found if found.ndim == 5 else None
        pooled = found if maps is None else found.mean(dim=(3, 4))
        width = self.features.sizes.appearance
        return VideoFeatures(pooled[..., :width], pooled[..., width:], maps)

    def _answers(self, items: Sequence[Item]) -> Tensor | None:
        if any(item.answer is None for item in items):
            return None
        if self.encode_answer is None:
            return torch.tensor([int(item.answer or 0) for item in items])
        return torch.tensor([self.encode_answer(str(item.answer)) for item in items])


def texts_of(item: Item) -> list[QuestionText]:
    """Return the texts of an item: a pair an option, or the question."""
    if not item.options:
        return [QuestionText(item.question, None, item.file, item.row)]
    return [QuestionText(item.question, option, item.file, item.row, number) for number, option in enumerate(item.options)]


def input_sizes(features: FeatureStore | None, *, words: int, length: int) -> InputSizes:
    """Return the sizes of what a model is given; zeros where it sees no video."""
    if features is None:
        return InputSizes(appearance=0, motion=0, clips=0, words=words, length=length)
    sizes = features.sizes
    maps = sizes.maps[0] if sizes.maps else 0
    return InputSizes(appearance=sizes.appearance, motion=sizes.motion, clips=sizes.clips, words=words, length=length, maps=maps)


@contextmanager
def open_features(paths: Sequence[Path], videos: Sequence[str], kind: Any, appearance: int | None) -> Iterator[FeatureStore]:
    """Open features for a class of models, and close them.

    Raises:
        UsageError: none are given.
        InputError: they are damaged, lack a video, or are no maps where the model needs some.
    """
    if not paths:
        raise UsageError(f"This model sees the video. Give its features: {option('features', 'FILE')}.")
    features = FeatureStore(paths, appearance=appearance)
    try:
        features.check(videos)
        if kind.needs_maps and features.sizes.maps is None:
            raise InputError(f"{paths[0]} has no feature maps, and this model needs some: feat of shape (videos, clips, numbers, 7, 7).")
        yield features
    finally:
        features.close()


def check_items(items: Sequence[Item], *, with_answers: bool) -> None:
    """Refuse items that cannot be put into batches.

    Raises:
        InputError: there are none, the number of options differs, or an answer is missing or no option.
    """
    if not items:
        raise InputError("There are no questions. Give a file with some.")
    for item in items:
        if len(item.options) != len(items[0].options):
            raise InputError(f"The question {item.id} has {len(item.options)} options, {items[0].id} has {len(items[0].options)}.")
        if with_answers and (item.answer is None or (item.options and item.answer not in range(len(item.options)))):
            raise InputError(f"The question {item.id} has no right answer, and the model learns from it. Give files with answers.")


def items_sha256(items: Sequence[Item]) -> str:
    """Return the SHA-256 of all questions, options and answers, in order."""
    digest = sha256()
    for item in items:
        digest.update(repr((item.id, item.video, item.question, item.options, item.answer)).encode())
    return digest.hexdigest()
