"""vip.baselines.nextqa.losses"""

from __future__ import annotations

import math

import pytest
import torch

from vip.baselines.nextqa.losses import hinge_loss, option_loss

SCORES = torch.tensor([[2.0, 0.5, 1.5, -1.0, 3.0], [0.0, 0.0, 4.0, 0.0, 0.0]])
RIGHT = torch.tensor([0, 2])


def test_the_hinge_loss_is_the_sum_by_hand() -> None:
    # Right is 2: 1 + 0.5 - 2 < 0, 1 + 1.5 - 2 = 0.5, 1 - 1 - 2 < 0, 1 + 3 - 2 = 2. Right is 4: none. Mean over eight wrong options.
    assert float(hinge_loss(SCORES, RIGHT)) == pytest.approx((0.5 + 2) / 8)
    assert float(hinge_loss(SCORES, RIGHT, margin=2.0)) == pytest.approx((0.5 + 1.5 + 3) / 8)


def test_the_hinge_loss_is_that_of_the_authors_two_loops() -> None:
    scores = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
    right = torch.tensor([0, 1, 2, 3, 4, 0, 1])
    terms = [max(0.0, 1.0 + float(scores[b, c] - scores[b, right[b]])) for b in range(7) for c in range(5) if c != right[b]]
    assert float(hinge_loss(scores, right)) == pytest.approx(sum(terms) / len(terms), abs=1e-6)


def test_the_cross_entropy_is_over_the_options() -> None:
    expected = [math.log(sum(math.exp(float(one)) for one in row)) - float(row[right]) for row, right in zip(SCORES, RIGHT, strict=True)]
    assert float(option_loss("cross-entropy", SCORES, RIGHT, margin=1.0)) == pytest.approx(sum(expected) / 2)
    assert option_loss("hinge", SCORES, RIGHT, margin=1.0) == hinge_loss(SCORES, RIGHT)
