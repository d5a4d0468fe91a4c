"""Losses of models that score options (section 4.2; networks/embed_loss.py of NExT-QA)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def hinge_loss(scores: Tensor, answers: Tensor, *, margin: float = 1.0) -> Tensor:
    """Return the mean of max(0, margin + wrong − right) over the wrong options of all questions.

    Args:
        scores: (B, O).
        answers: (B,) int64, the right options.
    """
    right = scores.gather(1, answers[:, None])
    is_wrong = torch.ones_like(scores, dtype=torch.bool).scatter(1, answers[:, None], False)
    return functional.relu(margin + scores - right)[is_wrong].mean()


def option_loss(kind: str, scores: Tensor, answers: Tensor, *, margin: float) -> Tensor:
    """Return the loss of that name: `hinge`, or `cross-entropy` of the softmax over the options."""
    return hinge_loss(scores, answers, margin=margin) if kind == "hinge" else functional.cross_entropy(scores, answers)
