"""Captions with a blank as models are trained on and fill them: items, and batches of token ids and features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from vip.baselines.features import check_batch
from vip.baselines.fiber.settings import ModelSettings
from vip.baselines.fiber.video import Clip, ClipFeatures, third_second
from vip.errors import InputError
from vip.untrusted import one_line

BLANK = "_____"
T5_BLANK, T5_NEXT = "<extra_id_0>", "<extra_id_1>"
"""T5's name of the blank, and of the one behind it, which ends an answer."""
MOST_BYTES = 2**29  # of the features of a batch; 64 of VATEX have 8 MB
NO_LOSS = -100  # transformers leaves such labels out


@dataclass(frozen=True, slots=True)
class BlankItem:
    """A caption with a blank."""

    id: str
    clip: Clip
    masked: str
    label: str | None = None
    """What stood in the blank; None where it is not known."""
    answers: tuple[str, ...] = ()
    """All phrases that are right, the label among them."""


@dataclass(frozen=True, slots=True)
class FillerBatch:
    """B captions with blanks."""

    items: tuple[BlankItem, ...]
    ids: Tensor
    """(B, T) int64, the pieces of the caption, with its end."""
    mask: Tensor
    """(B, T) int64, 1 where there is a piece."""
    video: Tensor | None
    """(B, M, D) float32; None where the model sees no video."""
    video_mask: Tensor | None
    """(B, M) int64."""
    labels: Tensor | None
    """(B, L) int64, -100 behind the end; None where a label is not known."""

    def to(self, device: torch.device) -> FillerBatch:
        names = ("ids", "mask", "video", "video_mask", "labels")
        moved = {name: value.to(device) for name in names if (value := getattr(self, name)) is not None}
        return replace(self, **moved)


@dataclass(frozen=True)
class Collator:
    """Makes a batch of items: tokenises their captions and labels, and reads the features of their clips.

    Args:
        tokenizer: T5's, of transformers.
        features: None where the model sees no video.
    """

    tokenizer: Any
    settings: ModelSettings
    features: ClipFeatures | None = None

    def __call__(self, items: Sequence[BlankItem]) -> FillerBatch:
        text = self.tokenizer(
            [item.masked.replace(BLANK, T5_BLANK) for item in items],
            padding=True,
            truncation=True,
            max_length=self.settings.text_length,
            return_tensors="pt",
        )
        labels = [item.label for item in items if item.label is not None]
        video, video_mask = self._video(items)
        return FillerBatch(
            tuple(items),
            text["input_ids"],
            text["attention_mask"],
            video,
            video_mask,
            self._labels(labels) if len(labels) == len(items) else None,
        )

    def _labels(self, labels: Sequence[str]) -> Tensor:
        found = self.tokenizer([f"{T5_BLANK} {label} {T5_NEXT}" for label in labels], padding=True, return_tensors="pt")
        ids: Tensor = found["input_ids"]
        return ids.masked_fill(found["attention_mask"] == 0, NO_LOSS)

    def _video(self, items: Sequence[BlankItem]) -> tuple[Tensor | None, Tensor | None]:
        if self.features is None:
            return None, None
        rows: list[Tensor] = []
        for item in items:
            rows.append(torch.from_numpy(self._features_of(self.features, item.clip)))
            check_batch(len(items), max(map(len, rows)) * self.features.width, MOST_BYTES)  # as they are padded
        padded = pad_sequence(rows, batch_first=True)
        lengths = torch.tensor([len(row) for row in rows])
        return padded, (torch.arange(padded.shape[1]) < lengths[:, None]).long()

    def _features_of(self, features: ClipFeatures, clip: Clip) -> Any:
        """Return those of a clip that the model is given; a copy, so that the others are not kept."""
        if self.settings.single_feature:
            return third_second(features, clip, features.read(clip)).copy()
        return features.read(clip, self.settings.video_length).copy()


def check_items(items: Sequence[BlankItem], *, with_labels: bool) -> None:
    """Refuse items that cannot be filled or learned from.

    Raises:
        InputError: there are none, one has not one blank, or no label.
    """
    if not items:
        raise InputError("There are no captions with a blank. Give a file with some.")
    for item in items:
        if item.masked.count(BLANK) != 1:
            raise InputError(f"The caption {one_line(item.id)[:80]} has {item.masked.count(BLANK)} blanks. Expected one.")
        if with_labels and not item.label:
            raise InputError(f"The caption {one_line(item.id)[:80]} has no label, and the model learns from it. Give files with labels.")


def items_sha256(items: Sequence[BlankItem]) -> str:
    """Return the SHA-256 of all captions, labels and answers, in order."""
    digest = sha256()
    for item in items:
        digest.update(repr((item.id, item.clip.name, item.masked, item.label, item.answers)).encode())
    return digest.hexdigest()
