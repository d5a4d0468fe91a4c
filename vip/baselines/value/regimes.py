"""The regimes of training of Li et al. 2021 (section 4.5, tables 6, 11 and 12): which tasks share a model, and what it begins with.

    st         a model a task
    mt-task    a model for the tasks of one kind: retrieval, questions, captions
    mt-domain  a model for the tasks of one domain: TV, YouTube
    at         one model for all tasks
    at-st      a model a task, each begun with the weights of that for all tasks

In every regime a model has one head a kind of tasks (appendix D.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from vip.errors import UsageError, did_you_mean

Regime = Literal["st", "mt-task", "mt-domain", "at", "at-st"]
REGIMES: tuple[Regime, ...] = get_args(Regime)
ALL_TASKS = "at"


@dataclass(frozen=True, slots=True)
class TaskTraits:
    """What decides with which others a task is trained."""

    key: str
    """As in the names of files: `vatex_en_r`."""
    category: str
    """`retrieval`, `qa` or `captioning`."""
    domain: str
    """`tv` or `youtube`."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One training: one model, in one folder."""

    name: str
    """Of its folder, and of its table in training.toml."""
    tasks: tuple[str, ...]
    after: str | None = None
    """The stage whose best weights it begins with; None: with those that the user names, or none."""


def plan_stages(regime: str, tasks: Sequence[TaskTraits]) -> tuple[Stage, ...]:
    """Return the trainings of a regime in the order in which they run.

    Args:
        tasks: those that are trained; of a kind or domain without any there is no stage.

    Raises:
        UsageError: there is no such regime.
    """
    if regime == "mt-task":
        return _groups([(one.category, one.key) for one in tasks])
    if regime == "mt-domain":
        return _groups([(one.domain, one.key) for one in tasks])
    singles = tuple(Stage(one.key, (one.key,)) for one in tasks)
    if regime == "st":
        return singles
    every = Stage(ALL_TASKS, tuple(one.key for one in tasks))
    if regime == "at":
        return (every,)
    if regime == "at-st":
        return (every, *(Stage(one.name, one.tasks, after=ALL_TASKS) for one in singles))
    raise UsageError(f'There is no regime "{regime}".{did_you_mean(regime, REGIMES)} Name one of {", ".join(REGIMES)}.')


def _groups(pairs: Sequence[tuple[str, str]]) -> tuple[Stage, ...]:
    names = dict.fromkeys(name for name, _ in pairs)
    return tuple(Stage(name, tuple(key for other, key in pairs if other == name)) for name in names)
