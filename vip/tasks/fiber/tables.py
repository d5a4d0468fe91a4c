"""Tables 3 to 6 of Castro et al. 2022, with one's own rows beside the published ones.

In: results of fiber. Out: tables in the paper's columns, × 100. Which split a result is of is not known, so one's own figures have
columns of their own. Tables 1 and 2 are about answers of people: `vip.tasks.fiber.statistics`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from functools import cache

from vip.html.layout import resource
from vip.tasks.records import TaskResult
from vip.tasks.score_tables import result_labels
from vip.tasks.table import Table, TableCell, mark_best, number_cell
from vip.wording import option

PAPER = "Castro et al. 2022"
EM, F1 = "exact-match", "token-f1"
GROUPING = "category"
HUMAN = ("leave one worker out", "new humans (200 val captions)")
MAIN = ("val EM", "val F1", "test EM", "test F1")
BEAMS = re.compile(r" beams:(\d{1,4})(?!\S)")
PUBLISHED_BEAMS = (1, 2, 4, 8)
Cells = dict[str, dict[str, str]]


@cache
def published(table: int) -> Cells:
    """Return the values of a table as the paper prints them, by row and column."""
    found: Cells = {}
    for row in csv.DictReader(io.StringIO(resource("published/fiber.csv", "vip.tasks"))):
        if int(row["table"]) == table:
            found.setdefault(row["row"], {})[row["column"]] = row["value"]
    return found


def published_cell(table: int, row: str, column: str) -> TableCell:
    """Return a value of the paper; `–` where it prints none."""
    text = published(table).get(row, {}).get(column, "")
    return TableCell(text or "–", float(text) if text and "±" not in text else None)


def fiber_tables(results: Sequence[TaskResult]) -> list[Table]:
    """Return the four tables; results of other tasks are left out."""
    some = [result for result in results if result.task == "fiber"]
    own = list(zip(result_labels(some), some, strict=True))
    return [_main(own), _categories(own), _beams(own), _sizes(own)]


def _value(result: TaskResult, metric: str, category: str | None = None) -> TableCell:
    score = result.metrics.get(metric)
    if score is not None and category is not None:
        score = {name.casefold(): one for name, one in score.groups.get(GROUPING, {}).items()}.get(category.casefold())
    return number_cell(score.value if score else None, digits=1)


def _main(own: Sequence[tuple[str, TaskResult]]) -> Table:
    rows = [[TableCell(name), *(published_cell(3, name, column) for column in MAIN), *_none(2)] for name in published(3)]
    rows += [[TableCell(label), *_none(4), _value(result, EM), _value(result, F1)] for label, result in own]
    models = [place for place, row in enumerate(rows) if row[0].text not in HUMAN]
    for column in range(1, 7):
        rows = mark_best(rows, column, models)
    return Table(
        title=f"Exact match and token F1 (Table 3 of {PAPER})",
        columns=("Method", *MAIN, "yours EM", "yours F1"),
        rows=tuple(map(tuple, rows)),
        notes=_notes(own),
    )


def _categories(own: Sequence[tuple[str, TaskResult]]) -> Table:
    columns = ("size %", "F1 T5 zero-shot", "F1 T5 fine-tuned", "F1 T5 + I3D")
    rows = [
        (
            TableCell(name),
            *(published_cell(4, name, column) for column in columns),
            *(_value(result, F1, name) for _, result in own),
        )
        for name in published(4)
    ]
    return Table(
        title=f"Token F1 by semantic category (Table 4 of {PAPER})",
        columns=("Category", *columns, *(label for label, _ in own)),
        rows=tuple(rows),
        notes=(
            "The printed sizes add up to 101.0. Your own columns need the grouping category: `vip samples` with"
            f" {option('labels', 'categories.csv')}.",
        ),
    )


def _beams(own: Sequence[tuple[str, TaskResult]]) -> Table:
    """Return Table 5; rows of models that name their beams, `… beams:4`, one for all the beams of a model."""
    mine: dict[str, dict[int, TaskResult]] = {}
    for label, result in own:
        if found := BEAMS.search(result.engine or ""):
            model = BEAMS.sub("", result.engine or "")
            name = model if int(found[1]) not in mine.get(model, {}) else label
            mine.setdefault(name, {})[int(found[1])] = result
    sizes = sorted({*PUBLISHED_BEAMS, *(size for some in mine.values() for size in some)})
    rows = [(TableCell(name), *(published_cell(5, name, f"val F1, beam {size}") for size in sizes)) for name in published(5)]
    rows += [
        (TableCell(name), *(_value(some[size], F1) if size in some else number_cell(None) for size in sizes)) for name, some in mine.items()
    ]
    return Table(
        title=f"Token F1 by beam size, validation (Table 5 of {PAPER})",
        columns=("Method", *map(str, sizes)),
        rows=tuple(rows),
        notes=(f"Yours are rows of models whose predictions name their beams: `vip predict` with {option('beams', '4')}.",),
    )


def _sizes(own: Sequence[tuple[str, TaskResult]]) -> Table:
    rows = [(TableCell(name), *(published_cell(6, name, column) for column in ("val EM", "val F1"))) for name in published(6)]
    rows += [(TableCell(label), _value(result, EM), _value(result, F1)) for label, result in own]
    return Table(
        title=f"Text alone by the size of T5, without training (Table 6 of {PAPER})", columns=("Model", "EM", "F1"), rows=tuple(rows)
    )


def _none(count: int) -> list[TableCell]:
    return [number_cell(None)] * count


def _notes(own: Sequence[tuple[str, TaskResult]]) -> tuple[str, ...]:
    sizes = ", ".join(f"{label}: {result.n:,} blanks" for label, result in own)
    return (f"Yours are on your own samples ({sizes}), against label and answers, normalised." if own else "All rows are as published.",)
