"""Training of HERO on the loop of Lightning: steps over the tasks of a stage, validations, the best weights, and where to go on.

In: a model, the examples of train, and what scores the model on val. Out: the best weights and a row a validation in the stage's folder.
What lies between two validations is an epoch of Lightning's: each begins with random numbers of the seed and its own number, so that a
training that was stopped and goes on gives the same weights as one that was not.

Sources: (P) Li et al. 2021; (C) the starter code, by its file.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import Tensor, nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset

from vip import store
from vip.baselines.installed import is_first_process
from vip.baselines.resumed import anew, check_optimizer, check_progress, check_schedules, clear_places, groups_of
from vip.baselines.run_folder import PART, find_last
from vip.baselines.training import Machine, quiet_lightning, seed_of, translated
from vip.baselines.value.data import Example
from vip.baselines.value.interface import Batch, HeroModel, build
from vip.baselines.value.run_folder import LAST, VALIDATIONS, WEIGHTS, ValidationRecord, write_weights
from vip.baselines.value.sampling import BatchPlan, Drawn, groups_by_video
from vip.baselines.value.settings import TrainingSettings, ValueSettings
from vip.errors import InputError
from vip.protocols import Observer

Validate = Callable[[HeroModel], Mapping[str, float]]
"""The target metric of each task on val, × 100."""


class BatchMaker(Protocol):
    """Makes the batch of examples of a task: `data.ItemMaker`, `pretraining.PretrainingMaker`."""

    def batch(self, examples: Sequence[Example], /) -> Batch: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StageData:
    """What a stage is trained on."""

    train: Mapping[str, Sequence[Example]]
    """Of each task."""
    makers: Mapping[str, BatchMaker]
    """Of each task: they read the videos of its source."""
    validate: Validate


def learning_rate_factor(step: int, warmup_steps: int, steps: int) -> float:
    """Return what the learning rate is multiplied by in a step, from 1: up over the warm-up, then down to 0 (C optim/sched.py)."""
    if step < warmup_steps:
        return step / warmup_steps
    return max(0.0, (steps - step) / (steps - warmup_steps)) if steps > warmup_steps else 1.0


def parameter_groups(model: HeroModel, settings: TrainingSettings) -> list[dict[str, Any]]:
    """Return the weights by learning rate and decay: heads have their own rate, biases and norms no decay (C optim/misc.py)."""
    heads = model.head_names()
    norms = {f"{name}.{kind}" for name, module in model.named_modules() if isinstance(module, nn.LayerNorm) for kind in ("weight", "bias")}
    groups: dict[tuple[bool, bool], list[Tensor]] = defaultdict(list)
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            groups[name in heads, name.endswith("bias") or name in norms].append(parameter)
    return [
        {
            "params": some,
            "lr": settings.learning_rate * (settings.head_factor if is_head else 1.0),
            "weight_decay": 0.0 if is_plain else settings.weight_decay,
        }
        for (is_head, is_plain), some in sorted(groups.items(), key=lambda one: one[0])
    ]


def draw_model(settings: ValueSettings) -> HeroModel:
    """Return a model whose weights the seed decides."""
    torch.manual_seed(settings.training.seed)
    return build(settings.model)


def train_stage(
    model: HeroModel,
    settings: ValueSettings,
    data: StageData,
    folder: Path,
    *,
    machine: Machine,
    observer: Observer,
    resume: bool = False,
) -> list[ValidationRecord]:
    """Train a model and return the rows of all validations; weights and rows lie in the folder after each.

    Args:
        resume: go on behind the last validation.

    Raises:
        BackendError: the device is not there, or its memory does not suffice.
        InputError: the loss is not a number any more, or the file to go on from is damaged.
        StoreError: something is in the way of what is written.
    """
    if is_first_process():
        clear_places(folder, (WEIGHTS, VALIDATIONS, LAST), PART)
    loop = StageLoop(model, settings, data, folder, observer, machine)
    last = find_last(folder) if resume else None
    with quiet_lightning(), ExitStack() as bars, translated(machine):
        loop.bars = bars
        trainer = _make_trainer(settings.training, folder, machine)
        try:
            trainer.fit(loop, ckpt_path=last, weights_only=True)
        except Exception as exc:
            if last is None or loop.has_begun:
                raise
            raise anew(last, str(exc)) from exc
    return loop.rows


class StageLoop(LightningModule):
    """What Lightning calls at each step."""

    def __init__(
        self, model: HeroModel, settings: ValueSettings, data: StageData, folder: Path, observer: Observer, machine: Machine
    ) -> None:
        super().__init__()
        self.model = model
        self.settings, self.data, self.folder = settings, data, folder
        self.observer, self.machine = observer, machine
        self.rows: list[ValidationRecord] = []
        self.bars = ExitStack()
        self.has_begun = False
        """Whether a step was made: what failed before is the file to go on from."""
        self._losses: dict[str, list[Tensor]] = {}
        self._saved_schedules: list[Any] | None = None
        """Of the file to go on from; None in a training that begins."""
        self._first_groups: list[dict[str, Any]] = []
        self._first_schedules: list[dict[str, Any]] = []
        self._advance: Callable[[], None] = _do_nothing

    def configure_optimizers(self) -> Any:
        training = self.settings.training
        # PyTorch decays before the step, optim/adamw.py after it: they differ by learning rate × decay of one step
        optimizer = AdamW(parameter_groups(self.model, training), betas=training.betas, eps=training.epsilon)

        def factor(done: int) -> float:
            return learning_rate_factor(done + 1, training.warmup_steps, training.steps)

        going = LambdaLR(optimizer, factor)
        self._first_groups, self._first_schedules = groups_of(optimizer), [going.state_dict()]
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": going, "interval": "step"}}

    def train_dataloader(self) -> DataLoader[Any]:
        training, shares = self.settings.training, self.settings.tasks
        plan = BatchPlan(
            {task: units_of(some, by_video=shares[task].by_video) for task, some in self.data.train.items()},
            {task: shares[task].ratio for task in self.data.train},
            {task: shares[task].batch for task in self.data.train},
            accumulate=training.accumulate,
            seed=training.seed,
            rank=self.global_rank,
            world=self.trainer.world_size,
        )
        first, count = self._steps
        batches = PlannedBatches(list(plan.batches_of(first, count)), self.data)
        own_numbers = torch.Generator()  # or each loader that begins would draw from the numbers of the training
        return DataLoader(batches, batch_size=None, num_workers=self.machine.workers, generator=own_numbers)

    @property
    def _steps(self) -> tuple[int, int]:
        """How many steps lie before the next validation's, and how many it has."""
        training = self.settings.training
        first = self.current_epoch * training.validate_every
        return first, max(0, min(training.validate_every, training.steps - first))

    def transfer_batch_to_device(self, batch: tuple[str, Batch], device: torch.device, dataloader_idx: int) -> tuple[str, Batch]:
        return batch[0], batch[1].to(device)

    # ------------------------------------------------------------ train

    def on_train_start(self) -> None:
        """Look through what Lightning has taken from the file to go on from."""
        if self._saved_schedules is not None:
            check_schedules(self._saved_schedules, self._first_schedules)
            check_optimizer(self.trainer.optimizers[0], self._first_groups)

    def on_train_epoch_start(self) -> None:
        self.has_begun = True
        self.model.train()
        torch.manual_seed(seed_of(self.settings.training.seed, self.current_epoch, self.global_rank))
        self._losses = {}
        first, count = self._steps
        title = f"Steps {first + 1:,} to {first + count:,} of {self.settings.training.steps:,}"
        batches = count * self.settings.training.accumulate
        self._advance = self.bars.enter_context(self.observer.track(title, batches)) if self.is_first else _do_nothing

    def training_step(self, batch: tuple[str, Batch], number: int) -> Tensor:
        task, tensors = batch
        is_hard = self.global_step >= self.settings.training.hard_negatives_from
        loss = self.model.loss(tensors, self.settings.loss.model_copy(update={"hard_negatives": is_hard}))
        self._losses.setdefault(task, []).append(loss.detach())
        self._advance()
        return loss * self.settings.training.accumulate  # the authors add the gradients of a step's batches; Lightning takes their mean

    # ------------------------------------------------------------ val

    def on_train_epoch_end(self) -> None:
        """Validate, note it, keep the weights if they are the best, and save where to go on."""
        self.bars.close()
        step = sum(self._steps)
        losses = {task: torch.stack(some).mean().item() for task, some in sorted(self._losses.items())}
        bad = next((task for task, loss in losses.items() if not math.isfinite(loss)), None)
        if bad is not None:
            raise InputError(
                f"The loss of {bad} before step {step} is {losses[bad]}. Lower training.learning_rate"
                f" ({self.settings.training.learning_rate:g}), or look for features that are far too large."
            )
        self.model.eval()
        with torch.inference_mode():
            scores = dict(self.data.validate(self.model))
        rate = self.settings.training.learning_rate * learning_rate_factor(
            step, self.settings.training.warmup_steps, self.settings.training.steps
        )
        row = ValidationRecord(step=step, losses=losses, scores=scores, learning_rate=rate, is_best=False)
        row = row.model_copy(update={"is_best": all(row.mean > other.mean for other in self.rows)})
        self.rows.append(row)
        if self.is_first:
            self._write(row)
        part = self.folder / PART
        if self.is_first:
            part.unlink(missing_ok=True)  # in a folder of somebody else it may be a link to any file
        self.trainer.save_checkpoint(part)
        if self.is_first:
            part.replace(self.folder / LAST)

    def _write(self, row: ValidationRecord) -> None:
        if row.is_best:
            write_weights(self.folder / WEIGHTS, self.model)
        store.write_rows(self.folder / VALIDATIONS, self.rows)
        losses = ", ".join(f"{task} {loss:.4f}" for task, loss in row.losses.items())
        best = ", best" if row.is_best else ""
        self.observer.note(f"step {row.step:,} of {self.settings.training.steps:,}: loss {losses}; val {row.text}{best}")

    @property
    def is_first(self) -> bool:
        """Whether this is the process that writes."""
        return bool(self.trainer.is_global_zero)

    # ------------------------------------------------------------ checkpoints

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["vip"] = {"rows": [row.model_dump() for row in self.rows]}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.rows = [ValidationRecord.model_validate(row) for row in checkpoint["vip"]["rows"]]
        if any(row.scores.keys() - self.settings.tasks.keys() for row in self.rows):
            raise ValueError("a score is of no task of this training")
        check_progress(checkpoint, len(self.rows))
        self._saved_schedules = checkpoint["lr_schedulers"]


class PlannedBatches(Dataset[tuple[str, Batch]]):
    """The batches of some steps, made when they are asked for."""

    def __init__(self, plan: Sequence[Drawn], data: StageData) -> None:
        self.plan, self.data = plan, data

    def __len__(self) -> int:
        return len(self.plan)

    def __getitem__(self, number: int) -> tuple[str, Batch]:
        drawn = self.plan[number]
        examples = self.data.train[drawn.task]
        return drawn.task, self.data.makers[drawn.task].batch([examples[place] for place in drawn.places])


def units_of(examples: Sequence[Example], *, by_video: bool) -> list[list[int]]:
    """Return what stays together in a batch: the places of a video's examples, or of one."""
    return groups_by_video([one.video for one in examples]) if by_video else [[place] for place in range(len(examples))]


def _do_nothing() -> None:
    pass


def _make_trainer(settings: TrainingSettings, folder: Path, machine: Machine) -> Trainer:
    return Trainer(
        accelerator=machine.device,
        devices=machine.devices,
        strategy="auto" if machine.devices == 1 else "ddp_find_unused_parameters_true",  # a step trains one task's head
        precision=settings.precision,
        max_epochs=math.ceil(settings.steps / settings.validate_every),
        reload_dataloaders_every_n_epochs=1,
        accumulate_grad_batches=settings.accumulate,
        gradient_clip_val=settings.gradient_norm,
        use_distributed_sampler=False,  # the plan shares the examples out
        default_root_dir=folder,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        limit_val_batches=0,
    )
