"""Training on the loop of Lightning: epochs over the training set, the score on val after each, the best weights, and where to go on.

In: a learner, batches of train and val, and how the learning rate goes. Out: the best weights and a row an epoch in the run folder. Each
epoch begins with random numbers of the seed and its own number: a training that was stopped and resumed gives the same weights as one that
was not.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR, ReduceLROnPlateau
from torch.utils.data import DataLoader, Dataset, Sampler

from vip import store
from vip.baselines.installed import is_first_process
from vip.baselines.learner import Learner
from vip.baselines.resumed import anew, check_like, check_optimizer, check_progress, check_schedules, clear_places, groups_of
from vip.baselines.run_folder import EPOCHS, LAST, PART, WEIGHTS, EpochRecord, find_last, write_weights
from vip.errors import BackendError, InputError
from vip.protocols import Observer
from vip.untrusted import one_line
from vip.wording import option


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where training runs."""

    device: str = "auto"
    """`auto`, `cpu`, `cuda` or `mps`."""
    devices: int = 1
    """How many of them; each trains on its share of every batch."""
    workers: int = 0
    """Processes that prepare batches beside the training."""


class LoopSettings(Protocol):
    """What the loop reads of the settings of a training."""

    @property
    def epochs(self) -> int: ...

    @property
    def seed(self) -> int: ...

    @property
    def best_by(self) -> str:
        """The name of the score on val by which the weights are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plateau:
    """Adam, and a lower learning rate where the score on val has not risen for some epochs (videoqa.py of NExT-QA)."""

    factor: float
    patience: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearDecay:
    """AdamW, and a learning rate that rises over the warm-up and falls to 0 at the end, a little each step or once an epoch."""

    warmup_epochs: float
    weight_decay: float
    each: Literal["step", "epoch"] = "step"

    def factor(self, epoch: float, epochs: int) -> float:
        """Return what the learning rate is multiplied by when so many epochs have passed."""
        passed = math.floor(epoch) if self.each == "epoch" else epoch
        if passed < self.warmup_epochs:
            return passed / self.warmup_epochs
        return max(0.0, (epochs - passed) / max(epochs - self.warmup_epochs, 1e-9))


Schedule = Plateau | LinearDecay
PROGRESS = ("best", "num_bad_epochs", "cooldown_counter", "last_epoch", "_last_lr")
"""What a plateau goes on with; the rest are its settings."""


class EpochOrder(Sampler[int]):
    """All items in an order that the seed and the number of the epoch decide."""

    def __init__(self, count: int, seed: int) -> None:
        self.count, self.seed, self.epoch = count, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Called by Lightning before each epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(seed_of(self.seed, self.epoch))
        return iter(torch.randperm(self.count, generator=generator).tolist())


def seed_of(seed: int, epoch: int, rank: int = 0) -> int:
    """Return the seed of an epoch on one of several devices."""
    return (seed * 1_000_003 + epoch * 1_009 + rank) % 2**63


def make_loader(
    items: Dataset[Any] | Sequence[Any],
    collate: Callable[[Sequence[Any]], Any],
    *,
    batch: int,
    workers: int = 0,
    order: EpochOrder | None = None,
) -> DataLoader[Any]:
    """Return the batches of `items`, in their own order without `order`."""
    return DataLoader(
        cast("Dataset[Any]", items),
        batch_size=batch,
        sampler=order,
        collate_fn=collate,
        num_workers=workers,
        persistent_workers=workers > 0,
        generator=torch.Generator(),  # or each loader that begins would draw from the numbers of the training
    )


def train(
    learner: Learner,
    train_batches: DataLoader[Any],
    val_batches: DataLoader[Any],
    *,
    settings: LoopSettings,
    schedule: Schedule,
    learning_rate: float,
    folder: Path,
    machine: Machine,
    observer: Observer,
    resume: bool = False,
) -> list[EpochRecord]:
    """Train a learner and return the rows of all epochs; weights and rows lie in the folder after each.

    Args:
        resume: go on behind the last epoch that ended.

    Raises:
        BackendError: the device is not there, or its memory does not suffice.
        InputError: the loss is not a number any more, or the file to go on from is damaged.
        StoreError: something is in the way of what is written.
    """
    if is_first_process():
        clear_places(folder, (WEIGHTS, EPOCHS, LAST), PART)
    loop = TrainingLoop(learner, settings, schedule, learning_rate, folder, observer, len(train_batches))
    last = find_last(folder) if resume else None
    with quiet_lightning(), ExitStack() as bars, translated(machine):
        loop.bars = bars
        trainer = _make_trainer(settings, folder, machine)
        try:
            trainer.fit(loop, train_batches, val_batches, ckpt_path=last, weights_only=True)
        except Exception as exc:
            if last is None or loop.has_begun:
                raise
            raise anew(last, str(exc)) from exc
    return loop.rows


class TrainingLoop(LightningModule):
    """What Lightning calls at each step."""

    def __init__(
        self,
        learner: Learner,
        settings: LoopSettings,
        schedule: Schedule,
        learning_rate: float,
        folder: Path,
        observer: Observer,
        batches: int,
    ) -> None:
        super().__init__()
        self.learner = learner
        self.settings, self.schedule, self.start_rate, self.folder = settings, schedule, learning_rate, folder
        self.observer, self.batches = observer, batches
        self.rows: list[EpochRecord] = []
        self.bars = ExitStack()
        self.has_begun = False
        """Whether an epoch has begun: what failed before is the file to go on from."""
        self.strict_loading = False  # weights that are never trained are not in the file
        self._plateau: ReduceLROnPlateau | None = None
        self._plateau_state: dict[str, Any] | None = None
        self._saved_schedules: list[Any] | None = None
        """Of the file to go on from; None in a training that begins."""
        self._first_groups: list[dict[str, Any]] = []
        self._first_schedules: list[dict[str, Any]] = []
        self._losses: list[Tensor] = []
        self._scores: list[float] = []
        self._advance: Callable[[], None] = _do_nothing

    def configure_optimizers(self) -> Any:
        learning, schedule = [one for one in self.parameters() if one.requires_grad], self.schedule
        if isinstance(schedule, LinearDecay):
            optimizer: torch.optim.Optimizer = torch.optim.AdamW(learning, lr=self.start_rate, weight_decay=schedule.weight_decay)
            epochs = self.settings.epochs
            an_epoch = max(1, int(self.trainer.estimated_stepping_batches) // epochs)
            going = LambdaLR(optimizer, lambda step: schedule.factor(step / an_epoch, epochs))
            self._first_groups, self._first_schedules = groups_of(optimizer), [going.state_dict()]
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": going, "interval": "step"}}
        optimizer = torch.optim.Adam(learning, lr=self.start_rate)
        self._first_groups = groups_of(optimizer)
        self._plateau = ReduceLROnPlateau(optimizer, mode="max", factor=schedule.factor, patience=schedule.patience)
        if self._plateau_state is not None:
            check_like(self._plateau_state, self._plateau.state_dict())
            self._plateau.load_state_dict({name: self._plateau_state[name] for name in PROGRESS})
        return optimizer

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        return batch.to(device)

    # ------------------------------------------------------------ train

    def on_train_start(self) -> None:
        """Look through what Lightning has taken from the file to go on from."""
        if self._saved_schedules is not None:
            check_schedules(self._saved_schedules, self._first_schedules)
            check_optimizer(self.trainer.optimizers[0], self._first_groups)

    def on_train_epoch_start(self) -> None:
        self.has_begun = True
        torch.manual_seed(seed_of(self.settings.seed, self.current_epoch, self.global_rank))
        self._losses = []
        title = f"Epoch {self.current_epoch + 1} of {self.settings.epochs}"
        self._advance = self.bars.enter_context(self.observer.track(title, self.batches)) if self.is_first else _do_nothing

    def training_step(self, batch: Any, number: int) -> Tensor:
        loss = self.learner.loss(batch)
        self._losses.append(loss.detach())
        self._advance()
        return loss

    # ------------------------------------------------------------ val

    def on_validation_epoch_start(self) -> None:
        self._scores = []

    def validation_step(self, batch: Any, number: int) -> None:
        self._scores += self.learner.scores(batch)

    def on_train_epoch_end(self) -> None:
        """Note the epoch, keep the weights if they are the best, and save where to go on. Validation has run before."""
        self.bars.close()
        loss = self._mean(torch.stack(self._losses).sum().item(), len(self._losses))
        score = self._mean(sum(self._scores), len(self._scores))
        if not math.isfinite(loss):
            raise InputError(
                f"The loss of epoch {self.current_epoch + 1} is {loss}. Lower training.learning_rate ({self.start_rate:g}), or look for"
                " features that are far too large."
            )
        best = max((row.score for row in self.rows), default=-math.inf)
        rate = float(self.trainer.optimizers[0].param_groups[0]["lr"])
        row = EpochRecord(epoch=self.current_epoch + 1, loss=loss, score=score, learning_rate=rate, is_best=score > best)
        self.rows.append(row)
        if self._plateau is not None:
            self._plateau.step(score)
        if self.is_first:
            if row.is_best:
                write_weights(self.folder / WEIGHTS, self.learner)
            store.write_rows(self.folder / EPOCHS, self.rows)
            self.observer.note(
                f"epoch {row.epoch} of {self.settings.epochs}: loss {loss:.4f}, {self.settings.best_by} on val {100 * score:.2f}"
                f"{' (best)' if row.is_best else ''}"
            )
        part = self.folder / PART
        if self.is_first:
            part.unlink(missing_ok=True)  # in a folder of somebody else it may be a link to any file
        self.trainer.save_checkpoint(part)
        if self.is_first:
            part.replace(self.folder / LAST)

    def _mean(self, total: float, count: int) -> float:
        """Return the mean over all devices."""
        if self.trainer.world_size == 1:
            return total / count
        sums = self.all_gather(torch.tensor([total, float(count)], dtype=torch.float64, device=self.device))
        assert isinstance(sums, Tensor)
        return float(sums[:, 0].sum() / sums[:, 1].sum())

    @property
    def is_first(self) -> bool:
        """Whether this is the process that writes."""
        return bool(self.trainer.is_global_zero)

    # ------------------------------------------------------------ checkpoints

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        frozen = {f"learner.{name}" for name in self.learner.frozen_names()}
        checkpoint["state_dict"] = {name: value for name, value in checkpoint["state_dict"].items() if name not in frozen}
        checkpoint["vip"] = {"rows": [row.model_dump() for row in self.rows], "plateau": self._plateau and self._plateau.state_dict()}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.rows = [EpochRecord.model_validate(row) for row in checkpoint["vip"]["rows"]]
        self._plateau_state, self._saved_schedules = checkpoint["vip"]["plateau"], checkpoint["lr_schedulers"]
        check_progress(checkpoint, len(self.rows))


def _do_nothing() -> None:
    pass


def _make_trainer(settings: LoopSettings, folder: Path, machine: Machine) -> Trainer:
    return Trainer(
        accelerator=machine.device,
        devices=machine.devices,
        strategy="auto" if machine.devices == 1 else "ddp_find_unused_parameters_true",
        max_epochs=settings.epochs,
        default_root_dir=folder,
        logger=False,
        enable_checkpointing=False,  # the module saves behind the step of the plateau, which Lightning's callback does not
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Leave out Lightning's remarks on devices and workers, which the user has chosen."""
    names = ("lightning.pytorch", "lightning.fabric", "lightning.pytorch.utilities.rank_zero", "lightning.pytorch.accelerators.cuda")
    before = {name: logging.getLogger(name).level for name in names}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            logging.getLogger(name).setLevel(logging.ERROR)
        try:
            yield
        finally:
            for name, level in before.items():
                logging.getLogger(name).setLevel(level)


@contextmanager
def translated(machine: Machine) -> Iterator[None]:
    """Turn errors of Lightning and torch into those of vip."""
    from lightning.fabric.utilities.exceptions import MisconfigurationException

    try:
        yield
    except SystemExit as exc:
        if isinstance(exc.__context__, KeyboardInterrupt):  # how Lightning ends at Ctrl-C
            raise KeyboardInterrupt from exc
        raise
    except MisconfigurationException as exc:
        raise BackendError(
            f"{option('device', machine.device)} with {machine.devices} of it cannot be used here ({one_line(str(exc))[:150]})."
            f" Write {option('device', 'cpu')}."
        ) from exc
    except torch.OutOfMemoryError as exc:
        raise BackendError("The memory of the device does not suffice. Choose a smaller training.batch, or a smaller model.") from exc
