"""The published settings of every training of VALUE, and what a user changes in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vip.baselines.value.settings import ValueSettings, load_settings
from vip.errors import UsageError
from vip.tasks.value.datasets import BY_KEY

PUBLISHED = {
    "tvr": (1e-4, 5_000, 32, 1, 0),
    "how2r": (1e-4, 3_000, 32, 1, 0),
    "yc2r": (7e-5, 4_000, 48, 1, 1),
    "vatex_en_r": (7e-5, 4_000, 64, 1, 1),
    "tvqa": (5e-5, 10_000, 4, 10, 0),
    "how2qa": (5e-5, 2_000, 4, 10, 0),
    "violin": (3e-5, 6_000, 4, 8, 2),
    "vlep": (5e-5, 1_000, 4, 10, 0),
    "tvc": (1e-4, 7_000, 4, 10, 1),
    "yc2c": (1e-4, 7_000, 16, 10, 1),
    "vatex_en_c": (1e-4, 7_000, 128, 10, 1),
}
"""Learning rate, steps, batch, factor of heads, sentences before: config/train-NAME.json of the starter code."""
AT_RATIOS = {"tvr": 5, "tvc": 5, "tvqa": 5, "violin": 3, "vlep": 1, "how2r": 2, "vatex_en_r": 6, "yc2r": 2, "vatex_en_c": 2, "yc2c": 2}


def of(stage: str, *tasks: str, **more: Any) -> ValueSettings:
    return load_settings(stage, tasks or (stage,), features=4352, **({"has_weights": True} | more))


@pytest.mark.parametrize("key", PUBLISHED)
def test_single_tasks_have_the_published_settings(key: str) -> None:
    settings = of(key)
    training = settings.training
    found = (training.learning_rate, training.steps, settings.tasks[key].batch, training.head_factor, settings.input.context)
    assert found == PUBLISHED[key]
    assert training.warmup_steps == training.steps // 10
    assert (training.betas, training.weight_decay, training.gradient_norm, training.seed) == ((0.9, 0.98), 0.01, 1.0, 77)
    assert settings.input.text_tokens == (120 if BY_KEY[key].category == "qa" else 60)


@pytest.mark.parametrize(
    ("stage", "steps"), [("tvr", 10_000), ("how2r", 6_000), ("vlep", 2_000), ("retrieval", 20_000), ("tv", 30_000), ("youtube", 20_000)]
)
def test_some_trainings_without_pretrained_weights_are_longer(stage: str, steps: int) -> None:
    tasks = {"retrieval": ["tvr"], "tv": ["tvr"], "youtube": ["how2r"]}.get(stage, [stage])
    settings = of(stage, *tasks, has_weights=False)
    assert (settings.training.steps, settings.training.warmup_steps) == (steps, steps // 10)
    assert of("tvqa", has_weights=False) == of("tvqa")


def test_all_tasks_are_drawn_by_the_published_ratios() -> None:
    settings = of("at", *BY_KEY)
    assert {key: share.ratio for key, share in settings.tasks.items()} == AT_RATIOS | {"how2qa": 1}
    assert settings.training.steps == 50_000
    assert {key: share.batch for key, share in settings.tasks.items()} == {key: row[2] for key, row in PUBLISHED.items()}


def test_how2r_looks_for_longer_moments() -> None:
    assert (of("tvr").ranking.least_frames, of("tvr").ranking.most_frames) == (2, 16)
    assert (of("how2r").ranking.least_frames, of("how2r").ranking.most_frames) == (3, 20)


def test_videos_as_a_whole_have_no_loss_of_spans() -> None:
    for key in ("yc2r", "vatex_en_r"):
        assert (of(key).loss.rank_weight, of(key).loss.span_weight, of(key).loss.hard_pool) == (10.0, 0.0, 80)
    assert (of("tvr").loss.rank_weight, of("tvr").loss.span_weight, of("tvr").loss.hard_pool) == (8.0, 0.01, 20)


def test_own_values_count_before_the_published_ones(tmp_path: Path) -> None:
    config = tmp_path / "mine.toml"
    config.write_text("[training]\nsteps = 9\nseed = 3\n")
    settings = of("tvqa", config=config, assignments={"training": {"seed": 4}})
    assert (settings.training.steps, settings.training.seed) == (9, 4)
    assert settings.sha256 != of("tvqa").sha256


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        ({"trainig": {"steps": 1}}, r"Settings of VALUE have no table trainig\. They have model, input"),
        ({"training": {"stps": 1}}, r"training has no setting stps\. It has learning_rate"),
        ({"training": {"steps": 0}}, r"training\.steps: .* got 0"),
        ({"training": 7}, "training is a table of settings"),
        ({"model": {"features": 7}}, r"The features have \d+ numbers a frame\. Leave model\.features out\."),
        ({"tasks": {"tvqa": 2}}, r"tasks\.tvqa is a table of settings\. Write --set tasks\.tvqa\.NAME=VALUE"),
        ({"tasks": {"nlvr": {"batch": 2}}}, r"There is no task tasks\.nlvr\. Name one of tvr, how2r"),
    ],
)
def test_each_wrong_setting_is_one_sentence(assignments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        of("tvqa", assignments=assignments)
