"""vip.baselines.training: when the learning rate falls, and which weights are kept, without a training"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("lightning")

import torch

from vip.baselines.learner import Learner
from vip.baselines.training import Plateau, TrainingLoop
from vip.protocols import SilentObserver


class Constant(Learner):
    """One number; its scores are told."""

    def __init__(self) -> None:
        super().__init__()
        self.number = torch.nn.Parameter(torch.zeros(1))

    def loss(self, batch: Any) -> torch.Tensor:
        return self.number.sum()

    def scores(self, batch: Any) -> list[float]:
        return []


def loop_over(folder: Path, scores: list[float], *, patience: int = 1) -> TrainingLoop:
    """Return a loop after epochs with these scores on val; the number is 1 in the first epoch, 2 in the second, and so on."""
    settings = SimpleNamespace(epochs=len(scores), seed=1, best_by="accuracy")
    loop = TrainingLoop(Constant(), settings, Plateau(factor=0.5, patience=patience), 0.1, folder, SilentObserver(), 1)
    trainer = SimpleNamespace(world_size=1, is_global_zero=True, current_epoch=0, save_checkpoint=lambda path: path.write_bytes(b""))
    loop._trainer = trainer  # type: ignore[assignment]
    trainer.optimizers = [loop.configure_optimizers()]
    for epoch, score in enumerate(scores):
        trainer.current_epoch = epoch
        with torch.no_grad():
            loop.learner.number.fill_(epoch + 1)  # type: ignore[union-attr,operator]
        loop._losses, loop._scores = [torch.tensor(1.0)], [score]
        loop.on_train_epoch_end()
    return loop


def kept(folder: Path) -> float:
    from safetensors.torch import load_file

    (number,) = load_file(folder / "weights.safetensors").values()
    return float(number)


def test_the_learning_rate_falls_where_the_score_does_not_rise(tmp_path: Path) -> None:
    rising = loop_over(tmp_path, [0.1, 0.2, 0.3, 0.4, 0.5])
    assert [row.learning_rate for row in rising.rows] == [0.1] * 5
    falling = loop_over(tmp_path, [0.5, 0.4, 0.3, 0.2, 0.1])
    assert [row.learning_rate for row in falling.rows] == pytest.approx([0.1, 0.1, 0.1, 0.05, 0.05])


@pytest.mark.parametrize(("scores", "best"), [([0.0, 0.0, 0.0], 1), ([0.1, 0.3, 0.3, 0.2], 2), ([0.3, 0.2, 0.4], 3)])
def test_the_weights_of_the_first_of_the_best_epochs_are_kept(scores: list[float], best: int, tmp_path: Path) -> None:
    rows = loop_over(tmp_path, scores).rows
    assert kept(tmp_path) == best
    assert max(row.epoch for row in rows if row.is_best) == best


def test_a_training_goes_on_with_what_was_best_before(tmp_path: Path) -> None:
    loop = loop_over(tmp_path, [0.3, 0.2])
    checkpoint: dict[str, Any] = {"state_dict": {}}
    loop.on_save_checkpoint(checkpoint)
    other = loop_over(tmp_path, [])
    other.on_load_checkpoint(checkpoint)
    assert [(row.epoch, row.score, row.is_best) for row in other.rows] == [(1, 0.3, True), (2, 0.2, False)]
