"""Attention as the models of NExT-QA have it. All weights come from one `AttentionWeights`, so that each can be looked at."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class AttentionWeights(nn.Module):
    """A softmax over places. A place that is padding has weight 0."""

    def forward(self, scores: Tensor, mask: Tensor | None = None, dim: int = -1) -> Tensor:
        """Return weights of the shape of `scores`, of sum 1 along `dim`.

        Args: mask: bool, of a shape that broadcasts; False: padding. At least one place along `dim` is True.
        """
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        return scores.softmax(dim)


class AdditiveAttention(nn.Module):
    """Attention of Bahdanau et al. 2015: w · tanh(Q query + K place), here `TempAttention` and `SpatialAttention` of the authors' code."""

    def __init__(self, query: int, places: int, hidden: int) -> None:
        """Args: query, places: sizes of their vectors; hidden: size in which both are added."""
        super().__init__()
        self.query = nn.Linear(query, hidden)
        self.places = nn.Linear(places, hidden)
        self.score = nn.Linear(hidden, 1, bias=False)
        self.weights = AttentionWeights()
        for layer in (self.query, self.places, self.score):
            nn.init.xavier_normal_(layer.weight)

    def forward(self, query: Tensor, places: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the weighted mean (B, P) of the places.

        Args: query: (B, Q); places: (B, T, P); mask: (B, T) bool.
        """
        scores = self.score(torch.tanh(self.query(query)[:, None] + self.places(places)))[..., 0]
        mean: Tensor = (self.weights(scores, mask)[:, None] @ places)[:, 0]
        return mean
