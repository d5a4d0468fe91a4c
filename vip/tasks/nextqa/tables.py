"""Tables 3 to 8 of Xiao et al. 2021, with one's own rows below the published ones.

In: results of nextqa-mc and nextqa-oe. Out: tables in the paper's columns and rounding. The split of a result is known by its number of
questions: a result on other questions stands in none of them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from vip.html.layout import resource
from vip.tasks.records import TaskResult
from vip.tasks.score_tables import result_labels
from vip.tasks.table import Table, TableCell, mark_best, number_cell

PAPER = "Xiao et al. 2021"
METRICS = {"nextqa-mc": "accuracy", "nextqa-oe": "wups"}
SPLITS = {("nextqa-mc", 4996): "val", ("nextqa-mc", 8564): "test", ("nextqa-oe", 5343): "val", ("nextqa-oe", 9178): "test"}
"""Task and number of questions -> split."""
CAUSAL, TEMPORAL, DESCRIPTIVE = ("CW", "CH"), ("TPN", "TC"), ("DC", "DL", "DO")
COARSE = ("C", "T", "D", "all")
FINE = (*CAUSAL, "C", *TEMPORAL, "T", *DESCRIPTIVE, "D", "all")
GROUPING = "type"


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table of the paper."""

    number: int
    task: str
    split: str
    about: str
    columns: tuple[str, ...]


TABLES = (
    PaperTable(3, "nextqa-mc", "val", "Baselines and people, accuracy on the validation set", COARSE),
    PaperTable(4, "nextqa-mc", "val", "Accuracy on the validation set", FINE),
    PaperTable(5, "nextqa-mc", "test", "Accuracy on the test set", COARSE),
    PaperTable(6, "nextqa-oe", "val", "WUPS on the validation set", COARSE),
    PaperTable(7, "nextqa-oe", "test", "WUPS on the test set", COARSE),
    PaperTable(8, "nextqa-oe", "val", "Answer decoders, WUPS on the validation set", COARSE),
)


class _Row(NamedTuple):
    """A method with its values × 100 by column."""

    name: str
    text: str
    values: dict[str, float]


def nextqa_tables(results: Sequence[TaskResult], task: str) -> list[Table]:
    """Return the paper's tables of a task, each with the results of its split; results of other tasks are left out."""
    some = [result for result in results if result.task == task]
    own = list(zip(result_labels(some), some, strict=True))
    return [_table(table, own) for table in TABLES if table.task == task]


@cache
def published(number: int) -> tuple[_Row, ...]:
    """Return the rows that the paper prints in a table."""
    rows = csv.DictReader(io.StringIO(resource("published/nextqa.csv", "vip.tasks")))
    return tuple(
        _Row(row["method"], row["text"], {name: float(row[name]) for name in FINE if row[name]})
        for row in rows
        if int(row["table"]) == number
    )


def _table(table: PaperTable, own: Sequence[tuple[str, TaskResult]]) -> Table:
    mine = [_Row(label, "", own_values(result)) for label, result in own if SPLITS.get((table.task, result.n)) == table.split]
    theirs = published(table.number)
    rows = [
        [TableCell(row.name), TableCell(row.text), *(number_cell(row.values.get(name)) for name in table.columns)]
        for row in [*theirs, *mine]
    ]
    for column in range(2, 2 + len(table.columns)):
        rows = mark_best(rows, column, [number for number, row in enumerate([*theirs, *mine]) if row.name != "Human"])
    elsewhere = [label for label, result in own if (table.task, result.n) not in SPLITS]
    notes = [f"The first {len(theirs)} rows are as published; D is the mean over all descriptive questions."]
    notes += [f"{', '.join(elsewhere)}: on other questions than the published splits, and in no table."] if elsewhere else []
    return Table(
        title=f"{table.about} (Table {table.number} of {PAPER})",
        columns=("Method", "Text", *(name.capitalize() if name == "all" else name for name in table.columns)),
        rows=tuple(map(tuple, rows)),
        notes=tuple(notes),
        labels=2,
    )


def own_values(result: TaskResult) -> dict[str, float]:
    """Return the value of a result, × 100, in each column of the paper that it has: micro averages."""
    score = result.metrics.get(METRICS[result.task])
    if score is None:
        return {}
    values = {name: group.value for name, group in score.groups.get(GROUPING, {}).items()} | {"all": score.value}
    return {name: value for name, value in values.items() if value is not None and name in FINE}
