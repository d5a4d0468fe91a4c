"""The tasks by name: those of vip, and those that other packages add by an entry point of the group `vip.tasks`."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points

from vip.errors import BackendError, UsageError, did_you_mean
from vip.tasks.task import Task

GROUP = "vip.tasks"
BUILT_IN = {
    "infilling": "vip.tasks.infilling:Infilling",
    "prediction": "vip.tasks.prediction:Prediction",
    "causal-aspect": "vip.tasks.causal_aspect:CausalAspect",
}


def task_names() -> list[str]:
    """Return the names of all tasks, those of vip first."""
    return list(dict.fromkeys([*BUILT_IN, *sorted(point.name for point in entry_points(group=GROUP))]))


def load_task(name: str) -> Task:
    """Return a task; `infilling-2` names `infilling` too, as its samples do.

    Raises:
        UsageError: there is no such task.
        BackendError: the package that adds it is broken.
    """
    names = task_names()
    base = name if name in names or context_in(name) is None else name.rpartition("-")[0]
    if base in BUILT_IN:
        module, _, kind = BUILT_IN[base].partition(":")
        task: Task = getattr(import_module(module), kind)()
        return task
    for point in entry_points(group=GROUP, name=base):
        try:
            added: Task = point.load()()
        except Exception as exc:
            raise BackendError(f'The task "{base}" of {point.value} cannot be loaded: {exc}. Repair or remove its package.') from exc
        return added
    raise UsageError(f'There is no task "{name}".{did_you_mean(name, names)} `vip tasks` lists them.')


def context_in(name: str) -> int | None:
    """Return the number behind a task's name: 2 of `infilling-2`; None where there is none."""
    base, _, number = name.rpartition("-")
    return int(number) if base in BUILT_IN and number.isdecimal() else None
