"""Which tasks share a model under each regime, and what it begins with."""

from __future__ import annotations

import pytest

from vip.baselines.value.regimes import REGIMES, Stage, TaskTraits, plan_stages
from vip.errors import UsageError
from vip.tasks.value.datasets import DATASETS

ALL = [TaskTraits(one.key, one.category, one.domain) for one in DATASETS]
KEYS = tuple(one.key for one in ALL)


def test_single_tasks_have_a_model_each() -> None:
    assert plan_stages("st", ALL) == tuple(Stage(key, (key,)) for key in KEYS)


def test_tasks_of_one_kind_share_a_model() -> None:
    assert {stage.name: set(stage.tasks) for stage in plan_stages("mt-task", ALL)} == {
        "retrieval": {"tvr", "how2r", "yc2r", "vatex_en_r"},
        "qa": {"tvqa", "how2qa", "violin", "vlep"},
        "captioning": {"tvc", "yc2c", "vatex_en_c"},
    }


def test_tasks_of_one_domain_share_a_model() -> None:
    assert {stage.name: set(stage.tasks) for stage in plan_stages("mt-domain", ALL)} == {
        "tv": {"tvr", "tvqa", "violin", "vlep", "tvc"},
        "youtube": {"how2r", "yc2r", "vatex_en_r", "how2qa", "yc2c", "vatex_en_c"},
    }


def test_each_task_goes_on_from_the_model_of_all() -> None:
    assert plan_stages("at", ALL) == (Stage("at", KEYS),)
    first, *others = plan_stages("at-st", ALL)
    assert first == Stage("at", KEYS)
    assert others == [Stage(key, (key,), after="at") for key in KEYS]


@pytest.mark.parametrize("regime", REGIMES)
def test_every_task_is_trained_last_in_a_stage_of_its_own_regime(regime: str) -> None:
    stages = plan_stages(regime, ALL)
    before = [stage.after for stage in stages if stage.after is not None]
    assert all(name in {stage.name for stage in stages} for name in before)
    ends = [key for stage in stages if stage.name not in before for key in stage.tasks]
    assert sorted(ends) == sorted(KEYS)


def test_fewer_tasks_have_no_empty_stages() -> None:
    assert [stage.name for stage in plan_stages("mt-domain", [ALL[0]])] == ["tv"]


def test_an_unknown_regime_is_one_sentence() -> None:
    with pytest.raises(UsageError, match=r'There is no regime "mt-tsk"\..*mt-task.* Name one of st, mt-task'):
        plan_stages("mt-tsk", ALL)
