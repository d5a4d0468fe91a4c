"""vip.baselines.value.hero: every head learns eight samples by heart, and every weight takes part"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from tests.baselines.value.tiny_hero import CAPTIONS, FUSIONS, QUERIES, QUESTIONS, STATEMENTS, tiny, video
from vip.baselines.value.batches import collate_captions, collate_questions, collate_retrieval, collate_videos
from vip.baselines.value.interface import (
    Batch,
    CaptionBatch,
    CaptionItem,
    CollateOptions,
    HeroModel,
    LossOptions,
    QuestionBatch,
    QuestionItem,
    RetrievalBatch,
    RetrievalItem,
    RetrievalScores,
)
from vip.baselines.value.pretraining import collate_frame_order, collate_masked_frames, collate_masked_text, collate_subtitle_queries

BOTH = CollateOptions()
EIGHT = [video(f"video {number}", 6, ((10 + number, 20), (0, 1, 2)), ((30,), (3, 4))) for number in range(8)]


def learn(model: HeroModel, batch: Batch, options: LossOptions, steps: int, *, until: float) -> float:
    """Return the loss of a batch that was learnt; without dropout. It is enough when it is below `until`."""
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(steps):
        model.train()
        optimizer.zero_grad()
        model.loss(batch, options).backward()
        optimizer.step()
        if step % 10 == 9:
            model.eval()
            with torch.no_grad():
                loss = model.loss(batch, options).item()
            if loss < until:
                break
    return loss


@pytest.mark.slow
def test_the_retrieval_head_learns_eight_queries() -> None:
    items = [RetrievalItem(one, (40 + number, 50), (number % 4, number % 4 + 2)) for number, one in enumerate(EIGHT)]
    model = tiny(dropout=0.0)
    loss = learn(model, collate_retrieval(items, BOTH), LossOptions(rank_weight=1.0, span_weight=0.1, skip_spans=0.0), 250, until=0.03)
    assert loss < 0.03
    with torch.no_grad():
        scores = model.predict(collate_retrieval(items, BOTH))
    assert isinstance(scores, RetrievalScores)
    own = torch.arange(8)
    assert scores.videos.argmax(1).tolist() == own.tolist()
    assert scores.starts[own, own].argmax(1).tolist() == [item.span[0] for item in items if item.span]
    assert scores.ends[own, own].argmax(1).tolist() == [item.span[1] for item in items if item.span]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["options", "statements"])
def test_the_question_head_learns_eight_questions(kind: str) -> None:
    rng = np.random.default_rng(0)
    answers = [int(one) for one in rng.integers(3 if kind == "options" else 2, size=8)]
    if kind == "options":
        choices = tuple(((50,), (60 + option,)) for option in range(3))
        items = [QuestionItem(one, choices, answer, (0, answer + 1)) for one, answer in zip(EIGHT, answers, strict=True)]
    else:
        items = [QuestionItem(one, (((50, 51),),), answer) for one, answer in zip(EIGHT, answers, strict=True)]
    model = tiny(dropout=0.0)
    assert learn(model, collate_questions(items, BOTH), LossOptions(), 150, until=0.02) < 0.02
    with torch.no_grad():
        odds = model.predict(collate_questions(items, BOTH))
    assert isinstance(odds, torch.Tensor)
    assert (odds.argmax(1) if kind == "options" else (odds[:, 0] > 0.5).long()).tolist() == answers


@pytest.mark.slow
def test_the_caption_head_learns_eight_captions() -> None:
    items = [CaptionItem(one, (number % 3, number % 3 + 3), (40 + number, 50, 41)) for number, one in enumerate(EIGHT)]
    model = tiny(dropout=0.0)
    batch = collate_captions(items, BOTH)
    assert learn(model, batch, LossOptions(label_smoothing=0.0), 250, until=0.03) < 0.03
    with torch.no_grad():
        assert model.predict(batch) == [item.caption for item in items]


@pytest.mark.slow
@pytest.mark.parametrize("task", ["mlm", "mfm-nce", "fom", "vsm"])
def test_the_pre_training_learns_eight_videos(task: str) -> None:
    draw = random.Random(5)
    batches: dict[str, Callable[[], Batch]] = {
        "mlm": lambda: collate_masked_text(EIGHT, BOTH, draw, words=range(4, 60), mask=70),
        "mfm-nce": lambda: collate_masked_frames(EIGHT, BOTH, draw),
        "fom": lambda: collate_frame_order(EIGHT, BOTH, draw),
        "vsm": lambda: collate_subtitle_queries([replace(one, sentences=one.sentences[:1]) for one in EIGHT], BOTH, draw),
    }
    options = LossOptions(rank_weight=1.0, span_weight=0.1, skip_spans=0.0)
    assert learn(tiny(dropout=0.0), batches[task](), options, 150, until=0.1) < 0.1


@pytest.mark.parametrize("fusion", FUSIONS)
def test_every_weight_of_a_model_takes_part_in_some_loss(fusion: str) -> None:
    model, draw = tiny(fusion=fusion).train(), random.Random(1)
    tasks: list[tuple[Sequence[Any], Callable[..., Batch]]] = [
        (QUERIES, collate_retrieval),
        (QUESTIONS, collate_questions),
        (STATEMENTS, collate_questions),
        (CAPTIONS, collate_captions),
    ]
    batches = [collate(items, BOTH) for items, collate in tasks]
    if fusion == "hero":
        batches += [collate_masked_frames(EIGHT, BOTH, draw), collate_frame_order(EIGHT, BOTH, draw)]
    for batch in batches:
        model.loss(batch, LossOptions(skip_spans=0.0)).backward()
    idle = {name for name, one in model.named_parameters() if one.grad is None or not one.grad.any()}
    if fusion == "hero":
        assert not idle
        return
    # heads of the pre-training with frames, and what frames of a sentence need, which other fusions lack; features of zero give nothing
    unused = ("mask.weight", "feature_head.", "order_head.", "cross_modal.frames.", "subtitles.encoder.frame_transform.")
    assert {name for name in idle if not any(one in name for one in unused)} == set()


@pytest.mark.parametrize("fusion", FUSIONS)
def test_losses_and_answers_in_half_precision_are_near_those_in_full(fusion: str) -> None:
    model, draw = tiny(fusion=fusion), random.Random(1)
    batches: list[Batch] = [collate_retrieval(QUERIES, BOTH), collate_questions(QUESTIONS, BOTH), collate_captions(CAPTIONS, BOTH)]
    if fusion == "hero":
        batches += [collate_masked_frames(EIGHT, BOTH, draw), collate_frame_order(EIGHT, BOTH, draw)]
    options = LossOptions(skip_spans=0.0, rank_weight=1.0, hard_negatives=True)
    for batch in batches:
        full = model.loss(batch, options)
        with torch.autocast("cpu", torch.bfloat16):
            half = model.loss(batch, options)
            half.backward()
            if isinstance(batch, RetrievalBatch | QuestionBatch | CaptionBatch):
                with torch.no_grad():
                    model.predict(batch)
        assert half.item() == pytest.approx(full.item(), rel=0.1, abs=0.1)


def test_weights_are_drawn_by_the_seed() -> None:
    first, again, other = (tiny(seed=seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["question_head.pool.score.weight"], other["question_head.pool.score.weight"])
    assert first["encoder.cross_modal.text.words.weight"].std().item() == pytest.approx(0.02, abs=0.002)


def test_an_index_is_made_of_videos_alone() -> None:
    model = tiny()
    with torch.no_grad():
        index = model.index(collate_videos(EIGHT[:2], BOTH))
    assert [one.shape for one in index.streams] == [(2, 6, 16)]
    assert index.mask.all()
