"""vip.baselines.settings, and the files of settings of every model"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from vip.baselines.nextqa.assemble import TASKS, load_settings
from vip.baselines.settings import BaselineSettings, merge, parse_assignments, read_tables
from vip.errors import InputError, UsageError

MODELS = [(task, model) for task, models in TASKS.items() for model in models]


def settings(*assignments: str, task: str = "nextqa-mc", model: str = "hga", **others: Any) -> BaselineSettings:
    return load_settings(task, model, assignments=parse_assignments(assignments), **others)


@pytest.mark.parametrize(("task", "model"), MODELS)
def test_the_files_of_every_model_are_whole(task: str, model: str) -> None:
    found = load_settings(task, model)
    assert found.model == model
    assert (found.decoder is None) == (task == "nextqa-mc")


def test_hyper_parameters_are_those_of_the_authors() -> None:
    found = settings()
    assert (found.training.batch, found.training.epochs, found.training.seed, found.training.margin) == (64, 50, 666, 1.0)
    assert (found.learning_rate, settings("words.kind=bert").learning_rate) == (1e-4, 5e-5)
    assert settings("words.kind=features").learning_rate == 5e-5  # stored vectors are those of BERT
    assert (found.training.plateau_factor, found.training.plateau_patience) == (0.5, 5)
    assert (found.words.size, found.words.length, found.words.least_count) == (300, 37, 5)
    open_ended = settings(task="nextqa-oe")
    assert (open_ended.decoder, open_ended.learning_rate, open_ended.training.epochs) == ("att-qns", 5e-5, 100)
    assert (open_ended.words.length, open_ended.words.answer_length, open_ended.training.teacher_forcing) == (23, 7, 0.5)


def test_a_file_of_the_user_counts_more_than_the_models_and_single_values_most(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("[model]\nhidden = 64\ndropout = 0.1\n[training]\nepochs = 3\n")
    found = settings("model.hidden=32", "training.best_by=accuracy", config=tmp_path / "mine.toml")
    assert (found.options["hidden"], found.options["dropout"], found.options["pooling"]) == (32, 0.1, "sum")
    assert (found.training.epochs, found.training.batch) == (3, 64)


def test_the_hash_is_of_what_was_set() -> None:
    assert settings().sha256 == settings("model.hidden=256").sha256 != settings("model.hidden=255").sha256


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"assignments": ["model.hiden=3"]}, "model has no setting hiden"),
        ({"assignments": ["model.hidden=big"]}, "model.hidden: .* got 'big'"),
        ({"assignments": ["training.epochs=0"]}, "training.epochs"),
        ({"assignments": ["training=3"]}, "training is a table"),
        ({"assignments": ["optimizer.name=sgd"]}, "no setting optimizer"),
        ({"model": "hgaa"}, 'no model "hgaa". Did you mean "hga"'),
        ({"task": "fiber"}, 'No model is trained for "fiber"'),
        ({"decoder": "naive"}, "open-ended"),
        ({"task": "nextqa-oe", "model": "blind-qa", "decoder": "att-vid"}, 'blind-qa has no decoder "att-vid"'),
        ({"task": "nextqa-oe", "model": "evqa", "decoder": "uatt-lstm"}, 'evqa has no decoder "uatt-lstm"'),
    ],
)
def test_what_is_unknown_is_said_with_its_name(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        settings(*given.pop("assignments", ()), **given)


@pytest.mark.parametrize("text", ["hidden", "=3", "model.=3"])
def test_what_sets_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="sets nothing"):
        parse_assignments([text])


def test_a_value_may_hold_the_sign_that_sets_it() -> None:
    assert parse_assignments(['words.kind = "bert"', "model.note=a=b", "training.epochs=3"]) == {
        "words": {"kind": "bert"},
        "model": {"note": "a=b"},
        "training": {"epochs": 3},
    }


def test_a_file_that_is_no_toml_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("[model\n")
    (tmp_path / "deep.toml").write_text(f"a = {'[' * 500}{']' * 500}")
    for name in ("bad.toml", "deep.toml", "missing.toml"):
        with pytest.raises(InputError, match="cannot be read as settings"):
            read_tables(tmp_path / name)


def test_tables_are_laid_over_one_another() -> None:
    assert merge([{"a": {"b": 1, "c": 2}}, {"a": {"c": 3}, "d": 4}]) == {"a": {"b": 1, "c": 3}, "d": 4}


@pytest.mark.parametrize("tables", [[{"a": {"b": {"c": 1}}}, {"a": {"b": 2}}], [{"a": {"b": 2}}, {"a": {"b": {"c": 1}}}]])
def test_a_value_is_no_table(tables: list[dict[str, Any]]) -> None:
    with pytest.raises(UsageError, match=r"^a\.b is a table of settings\. Write --set a\.b\.NAME=VALUE"):
        merge(tables)


def test_a_pipe_in_the_place_of_settings_holds_nothing_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "hga.toml")
    with pytest.raises(InputError, match="cannot be read as settings"):
        read_tables(tmp_path / "hga.toml")


def test_the_hash_is_the_same_whatever_the_order_of_options() -> None:
    found = settings()
    turned = found.model_copy(update={"options": dict(reversed(list(found.options.items())))})
    assert list(turned.options) != list(found.options)
    assert turned.sha256 == found.sha256
