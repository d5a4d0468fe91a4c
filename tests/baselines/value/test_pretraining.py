"""vip.baselines.value.pretraining: how much is masked, and losses by hand"""

from __future__ import annotations

import random
from math import exp, log

import pytest
import torch

from tests.baselines.value.tiny_hero import LONG, SHORT, SILENT, WORDS, tiny, video
from vip.baselines.value.batches import NOTHING, START
from vip.baselines.value.data import Example
from vip.baselines.value.encoder import HeroEncoder
from vip.baselines.value.hero import Hero
from vip.baselines.value.interface import (
    Batch,
    CollateOptions,
    FrameOrderBatch,
    LossOptions,
    MaskedFrameBatch,
    MaskedTextBatch,
    RetrievalBatch,
)
from vip.baselines.value.pretraining import (
    RATIOS,
    PretrainingMaker,
    collate_frame_order,
    collate_masked_frames,
    collate_masked_text,
    collate_subtitle_queries,
    contrastive_loss,
    mask_words,
)
from vip.errors import UsageError

BOTH = CollateOptions()
MASK = WORDS - 2
RANDOM_WORDS = range(4, 60)
MANY = [video(f"v{number}", 16) for number in range(200)]


def test_fifteen_words_of_a_hundred_are_masked_and_eighty_of_these_become_the_mask() -> None:
    draw = random.Random(0)
    masked = replaced = changed_otherwise = 0
    for _ in range(200):
        words = [draw.randrange(4, 60) for _ in range(100)]
        changed, answers = mask_words(words, draw, words=range(100, 200), mask=MASK)
        for word, now, answer in zip(words, changed, answers, strict=True):
            assert answer in (NOTHING, word)
            assert now == word or answer == word
            masked += answer != NOTHING
            replaced += now == MASK
            changed_otherwise += now >= 100
    assert masked / 20_000 == pytest.approx(0.15, abs=0.01)
    assert replaced / masked == pytest.approx(0.8, abs=0.03)
    assert changed_otherwise / masked == pytest.approx(0.1, abs=0.02)


def test_at_least_one_word_of_a_sentence_is_masked() -> None:
    for seed in range(20):
        changed, answers = mask_words([5], random.Random(seed), words=RANDOM_WORDS, mask=MASK)
        assert answers == [5]
        assert len(changed) == 1
    assert mask_words([], random.Random(0), words=RANDOM_WORDS, mask=MASK) == ([], [])


def test_the_special_id_in_front_is_never_masked() -> None:
    batch = collate_masked_text([LONG, SHORT], BOTH, random.Random(0), words=RANDOM_WORDS, mask=MASK)
    assert (batch.video.sentences[:, 0] == START).all()
    assert (batch.labels[:, 0] == NOTHING).all()
    assert (batch.labels[~batch.video.sentence_mask] == NOTHING).all()
    assert ((batch.labels != NOTHING).sum(1) >= 1).all()


def test_fifteen_frames_of_a_hundred_are_masked_and_at_least_one_of_a_video() -> None:
    masked = collate_masked_frames(MANY, CollateOptions(), random.Random(0)).masked
    assert masked.float().mean().item() == pytest.approx(0.15 + 0.85**16 / 16, abs=0.015)
    assert masked.any(1).all()


def test_fifteen_frames_of_a_hundred_change_places_among_one_another() -> None:
    batch = collate_frame_order(MANY, BOTH, random.Random(0))
    assert (batch.targets != NOTHING).float().mean().item() == pytest.approx(0.15, abs=0.015)
    assert (batch.order.sort(1).values == torch.arange(16)).all(), "no frame is lost"
    for order, targets in zip(batch.order.tolist(), batch.targets.tolist(), strict=True):
        for place, target in enumerate(targets):
            assert target == NOTHING or order[target] == place
        assert all(to == place for place, to in enumerate(order) if place not in targets)


def test_queries_are_sentences_that_are_taken_out_of_the_subtitles() -> None:
    batch = collate_subtitle_queries([LONG, SILENT], BOTH, random.Random(0))
    assert batch.queries.tolist() == [[START, 5, 6, 7], [START, 8, 1, 1], [START, 11, 1, 1], [START, 1, 1, 1]]
    assert batch.spans.tolist() == [[0, 1], [1, 3], [7, 8], [NOTHING, NOTHING]], "a sentence without frames is no query"
    assert batch.query_video.tolist() == [0, 0, 0, 1]
    of_long = batch.video.sentences[batch.video.sentence_video == 0]
    assert of_long.tolist() == [[2, 1, 1], [2, 1, 1], [2, 9, 10], [2, 1, 1]]
    many = video("many", 16, *[((20 + place,), (place,)) for place in range(12)])
    assert len(collate_subtitle_queries([many], BOTH, random.Random(0)).queries) == 5


def test_the_contrastive_loss_tells_a_frame_from_others() -> None:
    predicted, targets = torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([[3.0, 0.0], [0.0, 1.0]])
    negatives = torch.tensor([[1.0, 1.0]])
    rows = [log(exp(3.0) + exp(0.0) + exp(1.0)) - 3.0, log(exp(0.0) + exp(2.0) + exp(2.0)) - 2.0]
    assert contrastive_loss(predicted, targets, negatives, 1.0).item() == pytest.approx(sum(rows) / 2)


@torch.no_grad()
def test_the_loss_of_masked_words_is_their_cross_entropy() -> None:
    model = tiny(spread=0.3)
    assert isinstance(model, Hero)
    batch = collate_masked_text([LONG, SHORT], BOTH, random.Random(0), words=RANDOM_WORDS, mask=MASK)
    _, words = model.encoder.cross_modal(batch.video)
    odds = model.encoder.language_head(words, model.encoder.words).log_softmax(-1)
    asked = [(row, place, label) for row, labels in enumerate(batch.labels.tolist()) for place, label in enumerate(labels) if label >= 0]
    by_hand = -sum(odds[asked_for].item() for asked_for in asked) / len(asked)
    assert model.loss(batch, LossOptions()).item() == pytest.approx(by_hand, rel=1e-5)


@torch.no_grad()
def test_a_masked_frame_is_not_seen() -> None:
    model = tiny(spread=0.3)
    assert isinstance(model, Hero)
    assert isinstance(model.encoder, HeroEncoder)
    batch = collate_masked_frames([LONG], BOTH, random.Random(0))
    before, _, _ = model.encoder.fuse(batch.video, masked=batch.masked)
    batch.video.frames[batch.masked] = 100.0
    after, _, _ = model.encoder.fuse(batch.video, masked=batch.masked)
    torch.testing.assert_close(before, after)


@torch.no_grad()
def test_a_masked_frame_is_told_from_the_real_frames_of_all_videos() -> None:
    """Padding is none of them: the first video has nine frames and the second four."""
    model = tiny(spread=0.3)
    assert isinstance(model, Hero)
    assert isinstance(model.encoder, HeroEncoder)
    batch = collate_masked_frames([LONG, SHORT], BOTH, random.Random(1))
    fused, mask, _ = model.encoder.fuse(batch.video, masked=batch.masked)
    said = model.encoder.feature_head(model.encoder.temporal.transformer(model.encoder.temporal.place(fused), mask))
    places = [(row, place) for row, count in enumerate((9, 4)) for place in range(count)]
    asked = [one for one in places if batch.masked[one]]
    others = [batch.video.frames[one] for one in asked] + [said[one] for one in places if not batch.masked[one]]
    assert len(asked) > 1
    rows = [torch.stack([said[one] @ other for other in others]) / 2.0 for one in asked]
    by_hand = -sum(row.log_softmax(0)[number].item() for number, row in enumerate(rows)) / len(asked)
    assert model.loss(batch, LossOptions(nce_temperature=2.0)).item() == pytest.approx(by_hand, rel=1e-4)


@torch.no_grad()
def test_the_loss_of_orders_is_that_of_the_moved_frames() -> None:
    model = tiny(spread=0.3)
    assert isinstance(model, Hero)
    assert isinstance(model.encoder, HeroEncoder)
    batch = collate_frame_order([LONG], BOTH, random.Random(2))
    fused, mask, _ = model.encoder.fuse(batch.video)
    shuffled = torch.stack([fused[0, batch.order[0].tolist().index(place)] for place in range(9)])[None]
    frames = model.encoder.temporal.transformer(model.encoder.temporal.place(shuffled), mask)
    odds = model.encoder.order_head(frames)[0].log_softmax(-1)
    asked = [(place, target) for place, target in enumerate(batch.targets[0].tolist()) if target >= 0]
    assert len(asked) > 1
    by_hand = -sum(odds[one].item() for one in asked) / len(asked)
    assert model.loss(batch, LossOptions()).item() == pytest.approx(by_hand, rel=1e-5)


def test_where_no_frame_moves_there_is_a_loss_of_nothing() -> None:
    model = tiny().train()
    batch = collate_frame_order([SHORT], BOTH, random.Random(0))
    assert (batch.targets == NOTHING).all()
    loss = model.loss(batch, LossOptions())
    loss.backward()
    assert loss.item() == 0.0


def test_only_hero_is_pre_trained_with_frames() -> None:
    batch = collate_masked_frames([LONG], BOTH, random.Random(0))
    for fusion in ("add", "two-stream"):
        with pytest.raises(UsageError, match="fusion=hero"):
            tiny(fusion=fusion).loss(batch, LossOptions())


def test_the_chance_of_a_batch_follows_from_the_seed_of_torch() -> None:
    videos = {one.name: one for one in (LONG, SHORT)}
    asked = [Example(name, "retrieval", name, ()) for name in videos]

    def batches(task: str, seed: int) -> list[Batch]:
        torch.manual_seed(seed)
        maker = PretrainingMaker(task, videos.__getitem__, BOTH, words=RANDOM_WORDS, mask=MASK)
        return [maker.batch(asked) for _ in range(3)]

    kinds = [type(batches(task, 0)[0]) for task in RATIOS]
    assert kinds == [MaskedTextBatch, MaskedFrameBatch, FrameOrderBatch, RetrievalBatch]
    first, again, other = (torch.stack([one.masked for one in batches("mfm-nce", seed)]) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(first[0], first[1])
