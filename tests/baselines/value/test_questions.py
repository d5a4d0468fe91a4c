"""vip.baselines.value.questions: losses by hand"""

from __future__ import annotations

from math import exp, log

import pytest
import torch

from tests.baselines.value.tiny_hero import LONG, QUESTIONS, STATEMENTS, tiny
from vip.baselines.value.batches import collate_questions
from vip.baselines.value.hero import Hero
from vip.baselines.value.interface import CollateOptions, LossOptions, QuestionItem
from vip.baselines.value.questions import answer_loss

BOTH = CollateOptions()


def test_the_loss_of_options_is_the_cross_entropy_of_known_answers() -> None:
    logits = torch.tensor([[log(2.0), log(6.0)], [9.0, 1.0]])
    assert answer_loss(logits, torch.tensor([1, -1])).item() == pytest.approx(-log(6 / 8))
    assert answer_loss(logits, torch.tensor([-1, -1])).item() == 0.0


def test_the_loss_of_statements_is_the_binary_cross_entropy() -> None:
    logits = torch.tensor([[2.0], [-1.0], [5.0]])
    expected = (log(1 + exp(-2.0)) + log(1 + exp(-1.0))) / 2
    assert answer_loss(logits, torch.tensor([1, 0, -1])).item() == pytest.approx(expected)


@torch.no_grad()
def test_spans_add_four_tenths_of_their_mean_loss() -> None:
    model = tiny(spread=0.3)
    assert isinstance(model, Hero)
    batch = collate_questions(QUESTIONS, BOTH)
    logits, spans = model.question_head.logits(model.encoder, batch)
    sides = [_cross_entropy(side[:1], batch.spans[:1, place]) for place, side in enumerate(spans)]  # the first one's are known
    by_hand = answer_loss(logits, batch.answers).item() + 0.4 * sum(sides) / 2
    assert model.loss(batch, LossOptions()).item() == pytest.approx(by_hand, rel=1e-5)
    assert model.loss(batch, LossOptions(question_span_weight=0.0)).item() == pytest.approx(answer_loss(logits, batch.answers).item())


def _cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> float:
    return -log(logits.softmax(-1).gather(1, targets[:, None]).item())


@torch.no_grad()
def test_answers_are_probabilities() -> None:
    model = tiny(spread=0.3)
    options, statements = (model.predict(collate_questions(items, BOTH)) for items in (QUESTIONS, STATEMENTS))
    assert isinstance(options, torch.Tensor)
    assert isinstance(statements, torch.Tensor)
    assert (options.shape, statements.shape) == ((2, 3), (2, 1))
    torch.testing.assert_close(options.sum(1), torch.ones(2))
    assert ((statements > 0) & (statements < 1)).all()


@torch.no_grad()
def test_options_in_another_order_have_their_scores_in_that_order() -> None:
    model = tiny(spread=0.3)
    turned = QuestionItem(LONG, QUESTIONS[0].options[::-1])
    first, second = (model.predict(collate_questions([one], BOTH)) for one in (QUESTIONS[0], turned))
    torch.testing.assert_close(first.flip(1), second, atol=1e-5, rtol=0)
