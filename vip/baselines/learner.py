"""What the loop of `vip.baselines.training` trains: a module that knows its loss, and how good its answers are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn


class Learner(nn.Module, ABC):
    """A model with its loss."""

    @abstractmethod
    def loss(self, batch: Any) -> Tensor:
        """Return the loss of a batch, a number with a gradient."""

    @abstractmethod
    def scores(self, batch: Any) -> Sequence[float]:
        """Return how good each answer of a batch is, from 0 to 1; training keeps the weights with the best mean on val."""

    def frozen_names(self) -> set[str]:
        """Return the names of tensors that training never changes, and that are kept elsewhere."""
        return set()
