"""The tasks by name: those of vip, and those that other packages add by an entry point of the group `vip.tasks`."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points

from vip.errors import BackendError, UsageError, did_you_mean
from vip.tasks.task import Task
from vip.untrusted import one_line, shorten

GROUP = "vip.tasks"
SHUFFLED = "-shuffled-"
"""Stands between the name of a task and the seed by which its options were put into another order."""
MOST_NAME_LETTERS = 100  # that a message shows
MOST_DIGITS = 20  # of a seed or a number behind a name, which may be somebody else's
BUILT_IN = {
    "infilling": "vip.tasks.infilling:VideoInfilling",
    "prediction": "vip.tasks.prediction:VideoPrediction",
    "fiber": "vip.tasks.fiber.task:Fiber",
    "causal-aspect": "vip.tasks.causal_aspect:CausalAspect",
    "nextqa-mc": "vip.tasks.nextqa.mc:NextqaMultiChoice",
    "nextqa-oe": "vip.tasks.nextqa.oe:NextqaOpenEnded",
    "value-tvr": "vip.tasks.value.task:tvr",
    "value-how2r": "vip.tasks.value.task:how2r",
    "value-yc2r": "vip.tasks.value.task:yc2r",
    "value-vatex-en-r": "vip.tasks.value.task:vatex_en_r",
    "value-tvqa": "vip.tasks.value.task:tvqa",
    "value-how2qa": "vip.tasks.value.task:how2qa",
    "value-violin": "vip.tasks.value.task:violin",
    "value-vlep": "vip.tasks.value.task:vlep",
    "value-tvc": "vip.tasks.value.task:tvc",
    "value-yc2c": "vip.tasks.value.task:yc2c",
    "value-vatex-en-c": "vip.tasks.value.task:vatex_en_c",
}


def task_names() -> list[str]:
    """Return the names of all tasks, those of vip first."""
    return list(dict.fromkeys([*BUILT_IN, *sorted(point.name for point in entry_points(group=GROUP))]))


def load_task(name: str) -> Task:
    """Return a task; `infilling-2` and `nextqa-mc-shuffled-7` name `infilling` and `nextqa-mc` too, as their samples do.

    Raises:
        UsageError: there is no such task.
        BackendError: the package that adds it is broken.
    """
    names = task_names()
    base = name if name in names or context_in(name) is None else name.rpartition("-")[0]
    shuffled, separator, seed = name.rpartition(SHUFFLED)
    base = shuffled if separator and seed.lstrip("-").isdecimal() and len(seed) <= MOST_DIGITS else base
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
    name = shorten(one_line(name), MOST_NAME_LETTERS)
    raise UsageError(f'There is no task "{name}".{did_you_mean(name, names)} `vip tasks` lists them.')


def context_in(name: str) -> int | None:
    """Return the number behind a task's name: 2 of `infilling-2`; None where there is none."""
    base, _, number = name.rpartition("-")
    return int(number) if base in BUILT_IN and number.isdecimal() and len(number) <= MOST_DIGITS else None
