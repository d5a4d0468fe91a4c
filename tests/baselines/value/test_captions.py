"""vip.baselines.value.captions: smoothed words, moments, and greedy decoding"""

from __future__ import annotations

from dataclasses import replace
from math import log

import numpy as np
import pytest
import torch

from tests.baselines.value.tiny_hero import CAPTIONS, LONG, WORDS, tiny
from vip.baselines.value.batches import END, collate_captions
from vip.baselines.value.captions import MOST_STEPS, decode_greedily, encode_moments, smoothed_loss
from vip.baselines.value.hero import Hero
from vip.baselines.value.interface import CaptionItem, CollateOptions, LossOptions

BOTH = CollateOptions()


def test_the_loss_is_the_divergence_from_a_smoothed_word() -> None:
    odds = torch.tensor([[0.5, 0.3, 0.2]])
    wanted = (0.05, 0.9, 0.05)
    by_hand = sum(one * (log(one) - log(p)) for one, p in zip(wanted, odds[0].tolist(), strict=True))
    assert smoothed_loss(odds.log(), torch.tensor([1]), 0.1).item() == pytest.approx(by_hand, rel=1e-5)
    assert smoothed_loss(torch.tensor([wanted]).log(), torch.tensor([1]), 0.1).item() == pytest.approx(0.0, abs=1e-6)
    assert smoothed_loss(odds.log(), torch.tensor([1]), 0.0).item() == pytest.approx(-log(0.3))


@torch.no_grad()
def test_the_loss_is_the_mean_over_words_and_ends() -> None:
    model = tiny(spread=0.3)
    losses = [model.loss(collate_captions([one], BOTH), LossOptions()).item() for one in CAPTIONS]
    words = [len(one.caption or ()) + 1 for one in CAPTIONS]
    together = model.loss(collate_captions(CAPTIONS, BOTH), LossOptions()).item()
    assert together == pytest.approx(sum(loss * count for loss, count in zip(losses, words, strict=True)) / sum(words), rel=1e-5)


@torch.no_grad()
def test_a_caption_sees_the_frames_of_its_moment_alone() -> None:
    model = tiny(spread=0.3)
    assert isinstance(model, Hero)
    batch = collate_captions(CAPTIONS, BOTH)
    frames, mask = encode_moments(model.encoder, batch)
    assert mask.tolist()[0] == [False, True, True] + [False] * 6
    assert mask.sum(1).tolist() == [2, 5, 4]
    before = model.caption_head.decode(model.encoder, batch.inputs, frames, mask)
    changed = torch.where(mask[..., None], frames, torch.randn_like(frames))
    torch.testing.assert_close(model.caption_head.decode(model.encoder, batch.inputs, changed, mask), before)
    inside = torch.where(mask[..., None], torch.randn_like(frames), frames)
    assert not torch.allclose(model.caption_head.decode(model.encoder, batch.inputs, inside, mask), before, atol=1e-3)


@torch.no_grad()
def test_a_word_is_predicted_from_those_before_it() -> None:
    model = tiny(spread=0.3)
    assert isinstance(model, Hero)
    batch = collate_captions(CAPTIONS[:1], BOTH)
    frames, mask = encode_moments(model.encoder, batch)
    logits = model.caption_head.decode(model.encoder, batch.inputs, frames, mask)
    other = batch.inputs.clone()
    other[:, 2] = 60
    changed = model.caption_head.decode(model.encoder, other, frames, mask)
    torch.testing.assert_close(logits[:, :2], changed[:, :2])
    assert not torch.allclose(logits[:, 2], changed[:, 2], atol=1e-3)


def test_captions_end_at_their_end() -> None:
    said = [[7, 8, END, 9], [END], [6] * MOST_STEPS]

    def decode(words: torch.Tensor) -> torch.Tensor:
        step = words.shape[1] - 1
        following = torch.tensor([row[min(step, len(row) - 1)] for row in said])
        return torch.nn.functional.one_hot(following, 12).float()[:, None]

    assert decode_greedily(decode, 3, torch.device("cpu")) == [(7, 8), (), (6,) * MOST_STEPS]


def test_a_caption_to_be_predicted_has_at_most_thirty_words() -> None:
    model = tiny()
    with torch.no_grad():
        captions = model.predict(collate_captions([replace(one, caption=None) for one in CAPTIONS], BOTH))
    assert isinstance(captions, list)
    assert len(captions) == 3
    assert all(len(one) <= MOST_STEPS and all(0 <= word < WORDS for word in one) for one in captions)


def test_a_moment_of_no_frame_is_that_of_one() -> None:
    batch = collate_captions([CaptionItem(LONG, (9, 9)), CaptionItem(LONG, (3, 3))], BOTH)
    assert np.array_equal(batch.moments, [[8, 9], [3, 4]])
