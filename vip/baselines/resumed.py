"""What a training goes on from, `last.ckpt`, looked through before a library takes it: the folder may come from a stranger.

A small file can name tensors of any shape, and Lightning and torch put texts where they reckon with numbers. What is here raises
ValueError, KeyError and so on, which the loop turns into one sentence before its first epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from vip import files, store
from vip.errors import InputError, StoreError
from vip.untrusted import one_line
from vip.wording import option

MOST_TIMES, SPARE_BYTES = 4, 2**26
"""The tensors of a file have no more than so many times its bytes, and some: torch packs nothing, and tied weights are there twice."""
MOST_VALUES = 2_000_000  # in a file
MOST_COUNT = 2**53
MOST_UNSAVED = 500_000_000
"""Weights of a model whose training has saved nothing yet: three times those of HERO."""
STATE = {"step", "exp_avg", "exp_avg_sq"}
"""What Adam keeps of a weight."""
OLD = {"verbose"}
"""What torch kept of a schedule before version 2.7."""
ModuleT = TypeVar("ModuleT", bound=nn.Module)


def anew(path: Path, problem: str) -> InputError:
    """Return the error that a file to go on from cannot be read."""
    return InputError(f"{path} cannot be read ({one_line(problem)[:100]}). Begin the training anew: {option('overwrite')}.")


def stated_bytes(value: object) -> int:
    """Return how many bytes the tensors in dicts and lists take, each as often as it is named.

    Raises:
        ValueError: there are too many values.
    """
    total, count, left = 0, 0, [value]
    while left:
        one = left.pop()
        count += 1
        if isinstance(one, Tensor):
            total += one.numel() * one.element_size()
        elif isinstance(one, dict | list | tuple):
            count += len(one)  # before they are copied: a list may hold itself
            if count <= MOST_VALUES:
                left += one.values() if isinstance(one, dict) else one
        if count > MOST_VALUES:
            raise ValueError(f"more than {MOST_VALUES:,} values")
    return total


def most_of_file(size_bytes: int, most_bytes: int) -> int:
    """Return how many bytes the tensors of a file of this size may have."""
    return min(most_bytes, MOST_TIMES * size_bytes + SPARE_BYTES)


# ---------------------------------------------------------------- before the model is drawn


def check_sizes(
    path: Path, state: Mapping[str, Any] | None, build: Callable[[], ModuleT], names_of: Callable[[ModuleT], Collection[str]]
) -> None:
    """Refuse settings of a folder that state other sizes than the weights that were saved in it, before they take memory.

    Args:
        state: what `read_last` returned; None where nothing was saved, and the model may be of a size that is common alone.
        build: returns the model; called on the device `meta`, where tensors have shapes alone.
        names_of: the names of the weights that are saved.

    Raises:
        InputError: they do, or the model is too large.
    """
    with torch.device("meta"):
        model = build()
    names = names_of(model)
    shapes = {name: tensor.shape for name, tensor in model.state_dict().items() if name in names}
    if state is None:
        count = sum(shape.numel() for shape in shapes.values())
        if count > MOST_UNSAVED:
            raise InputError(
                f"{path.parent} was begun with a model of {count:,} weights, and none were saved. Begin the training anew:"
                f" {option('overwrite')}."
            )
        return
    try:
        saved = {name.partition(".")[2]: tensor.shape for name, tensor in state["state_dict"].items()}  # behind "model." or "learner."
    except (AttributeError, KeyError, TypeError) as exc:
        raise anew(path, "it has no weights") from exc
    different = sorted(name for name in shapes.keys() | saved.keys() if shapes.get(name) != saved.get(name))
    if different:
        raise anew(path, f"it holds weights of another model, such as {different[0]}")


def clear_places(folder: Path, names: Collection[str], part: str) -> None:
    """Delete what a killed training left half written, and look that nothing is in the way of what an epoch will write.

    Raises:
        StoreError: a folder is.
    """
    try:
        files.remove(folder / part, inside=folder)  # in a folder of somebody else it may be a link to any file
    except OSError as exc:
        raise StoreError(
            f"{folder / part} cannot be deleted: {exc.strerror}. Delete it, or name another folder with {option('out')}."
        ) from exc
    inside = next((folder / name for name in names if store.is_folder(folder / name)), None)
    if inside is not None:
        raise StoreError(f"{inside} is a folder, and a file will be written there. Delete it, or name another folder with {option('out')}.")


# ---------------------------------------------------------------- what Lightning takes


def check_progress(state: Mapping[str, Any], epochs: int) -> None:
    """Refuse counts of epochs, batches and steps that are none, or are not those of so many epochs.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: they are.
    """
    if not epochs:
        raise ValueError("no epoch has ended")
    _check_counts(state["loops"])
    progress = state["loops"]["fit_loop"]["epoch_progress"]["current"]
    if {progress[name] for name in ("ready", "started", "processed")} != {epochs} or progress["completed"] not in (epochs - 1, epochs):
        raise ValueError(f"its {epochs} epochs were counted otherwise")


def _check_counts(value: object) -> None:
    if isinstance(value, dict):
        for one in value.values():
            _check_counts(one)
    elif not isinstance(value, int) or not 0 <= value <= MOST_COUNT:
        raise ValueError("a count is none")


def check_like(value: object, pattern: object, name: str = "") -> None:
    """Refuse what has not the form of a pattern: its names and kinds, finite numbers, and the same texts.

    Raises:
        ValueError: it has not.
    """
    if isinstance(pattern, Mapping):
        fits = isinstance(value, Mapping) and value.keys() - OLD <= pattern.keys()
        pairs = [(value[one], pattern[one], str(one)) for one in pattern if one in value] if fits and isinstance(value, Mapping) else []
    elif isinstance(pattern, list | tuple):
        fits = isinstance(value, list | tuple) and len(value) == len(pattern)
        pairs = [(*pair, name) for pair in zip(value, pattern, strict=True)] if fits and isinstance(value, list | tuple) else []
    else:
        fits, pairs = _is_like(value, pattern), []
    if not fits:
        raise ValueError(f"{name or 'a value'} is no such value")
    for one in pairs:
        check_like(*one)


def _is_like(value: object, pattern: object) -> bool:
    if isinstance(pattern, bool) or not isinstance(pattern, int | float):
        return type(value) is type(pattern) and (isinstance(pattern, bool) or value == pattern)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if isinstance(pattern, int):
        return 0 <= value <= MOST_COUNT
    return value == pattern or -MOST_COUNT <= value <= MOST_COUNT


def check_schedules(saved: Sequence[Mapping[str, Any]], begun: Sequence[Mapping[str, Any]]) -> None:
    """Refuse states of schedules that are none, or that begin with other learning rates.

    Raises:
        ValueError: they are.
    """
    check_like(saved, begun)
    if any(one.get("base_lrs", first["base_lrs"]) != first["base_lrs"] for one, first in zip(saved, begun, strict=True)):
        raise ValueError("base_lrs is not as in the settings")


def check_optimizer(optimizer: Optimizer, begun: Sequence[Mapping[str, Any]]) -> None:
    """Refuse what Adam took from a file, where it is not of its weights and of the settings of the training.

    Args:
        begun: the groups as they were before: `groups_of`.

    Raises:
        ValueError, KeyError, TypeError, RuntimeError: it is not.
    """
    for group, first in zip(optimizer.param_groups, begun, strict=True):
        rate, most = group["lr"], first.get("initial_lr", first["lr"])
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= most:
            raise ValueError("a learning rate is none")
        other = next((name for name, value in first.items() if name != "lr" and group.get(name, value) != value), None)
        if other is not None:
            raise ValueError(f"{other} is not as in the settings")
        for weight in group["params"]:
            _check_state(optimizer.state.get(weight), weight)


def groups_of(optimizer: Optimizer) -> list[dict[str, Any]]:
    """Return the settings of each group of weights."""
    return [{name: value for name, value in group.items() if name != "params"} for group in optimizer.param_groups]


def _check_state(state: dict[str, Any] | None, weight: Tensor) -> None:
    if not state:
        return  # it had no gradient yet
    if state.keys() != STATE or not 0 <= float(state["step"]) <= MOST_COUNT:
        raise ValueError("the state of a weight is none")
    for name in STATE - {"step"}:
        tensor = state[name]
        if tensor.shape != weight.shape or tensor.dtype != weight.dtype or tensor.layout != torch.strided:
            raise ValueError(f"{name} of a weight has another shape")
        if not tensor.is_contiguous():
            state[name] = tensor.contiguous()  # numbers that share their place cannot be written to
