"""vip.baselines.training: when the learning rate falls, and which weights are kept, without a training"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("lightning")

import torch

from vip.baselines.learner import Learner
from vip.baselines.training import EpochOrder, LinearDecay, Machine, Plateau, TrainingLoop, make_loader, train, translated
from vip.errors import BackendError
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


def made(folder: Path, *, epochs: int = 3, seed: int = 1) -> TrainingLoop:
    """Return a loop before its first epoch."""
    settings = SimpleNamespace(epochs=epochs, seed=seed, best_by="accuracy")
    loop = TrainingLoop(Constant(), settings, Plateau(factor=0.5, patience=1), 0.1, folder, SilentObserver(), 1)
    loop._trainer = SimpleNamespace(is_global_zero=True, current_epoch=0, global_rank=0)  # type: ignore[assignment]
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


@pytest.mark.parametrize(("scores", "best"), [([0.0, 0.0, 0.0], 1), ([0.1, 0.3, 0.3, 0.2], 2), ([0.3, 0.2, 0.4], 3), ([0.5, 0.3, 0.4], 1)])
def test_the_weights_of_the_first_of_the_best_epochs_are_kept(scores: list[float], best: int, tmp_path: Path) -> None:
    rows = loop_over(tmp_path, scores).rows
    assert kept(tmp_path) == best
    assert max(row.epoch for row in rows if row.is_best) == best


def test_a_training_goes_on_with_what_was_best_before(tmp_path: Path) -> None:
    loop = loop_over(tmp_path, [0.3, 0.2])
    counts = {"ready": 2, "started": 2, "processed": 2, "completed": 1}
    loops = {"fit_loop": {"epoch_progress": {"current": counts}}}
    checkpoint: dict[str, Any] = {"state_dict": {}, "lr_schedulers": [], "loops": loops}
    loop.on_save_checkpoint(checkpoint)
    other = loop_over(tmp_path, [])
    other.on_load_checkpoint(checkpoint)
    assert [(row.epoch, row.score, row.is_best) for row in other.rows] == [(1, 0.3, True), (2, 0.2, False)]


def test_each_epoch_begins_with_random_numbers_of_the_seed_and_its_own_number(tmp_path: Path) -> None:
    def drawn(seed: int, epoch: int) -> list[float]:
        loop = made(tmp_path, seed=seed)
        loop.trainer.current_epoch = epoch
        with torch.random.fork_rng():
            loop.on_train_epoch_start()
            return torch.rand(4).tolist()

    assert drawn(1, 0) == drawn(1, 0)
    assert len({tuple(drawn(seed, epoch)) for seed in (1, 2) for epoch in (0, 1, 2)}) == 6


def test_a_validation_counts_no_score_of_an_earlier_one(tmp_path: Path) -> None:
    loop = made(tmp_path)
    loop.learner.scores = lambda batch: [batch]  # type: ignore[assignment]
    for score in (0.0, 1.0):
        loop.on_validation_epoch_start()
        loop.validation_step(score, 0)
    assert loop._scores == [1.0]


class Numbers:
    """A batch that can go to a device."""

    def to(self, device: torch.device) -> Numbers:
        return self


class Rated(Constant):
    """Scores by the epoch, and notes in which mode it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.modes: list[tuple[str, bool]] = []

    def loss(self, batch: Any) -> torch.Tensor:
        self.modes.append(("loss", self.training))
        return self.number.sum()

    def scores(self, batch: Any) -> list[float]:
        self.modes.append(("scores", self.training))
        return [0.5]


@pytest.mark.parametrize("each", ["step", "epoch"])
def test_a_rate_that_decays_is_whole_behind_the_warm_up_and_nothing_at_the_end(each: Any, tmp_path: Path) -> None:
    """The rows have the rate that the next epoch begins with."""
    learner = Rated()
    with torch.random.fork_rng():
        rows = train(
            learner,
            make_loader([0] * 8, lambda items: Numbers(), batch=2),
            make_loader([0], lambda items: Numbers(), batch=2),
            settings=SimpleNamespace(epochs=3, seed=1, best_by="accuracy"),
            schedule=LinearDecay(warmup_epochs=1, weight_decay=0.0, each=each),
            learning_rate=0.1,
            folder=tmp_path,
            machine=Machine(device="cpu"),
            observer=SilentObserver(),
        )
    assert [row.learning_rate for row in rows] == pytest.approx([0.1, 0.05, 0.0])
    assert learner.modes == 3 * [*4 * [("loss", True)], ("scores", False)]


def test_the_mean_of_several_devices_is_that_of_all_their_items(tmp_path: Path) -> None:
    loop = made(tmp_path)
    loop.trainer.world_size = 3  # type: ignore[misc]
    others = torch.tensor([[6.0, 4.0], [1.0, 1.0]], dtype=torch.float64)
    loop.all_gather = lambda own: torch.cat([own[None], others])  # type: ignore[assignment,method-assign]
    assert loop._mean(2.0, 5) == pytest.approx(9 / 10)
    loop.trainer.world_size = 1  # type: ignore[misc]
    assert loop._mean(2.0, 5) == pytest.approx(0.4)


def test_errors_of_the_loop_are_said_in_one_sentence_and_its_ends_stay_ends() -> None:
    from lightning.fabric.utilities.exceptions import MisconfigurationException

    def raised(error: BaseException) -> None:
        with translated(Machine(device="cuda", devices=2)):
            raise error

    with pytest.raises(BackendError, match=r"--device cuda with 2 of it cannot be used here \(no such\)\. Write --device cpu\."):
        raised(MisconfigurationException("no such"))
    with pytest.raises(BackendError, match=r"The memory of the device does not suffice\. Choose a smaller training\.batch"):
        raised(torch.OutOfMemoryError("CUDA"))
    with pytest.raises(SystemExit):
        raised(SystemExit(3))
    stopped = SystemExit(1)
    stopped.__context__ = KeyboardInterrupt()  # as Lightning ends at Ctrl-C
    with pytest.raises(KeyboardInterrupt):
        raised(stopped)
    with pytest.raises(ZeroDivisionError):
        raised(ZeroDivisionError())


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_come_in_the_order_of_the_epoch_or_in_their_own(workers: int) -> None:
    order = EpochOrder(5, 1)
    batches = make_loader(list("abcde"), list, batch=2, workers=workers, order=order)
    assert (batches.num_workers, batches.persistent_workers, len(batches)) == (workers, workers > 0, 3)
    first = list(order)
    order.set_epoch(1)
    assert sorted(first) == sorted(order) == list(range(5))
    assert list(order) != first
    assert list(make_loader(list("abcde"), list, batch=2)) == [["a", "b"], ["c", "d"], ["e"]]
