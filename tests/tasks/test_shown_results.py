"""What is shown of a result that names more metrics and groups than people read."""

from __future__ import annotations

import pytest

from tests.tasks.scoring import result, score_of
from vip.tasks import shown_results
from vip.tasks.records import Score, TaskResult
from vip.tasks.score_files import Scores
from vip.tasks.score_output import all_tables, as_json_row
from vip.tasks.shown_results import MOST_GROUPINGS, MOST_GROUPS, MOST_LETTERS, MOST_METRICS, numbered_groups, shown_result


def of_groups(groups: dict[str, dict[str, Score]]) -> TaskResult:
    return result("infilling-1", "mine", metrics={"rouge-l": score_of(15.0, groups=groups, notes=("Its own.",))})


def test_a_result_whose_metrics_and_groups_are_few_is_shown_as_it_is() -> None:
    groups = {f"g{place}": {f"a{group}": score_of(1.0) for group in range(MOST_GROUPS)} for place in range(MOST_GROUPINGS)}
    metrics = {f"m{place}": score_of(1.0, groups=groups if place == 0 else {}) for place in range(MOST_METRICS)}
    one = result("infilling-1", "x" * (MOST_LETTERS - len(".jsonl")), metrics=metrics)
    assert shown_result(one) is one


def test_of_many_groups_the_largest_are_shown_in_their_order_and_a_note_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_results, "MOST_GROUPS", 2)
    whole = of_groups({"domain": {"a": score_of(1.0, n=3), "b": score_of(2.0, n=1), "c": score_of(3.0, n=3), "d": score_of(4.0, n=2)}})
    shown = shown_result(whole)
    assert numbered_groups(shown) == {"domain": {"a": 1, "c": 2}}
    said = "mine.jsonl: shown are the largest 2 of 4 groups of domain. result.json has all."
    assert shown.metrics["rouge-l"].notes == ("Its own.", said)
    assert len(as_json_row(whole)["metrics"]["rouge-l"]["groups"]["domain"]) == 4
    assert whole.metrics["rouge-l"].notes == ("Its own.",)


def test_of_many_groupings_metrics_and_parts_the_first_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOST_GROUPINGS", "MOST_METRICS", "MOST_PARTS"):
        monkeypatch.setattr(shown_results, name, 1)
    groups = {"x": {"a": score_of(1.0)}, "y": {"a": score_of(1.0)}}
    metrics = {"m": score_of(1.0, groups=groups, parts={"p": score_of(1.0), "q": score_of(1.0)}), "n": score_of(1.0)}
    shown = shown_result(result("infilling-1", "mine", metrics=metrics))
    assert list(shown.metrics) == ["m"]
    score = shown.metrics["m"]
    assert (list(score.groups), list(score.parts)) == (["x"], ["p"])
    (note,) = score.notes
    assert "the first 1 of 2 metrics, the first 1 of 2 groupings, the first 1 of 2 parts of m." in note


def test_a_result_of_thousands_of_metrics_and_groups_has_tables_of_bounded_size() -> None:
    groups = {f"g{place}": {"a": score_of(1.0), "b": score_of(2.0)} for place in range(2000)}
    groups["g0"] = {str(place): score_of(1.0) for place in range(20_000)}
    metrics = {"m": score_of(1.0, groups=groups)} | {f"m{place}": score_of(1.0, groups={"g0": {}}) for place in range(5000)}
    tables = all_tables(Scores((), (result("infilling-1", "mine", metrics=metrics),)))
    assert len(tables) == 1 + MOST_GROUPINGS
    assert max(len(table.columns) for table in tables) <= 3 + MOST_METRICS
    assert max(len(table.rows) for table in tables) == MOST_GROUPS


def test_long_names_do_not_stand_in_each_title() -> None:
    long = "x" * 100_000
    one = result("infilling-1", long, representation=long, budget={"frames": 1, "chosen": long})
    shown = shown_result(one)
    assert shown.budget is not None
    assert max(map(len, (shown.name, shown.engine or "", shown.label, shown.budget.label))) < MOST_LETTERS + 50
    assert (shown.samples_sha256, shown.predictions_sha256, shown.n) == (one.samples_sha256, one.predictions_sha256, one.n)


def test_groups_that_some_metrics_lack_are_numbered_over_all() -> None:
    metrics = {"m": score_of(1.0, groups={"x": {"a": score_of(1.0)}}), "n": score_of(1.0, groups={"x": {"b": score_of(1.0)}, "y": {}})}
    assert numbered_groups(result("infilling-1", "mine", metrics=metrics)) == {"x": {"a": 1, "b": 2}, "y": {}}
