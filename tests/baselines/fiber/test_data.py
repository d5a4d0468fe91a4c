"""vip.baselines.fiber.data: what of a caption, its label and its video is in a batch, and in a hash"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")

import torch

from tests.baselines.fiber.made import write_t5
from vip.baselines.fiber.data import NO_LOSS, BlankItem, Collator, check_items, items_sha256
from vip.baselines.fiber.settings import load_settings
from vip.baselines.fiber.t5 import load_t5
from vip.baselines.fiber.video import Clip, FeatureFolder
from vip.baselines.settings import parse_assignments
from vip.errors import InputError

pytestmark = pytest.mark.slow
ITEM = BlankItem("1", Clip("v", 0, 10), "_____ runs in the park .", "a dog", ("a dog", "the dog"))
OTHER = BlankItem("2", Clip("w", 3, 13), "Two of them thrown in _____", "the ball here", ("the ball here",))


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return load_t5(f"t5:{write_t5(tmp_path_factory.mktemp('t5'))}")[1]


def collator(tokenizer: Any, features: FeatureFolder | None = None, *settings: str) -> Collator:
    return Collator(tokenizer, load_settings("early-fusion", assignments=parse_assignments(settings)).options, features)


def test_a_caption_and_its_label_are_written_as_t5_names_its_blanks(tokenizer: Any) -> None:
    batch = collator(tokenizer)([ITEM, OTHER])
    assert tokenizer.batch_decode(batch.ids) == [
        "<extra_id_0> runs in the park . </s>",
        "Two of them thrown in <extra_id_0> </s>",
    ]
    assert batch.mask.all()
    assert batch.labels is not None
    first, second = batch.labels.tolist()
    assert tokenizer.decode(first[:-1]) == "<extra_id_0> a dog <extra_id_1> </s>"
    assert first[-1] == NO_LOSS
    assert tokenizer.decode(second) == "<extra_id_0> the ball here <extra_id_1> </s>"


def test_of_a_long_caption_the_end_is_left_out(tokenizer: Any) -> None:
    batch = collator(tokenizer, None, "model.text_length=4")([ITEM])
    assert tokenizer.batch_decode(batch.ids) == ["<extra_id_0> runs in </s>"]


def test_labels_are_those_of_all_captions_or_none(tokenizer: Any) -> None:
    assert collator(tokenizer)([ITEM, replace(OTHER, label=None)]).labels is None


def test_of_a_long_video_the_later_features_are_left_out(tokenizer: Any, tmp_path: Path) -> None:
    rows = np.arange(7, dtype=np.float32)[:, None] * np.ones((1, 2), np.float32)
    np.save(tmp_path / "v.npy", rows)
    np.save(tmp_path / "w.npy", rows[:2] + 10)
    batch = collator(tokenizer, FeatureFolder(tmp_path), "model.video_length=3")([ITEM, OTHER])
    assert batch.video is not None
    assert batch.video_mask is not None
    assert batch.video[..., 0].tolist() == [[0.0, 1.0, 2.0], [10.0, 11.0, 0.0]]
    assert batch.video_mask.tolist() == [[1, 1, 1], [1, 1, 0]]
    assert batch.to(torch.device("meta")).video_mask.device.type == "meta"  # type: ignore[union-attr]


def test_of_a_row_of_features_only_what_the_model_is_given_is_kept(tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "v.npy", np.ones((7, 2), np.float32))
    folder = FeatureFolder(tmp_path)
    for changed, count in (("model.video_length=3", 3), ("model.single_feature=true", 1)):
        kept = collator(tokenizer, folder, changed)._features_of(folder, ITEM.clip)
        assert (kept.shape, kept.base) == ((count, 2), None)
    monkeypatch.setattr("vip.baselines.fiber.data.MOST_BYTES", 2 * 3 * 2 * 4)
    collate = collator(tokenizer, folder, "model.video_length=3")
    assert collate([ITEM, ITEM]).video is not None
    calls = iter([folder.read(ITEM.clip, 3)])
    monkeypatch.setattr(FeatureFolder, "read", lambda *given: next(calls))
    with pytest.raises(InputError, match=r"A batch of 3 with 6 numbers each has 72 bytes"):
        collate([ITEM, ITEM, ITEM])  # refused behind the first row


@pytest.mark.parametrize(
    "change",
    [{"id": "3"}, {"clip": Clip("v", 0, 11)}, {"masked": "_____ runs ."}, {"label": "a cat"}, {"answers": ("a dog",)}],
)
def test_each_part_of_a_caption_is_in_the_hash(change: dict[str, Any]) -> None:
    assert items_sha256([ITEM]) == items_sha256([replace(ITEM)]) != items_sha256([replace(ITEM, **change)])


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([], "There are no captions with a blank"),
        ([replace(ITEM, masked="_____ and _____ run")], "The caption 1 has 2 blanks"),
        ([replace(ITEM, masked="nobody runs")], "The caption 1 has 0 blanks"),
        ([ITEM, replace(OTHER, label="")], "The caption 2 has no label"),
    ],
)
def test_captions_that_teach_nothing_are_one_sentence(items: list[BlankItem], said: str) -> None:
    with pytest.raises(InputError, match=said):
        check_items(items, with_labels=True)
    check_items([replace(ITEM, label=None)], with_labels=False)
