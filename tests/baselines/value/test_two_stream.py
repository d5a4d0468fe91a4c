"""vip.baselines.value.two_stream: two channels, and means of what they say"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from tests.baselines.value.tiny_hero import CAPTIONS, LONG, QUERIES, QUESTIONS, SHORT, SILENT, STATEMENTS, TINY, tiny
from vip.baselines.value.batches import collate_captions, collate_questions, collate_retrieval, collate_videos
from vip.baselines.value.captions import encode_moments
from vip.baselines.value.interface import CollateOptions, LossOptions, RetrievalScores
from vip.baselines.value.pretraining import collate_masked_text
from vip.baselines.value.two_stream import TwoStream, without_subtitles, without_video
from vip.errors import UsageError

BOTH, VIDEO, SUB = CollateOptions(), CollateOptions(channels="video"), CollateOptions(channels="sub")
TASKS = [(QUERIES, collate_retrieval), (QUESTIONS, collate_questions), (STATEMENTS, collate_questions), (CAPTIONS, collate_captions)]


def streams() -> TwoStream:
    model = tiny(fusion="two-stream", spread=0.3)
    assert isinstance(model, TwoStream)
    return model


def equal(one: Any, other: Any) -> bool:
    names = ("frames", "frame_mask", "sentence_video", "has_frames", "sentences", "sentence_mask", "sentence_frames", "sentence_frame_mask")
    pairs = [(getattr(one.video, name), getattr(other.video, name)) for name in names]
    return all(torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in pairs)


@pytest.mark.parametrize(("items", "collate"), TASKS)
def test_a_stream_sees_what_a_model_of_its_channel_sees(items: Sequence[Any], collate: Callable[..., Any]) -> None:
    batch = collate(items, BOTH)
    assert equal(without_subtitles(batch), collate(items, VIDEO))
    assert equal(without_video(batch), collate(items, SUB))


@torch.no_grad()
def test_answers_are_means_of_probabilities() -> None:
    model = streams()
    for items in (QUESTIONS, STATEMENTS):
        first, second = (one.predict(collate_questions(items, options)) for one, options in ((model.video, VIDEO), (model.subtitles, SUB)))
        both = model.predict(collate_questions(items, BOTH))
        torch.testing.assert_close(both, (first + second) / 2)


@torch.no_grad()
def test_videos_and_spans_are_means_of_scores_and_probabilities() -> None:
    model = streams()
    both, seen, read = (
        one.predict(collate_retrieval(QUERIES, options)) for one, options in ((model, BOTH), (model.video, VIDEO), (model.subtitles, SUB))
    )
    for name in ("videos", "starts", "ends"):
        torch.testing.assert_close(getattr(both, name), (getattr(seen, name) + getattr(read, name)) / 2)
    batch = collate_retrieval(QUERIES, BOTH)
    indexed = model.score(batch.queries, batch.query_mask, model.index(collate_videos([LONG, SHORT, SILENT], BOTH)))
    assert isinstance(both, RetrievalScores)
    torch.testing.assert_close(indexed.videos, both.videos)
    torch.testing.assert_close(indexed.starts, both.starts)


@torch.no_grad()
def test_each_word_is_the_best_of_the_mean_logits() -> None:
    model = streams()
    captions = model.predict(collate_captions(CAPTIONS, BOTH))
    words = torch.zeros(len(CAPTIONS), 1, dtype=torch.long)
    logits = [
        one.caption_head.decode(one.encoder, words, *encode_moments(one.encoder, collate_captions(CAPTIONS, options)))
        for one, options in ((model.video, VIDEO), (model.subtitles, SUB))
    ]
    best = (logits[0] + logits[1])[:, -1].argmax(-1).tolist()
    assert [caption[0] if caption else 2 for caption in captions] == best


@torch.no_grad()
def test_the_loss_is_the_sum_of_both() -> None:
    model, batch = streams(), collate_questions(QUESTIONS, BOTH)
    parts = model.video.loss(without_subtitles(batch), LossOptions()) + model.subtitles.loss(without_video(batch), LossOptions())
    assert model.loss(batch, LossOptions()).item() == pytest.approx(parts.item())


def test_heads_of_both_streams_are_heads() -> None:
    names = streams().head_names()
    assert any(name.startswith("video.retrieval_head.query_encoder.") for name in names)
    assert any(name.startswith("subtitles.caption_head.") for name in names)
    assert not any(".encoder." in name.replace(".query_encoder.", "") for name in names)
    assert not any(name.startswith("encoder.") for name in tiny().head_names())


def test_two_streams_are_not_pre_trained() -> None:
    batch = collate_masked_text([LONG], BOTH, random.Random(0), words=range(4, 60), mask=TINY.vocabulary - 1)
    with pytest.raises(UsageError, match="two-stream"):
        streams().loss(batch, LossOptions())
