"""A model with options, from texts to scores: the words' vectors, the model, its loss."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from vip.baselines.learner import Learner
from vip.baselines.nextqa.data import Batch
from vip.baselines.nextqa.interface import MultiChoiceModel
from vip.baselines.nextqa.losses import option_loss
from vip.baselines.nextqa.words import WordVectors
from vip.baselines.settings import TrainingSettings


class MultiChoiceLearner(Learner):
    """Scores the options of questions. Each pair of question and option is scored by itself, so that their order says nothing."""

    def __init__(self, words: WordVectors, model: MultiChoiceModel, settings: TrainingSettings) -> None:
        super().__init__()
        self.words, self.model, self.settings = words, model, settings

    def forward(self, batch: Batch) -> Tensor:
        """Return the scores (B, O)."""
        options = len(batch.items[0].options)
        scores: Tensor = self.model(batch.video.repeat(options), self.words(batch.texts))
        return scores.view(len(batch.items), options)

    def loss(self, batch: Batch) -> Tensor:
        assert batch.answers is not None
        return option_loss(self.settings.loss, self(batch), batch.answers, margin=self.settings.margin)

    def scores(self, batch: Batch) -> Sequence[float]:
        right: Tensor = self(batch).argmax(dim=1) == batch.answers
        return [float(one) for one in right.tolist()]

    def frozen_names(self) -> set[str]:
        return {f"words.{name}" for name in self.words.frozen_names()}
