"""vip.baselines.nextqa.data: what of a question is in a batch, and in a hash"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from tests.baselines.made import write_features
from vip.baselines.features import FeatureStore
from vip.baselines.nextqa.assemble import texts_for_vocabulary
from vip.baselines.nextqa.data import Collator, Item, check_items, input_sizes, items_sha256, open_features
from vip.baselines.nextqa.interface import InputSizes
from vip.baselines.nextqa.words import QuestionText, TextBatch
from vip.errors import InputError, UsageError

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
    collate = Collator(lambda texts: TextBatch(torch.ones(len(texts), dtype=torch.int64)), store, maps=True)
    video = collate([ITEM]).video
    assert video.maps is not None
    assert torch.equal(video.maps, torch.from_numpy(maps))
    pooled = replace(collate, maps=False)([ITEM]).video
    assert pooled.maps is None
    for clips in (video.clips, pooled.clips):
        torch.testing.assert_close(clips, torch.from_numpy(maps.reshape(1, 2, 3, 20).mean(axis=-1)))


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([], "There are no questions"),
        ([ITEM, replace(ITEM, id="2", options=("a", "b"), answer=0)], "The question 2 has 2 options, 1 has 3"),
        ([ITEM, replace(ITEM, id="2", answer=None)], "The question 2 has no right answer"),
        ([replace(ITEM, answer=3)], "The question 1 has no right answer"),
        ([replace(ITEM, answer=-1)], "The question 1 has no right answer"),
        ([replace(ITEM, options=(), answer=None)], "The question 1 has no right answer"),
    ],
)
def test_questions_that_make_no_batch_or_teach_nothing_are_one_sentence(items: list[Item], said: str) -> None:
    with pytest.raises(InputError, match=said):
        check_items(items, with_answers=True)
    if "right answer" in said:
        check_items(items, with_answers=False)


def test_options_and_words_of_every_place_may_be_right() -> None:
    check_items([replace(ITEM, answer=place) for place in range(3)], with_answers=True)
    check_items([replace(ITEM, options=(), answer="it rains")], with_answers=True)


def test_a_model_is_given_the_sizes_of_its_features_and_none_where_it_sees_no_video(tmp_path: Path) -> None:
    maps = write_features(tmp_path / "m.h5", np.zeros((1, 2, 5, 7, 7)), ["v"], appearance=4)
    flat = write_features(tmp_path / "f.h5", np.zeros((1, 2, 5)), ["v"], appearance=4)
    known = {"appearance": 4, "motion": 1, "clips": 2, "words": 6, "length": 9}
    assert input_sizes(FeatureStore([maps]), words=6, length=9) == InputSizes(**known, maps=5)
    assert input_sizes(FeatureStore([flat]), words=6, length=9) == InputSizes(**known, maps=0)
    assert input_sizes(None, words=6, length=9) == InputSizes(appearance=0, motion=0, clips=0, words=6, length=9)


def test_features_are_opened_for_models_that_see_them_and_closed_again(tmp_path: Path) -> None:
    path = write_features(tmp_path / "f.h5", np.zeros((1, 2, 5)), ["v"])
    flat, maps = SimpleNamespace(needs_maps=False), SimpleNamespace(needs_maps=True)
    with (
        pytest.raises(UsageError, match=r"This model sees the video\. Give its features: --features FILE"),
        open_features([], [], flat, None),
    ):
        pass
    with pytest.raises(InputError, match=r"f\.h5 has no feature maps, and this model needs some"), open_features([path], ["v"], maps, None):
        pass
    with pytest.raises(InputError, match="1 of 2 videos have no features, such as w"), open_features([path], ["v", "w"], flat, None):
        pass
    with open_features([path], ["v"], flat, 2) as found:
        assert (found.sizes.appearance, found.read(["v"]).shape) == (2, (1, 2, 5))
    with pytest.raises((InputError, ValueError)):
        found.read(["v"])
