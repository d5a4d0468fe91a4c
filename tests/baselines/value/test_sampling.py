"""Which task each step trains, and which examples are in its batches."""

from __future__ import annotations

from collections import Counter

import pytest

from vip.baselines.value.sampling import BatchPlan, groups_by_video
from vip.baselines.value.settings import load_settings
from vip.tasks.value.datasets import BY_KEY


def plan(sizes: dict[str, int], ratios: dict[str, int] | None = None, batch: int = 3, **more: int) -> BatchPlan:
    units = {task: [[place] for place in range(size)] for task, size in sizes.items()}
    return BatchPlan(units, ratios or dict.fromkeys(sizes, 1), dict.fromkeys(sizes, batch), **more)


def test_tasks_are_drawn_as_often_as_their_ratios_say() -> None:
    settings = load_settings("at", tuple(BY_KEY), features=8, has_weights=True)
    ratios = {key: share.ratio for key, share in settings.tasks.items()}
    steps = 34_000
    drawn = Counter(plan(dict.fromkeys(ratios, 9), ratios).tasks_of(0, steps))
    total = sum(ratios.values())
    assert total == 34
    for key, ratio in ratios.items():
        expected = steps * ratio / total
        deviation = (expected * (1 - ratio / total)) ** 0.5
        assert abs(drawn[key] - expected) < 4 * deviation, key


def test_all_batches_of_a_step_are_of_one_task() -> None:
    batches = list(plan({"a": 9, "b": 9}, accumulate=2).batches_of(0, 20))
    assert len(batches) == 40
    assert all(first.task == second.task for first, second in zip(batches[::2], batches[1::2], strict=True))
    assert {one.task for one in batches} == {"a", "b"}


def test_each_pass_has_every_example_once_in_another_order() -> None:
    batches = [one.places for one in plan({"a": 8}).batches_of(0, 6)]
    assert [len(places) for places in batches] == [3, 3, 2, 3, 3, 2]
    first, second = sum(batches[:3], ()), sum(batches[3:], ())
    assert sorted(first) == sorted(second) == list(range(8))
    assert first != second


def test_a_training_that_goes_on_draws_what_one_without_a_stop_would() -> None:
    whole = list(plan({"a": 7, "b": 5}, {"a": 2, "b": 1}, accumulate=2).batches_of(0, 30))
    parts = [batch for first in (0, 10, 20) for batch in plan({"a": 7, "b": 5}, {"a": 2, "b": 1}, accumulate=2).batches_of(first, 10)]
    assert parts == whole
    assert list(plan({"a": 7, "b": 5}, {"a": 2, "b": 1}, accumulate=2, seed=78).batches_of(0, 30)) != whole


def test_devices_share_the_examples_out_and_train_the_same_task() -> None:
    plans = [plan({"a": 8, "b": 8}, rank=rank, world=2) for rank in range(2)]
    of_devices = [list(one.batches_of(0, 30)) for one in plans]
    assert [one.task for one in of_devices[0]] == [one.task for one in of_devices[1]]
    places = [{place for one in batches if one.task == "a" for place in one.places} for batches in of_devices]
    assert places == [{0, 2, 4, 6}, {1, 3, 5, 7}]


@pytest.mark.parametrize("batch", [1, 2])
def test_examples_of_a_video_stay_together(batch: int) -> None:
    groups = groups_by_video(["x", "y", "x", "z", "y", "x"])
    assert groups == [[0, 2, 5], [1, 4], [3]]
    (drawn, *_) = BatchPlan({"a": groups}, {"a": 1}, {"a": batch}).batches_of(0, 1)
    assert all(set(group) <= set(drawn.places) or not set(group) & set(drawn.places) for group in groups)
    assert len([group for group in groups if set(group) <= set(drawn.places)]) == batch


@pytest.mark.parametrize(("groups", "own"), [(1, [{0}, {0}]), (2, [{0}, {1}]), (3, [{0, 2}, {1}])])
def test_as_many_groups_as_devices_are_shared_out_and_fewer_are_those_of_all(groups: int, own: list[set[int]]) -> None:
    found = [{place for one in plan({"a": groups}, rank=rank, world=2).batches_of(0, 8) for place in one.places} for rank in range(2)]
    assert found == own
