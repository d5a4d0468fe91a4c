"""Tasks by name: those of vip, with a number or a seed behind them, and those of other packages."""

from __future__ import annotations

from typing import Any

import pytest

from vip.errors import BackendError, UsageError
from vip.tasks import registry
from vip.tasks.infilling import VideoInfilling
from vip.tasks.registry import BUILT_IN, context_in, load_task, task_names


def test_every_task_is_found_by_its_own_name() -> None:
    assert [load_task(name).name for name in BUILT_IN] == list(BUILT_IN)


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("infilling-2", "infilling"),
        ("prediction-10", "prediction"),
        ("nextqa-mc-shuffled-7", "nextqa-mc"),
        ("nextqa-mc-shuffled--7", "nextqa-mc"),
        ("nextqa-mc-shuffled-", None),
        ("nextqa-mc-shuffled-x", None),
        ("infilling-x", None),
        ("infilling-", None),
        ("2", None),
    ],
)
def test_a_number_or_a_seed_behind_a_name_is_none_of_it(name: str, task: str | None) -> None:
    if task is not None:
        assert load_task(name).name == task
        return
    with pytest.raises(UsageError, match=f'There is no task "{name}"'):
        load_task(name)


def test_the_number_behind_the_name_of_a_task_is_known() -> None:
    assert [context_in(name) for name in ("infilling-2", "infilling", "prediction-10", "value-tvr", "other-2")] == [2, None, 10, None, None]


@pytest.mark.parametrize("name", ["infilling-" + "9" * 5000, "nextqa-mc-shuffled-" + "9" * 5000, "x" * 5000])
def test_a_name_of_thousands_of_letters_is_no_task_and_is_cut_in_the_sentence_that_says_so(name: str) -> None:
    with pytest.raises(UsageError, match=f'There is no task "{name[:100]}…"'):
        load_task(name)


def test_a_task_that_does_not_exist_is_one_sentence() -> None:
    with pytest.raises(UsageError, match=r'There is no task "infiling"\. ?Did you mean "infilling"\?.*`vip tasks` lists them\.'):
        load_task("infiling")


class Point:
    """An entry point."""

    def __init__(self, name: str, made: Any) -> None:
        self.name, self.value, self.made = name, f"other:{name}", made

    def load(self) -> Any:
        return self.made


class Mine(VideoInfilling):
    """A task of another package."""

    name = "mine"


class Broken:
    """A task that cannot be made."""

    def __init__(self) -> None:
        raise RuntimeError("a library is missing")


def test_tasks_of_other_packages_stand_behind_those_of_vip_and_a_broken_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [Point("mine", Mine), Point("broken", Broken), Point("infilling", Mine)]
    monkeypatch.setattr(
        registry, "entry_points", lambda group, name=None: [one for one in points if name in (None, one.name) and group == "vip.tasks"]
    )
    assert task_names() == [*BUILT_IN, "broken", "mine"]
    assert load_task("mine").name == "mine"
    assert load_task("infilling").name == "infilling", "the name of a task of vip is taken"
    with pytest.raises(BackendError, match=r'The task "broken" of other:broken cannot be loaded: a library is missing'):
        load_task("broken")
