"""vip.baselines.nextqa.data: what of a question is in a batch, and in a hash"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.baselines.made import write_features
from vip.baselines.features import FeatureStore
from vip.baselines.nextqa.assemble import texts_for_vocabulary
from vip.baselines.nextqa.data import Collator, Item, items_sha256
from vip.baselines.nextqa.words import QuestionText, TextBatch

ITEM = Item("1", "v", "what is it", ("a dog", "a cat", "a boy"), 2)


@pytest.mark.parametrize(
    "change", [{"id": "2"}, {"video": "w"}, {"question": "who is it"}, {"options": ("a dog", "a cat", "a girl")}, {"answer": 1}]
)
def test_each_part_of_a_question_is_in_the_hash(change: dict[str, Any]) -> None:
    assert items_sha256([ITEM]) == items_sha256([replace(ITEM)]) != items_sha256([replace(ITEM, **change)])


def test_words_are_counted_in_questions_and_their_right_answers() -> None:
    assert texts_for_vocabulary([ITEM, Item("2", "v", "why", (), "it rains")]) == ["what is it a boy", "why it rains"]


def test_a_batch_has_the_clips_of_each_video_the_pairs_of_each_question_and_the_answers(tmp_path: Path) -> None:
    feats = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
    asked: list[QuestionText] = []

    def prepare(texts: Any) -> TextBatch:
        asked.extend(texts)
        return TextBatch(torch.ones(len(texts), dtype=torch.int64))

    store = FeatureStore([write_features(tmp_path / "f.h5", feats, ["v", "w"], appearance=1)])
    items = [replace(ITEM, video="w", row=5, file=1), ITEM]
    batch = Collator(prepare, store)(items)
    assert torch.equal(batch.video.appearance, torch.from_numpy(feats[[1, 0], :, :1]))
    assert torch.equal(batch.video.motion, torch.from_numpy(feats[[1, 0], :, 1:]))
    assert asked == [
        QuestionText("what is it", option, file, row, number)
        for file, row in ((1, 5), (0, 0))
        for number, option in enumerate(ITEM.options)
    ]
    assert batch.answers is not None
    assert batch.answers.tolist() == [2, 2]
    assert Collator(prepare, store)([ITEM, replace(ITEM, answer=None)]).answers is None


def test_maps_are_pooled_over_their_places(tmp_path: Path) -> None:
    maps = np.random.default_rng(0).normal(size=(1, 2, 3, 4, 5)).astype(np.float32)
    store = FeatureStore([write_features(tmp_path / "m.h5", maps, ["v"], appearance=1)])
    video = Collator(lambda texts: TextBatch(torch.ones(len(texts), dtype=torch.int64)), store)([ITEM]).video
    assert video.maps is not None
    assert torch.equal(video.maps, torch.from_numpy(maps))
    torch.testing.assert_close(video.clips, torch.from_numpy(maps.reshape(1, 2, 3, 20).mean(axis=-1)))
