"""The tables of the paper show its rows as printed, and one's own on the same split."""

from __future__ import annotations

import csv
import math

import pytest

from tests.metrics.golden import golden
from vip.tasks.nextqa.tables import FINE, TABLES, nextqa_tables, own_values, published
from vip.tasks.records import FrameBudget, Score, TaskResult

COUNTS = {"CW": 1924, "CH": 683, "TPN": 949, "TC": 663, "DC": 177, "DL": 295, "DO": 305}


def result(task: str, n: int, value: float, engine: str = "mine", frames: int | None = None, chosen: str | None = None) -> TaskResult:
    group = Score(value=value / 2, value_answered=value / 2, n=10, signature="s")
    score = Score(value=value, value_answered=value, n=n, signature="s", groups={"type": {"C": group, "CW": group, "XX": group}})
    return TaskResult(
        task=task,
        task_version=1,
        name=f"{engine}.json",
        engine=engine,
        budget=FrameBudget(frames=frames, chosen=chosen),
        n=n,
        unscored={},
        metrics={"accuracy" if task == "nextqa-mc" else "wups": score},
        samples_sha256=None,
        predictions_sha256="0" * 64,
        versions={},
    )


@pytest.mark.parametrize("number", [3, 4, 5, 6, 7, 8])
def test_published_rows_are_those_of_the_paper(number: int) -> None:
    with golden("nextqa/tables.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["table"] == f"T{number}"]
    expected = [(row["method"], *(float(row[name]) for name in ("causal", "temporal", "descriptive", "published_overall"))) for row in rows]
    assert [(row.name, *(row.values[name] for name in ("C", "T", "D", "all"))) for row in published(number)] == expected


def test_the_columns_of_table_4_are_means_of_their_types_as_far_as_the_paper_has_no_misprint() -> None:
    faults = []
    for row in published(4):
        for group, kinds in (("C", ("CW", "CH")), ("T", ("TPN", "TC")), ("D", ("DC", "DL", "DO")), ("all", tuple(COUNTS))):
            mean = math.fsum(row.values[kind] * COUNTS[kind] for kind in kinds) / sum(COUNTS[kind] for kind in kinds)
            if abs(mean - row.values[group]) > 0.0115:
                faults.append((row.name, row.text, group))
    assert faults == [("PSAC", "GloVe", "D")]


def test_own_rows_stand_below_the_published_ones_of_their_split() -> None:
    tables = {
        table.title: table for table in nextqa_tables([result("nextqa-mc", 4996, 60.0), result("nextqa-oe", 5343, 30.0)], "nextqa-mc")
    }
    assert len(tables) == 3
    val, test = (next(table for title, table in tables.items() if f"Table {number}" in title) for number in (4, 5))
    assert val.columns == ("Method", "Text", *FINE[:-1], "All")
    assert [cell.text for cell in val.rows[-1]] == ["mine", "", "30.00", "–", "30.00", *["–"] * 7, "60.00"]
    assert val.rows[-1][-1].is_best
    assert len(val.rows) == 15
    assert [row[0].text for row in test.rows] == [row.name for row in published(5)]


def test_people_are_no_method_that_could_be_the_best() -> None:
    table = nextqa_tables([], "nextqa-mc")[0]
    best = {row[0].text for row in table.rows if any(cell.is_best for cell in row)}
    assert best == {"BlindQA"}


def test_results_on_other_questions_are_named_and_in_no_table() -> None:
    for table in nextqa_tables([result("nextqa-mc", 100, 60.0)], "nextqa-mc"):
        assert "mine" not in {row[0].text for row in table.rows}
        assert table.notes[-1] == "mine: on other questions than the published splits, and in no table."
    assert {table.task for table in TABLES} == {"nextqa-mc", "nextqa-oe"}


@pytest.mark.parametrize(
    ("task", "n", "numbers"), [("nextqa-mc", 4996, {3, 4}), ("nextqa-mc", 8564, {5}), ("nextqa-oe", 5343, {6, 8}), ("nextqa-oe", 9178, {7})]
)
def test_a_result_stands_in_the_tables_of_its_split(task: str, n: int, numbers: set[int]) -> None:
    tables = nextqa_tables([result(task, n, 60.0)], task)
    held = {int(table.title.split("(Table ")[1].split()[0]) for table in tables if "mine" in {row[0].text for row in table.rows}}
    assert held == numbers
    assert all(table.notes[-1].startswith("The first") for table in tables), "on published questions"


def test_values_of_a_result_are_those_of_its_groups_and_over_all() -> None:
    assert own_values(result("nextqa-mc", 10, 60.0)) == {"C": 30.0, "CW": 30.0, "all": 60.0}
    assert own_values(result("nextqa-mc", 10, 60.0).model_copy(update={"metrics": {}})) == {}
