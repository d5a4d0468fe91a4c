"""vip.tasks.fiber.tables: whose figure stands in which cell"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.tasks.fiber.test_statistics import result
from vip.tasks.fiber.tables import fiber_tables, published, published_cell
from vip.tasks.records import Score, TaskResult
from vip.tasks.table import Table


def of(name: str, f1: float | None, exact: float | None, **changed: Any) -> TaskResult:
    """A result; None: the metric has no value."""
    plain = result(name, 0.0, 0.0)
    metrics = {
        key: score.model_copy(update={"value": value}) for (key, score), value in zip(plain.metrics.items(), (f1, exact), strict=True)
    }
    return plain.model_copy(update={"metrics": metrics, **changed})


def rows_of(table: Table) -> dict[str, list[str]]:
    return {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}


def best_of(table: Table) -> set[tuple[str, str]]:
    return {(row[0].text, table.columns[place]) for row in table.rows for place, cell in enumerate(row) if cell.is_best}


def test_every_row_is_as_long_as_the_columns_whatever_one_adds() -> None:
    for results in ([], [of("a", 1, 2)], [of("a", 1, 2), of("b", 3, 4, engine="m beams:3")]):
        for table in fiber_tables(results):
            assert {len(row) for row in table.rows} == {len(table.columns)}, table.title


@pytest.mark.parametrize(
    ("table", "row", "column", "text", "number"),
    [
        (3, "T5 fine-tuned", "val F1", "73.8", 73.8),
        (3, "new humans (200 val captions)", "test EM", "–", None),
        (3, "nobody", "val F1", "–", None),
        (4, "Person", "size %", "33.4", 33.4),
        (99, "Person", "size %", "–", None),
    ],
)
def test_a_cell_of_the_paper_has_its_number_or_a_dash(table: int, row: str, column: str, text: str, number: float | None) -> None:
    cell = published_cell(table, row, column)
    assert (cell.text, cell.number) == (text, number)


def test_a_mean_with_its_deviation_is_printed_and_is_no_number() -> None:
    spreads = [(row, column, text) for row, cells in published(1).items() for column, text in cells.items() if "±" in text]
    assert spreads
    for row, column, text in spreads:
        assert (published_cell(1, row, column).text, published_cell(1, row, column).number) == (text, None)


def test_results_of_other_tasks_are_left_out_and_do_not_change_a_name() -> None:
    other = [of("p", 99, 99, task="infilling-2", engine="gpt")] * 2
    main = fiber_tables([*other, of("mine.jsonl", 60, 50, engine="gpt")])[0]
    assert list(rows_of(main))[9:] == ["gpt"]
    assert "gpt: 7 blanks" in main.notes[0]
    assert len(main.notes) == 1


def test_a_value_of_0_is_a_figure_and_one_that_is_not_there_a_dash() -> None:
    main, _, _, sizes = fiber_tables([of("zero", 0.0, 0.0), of("none", None, None), of("some", 10, 20, metrics={})])
    assert {name: row[-2:] for name, row in rows_of(main).items() if name in ("zero", "none", "some")} == {
        "zero": ["0.0", "0.0"],
        "none": ["–", "–"],
        "some": ["–", "–"],
    }
    assert rows_of(sizes)["zero"] == ["0.0", "0.0"]
    assert rows_of(sizes)["some"] == ["–", "–"]


def test_exact_match_stands_before_f1_in_tables_3_and_6() -> None:
    main, _, _, sizes = fiber_tables([of("mine", 81.25, 70.06)])
    assert main.columns == ("Method", "val EM", "val F1", "test EM", "test F1", "yours EM", "yours F1")
    assert rows_of(main)["mine"] == ["–", "–", "–", "–", "70.1", "81.2"]
    assert rows_of(main)["T5 fine-tuned"] == ["58.0", "73.8", "54.5", "70.9", "–", "–"]
    assert rows_of(sizes)["mine"] == ["70.1", "81.2"]
    assert (main.rows[-1][5].number, main.rows[-1][6].number) == (70.06, 81.25), "unrounded"


def test_the_best_model_is_marked_in_each_column_of_the_paper_and_no_person() -> None:
    columns = {("T5 + I3D", column) for column in ("val EM", "val F1", "test EM", "test F1")}
    assert best_of(fiber_tables([])[0]) == columns
    assert best_of(fiber_tables([of("mine", 99, 99)])[0]) == columns, "a single one is the best of nothing"
    two = [of("a", 60.04, 50), of("b", 60.01, 40)]
    assert best_of(fiber_tables(two)[0]) == columns | {("a", "yours EM")}, "F1 is the same as it is shown"
    others = [of("a", 60, 50), of("b", 70, 40)]
    assert best_of(fiber_tables(others)[0]) == columns | {("a", "yours EM"), ("b", "yours F1")}


def test_each_result_has_its_own_column_of_categories_in_the_order_given() -> None:
    def with_categories(name: str, **values: float) -> TaskResult:
        return result(name, 1.0, 2.0, **values)

    results = [with_categories("b", PERSON=90.0, passive_Entity=0.0), with_categories("a", Person=40.04), of("c", 1, 2)]
    categories = fiber_tables(results)[1]
    assert categories.columns == ("Category", "size %", "F1 T5 zero-shot", "F1 T5 fine-tuned", "F1 T5 + I3D", "b", "a", "c")
    rows = rows_of(categories)
    assert rows["Person"] == ["33.4", "37.0", "81.8", "83.2", "90.0", "40.0", "–"]
    assert rows["Passive entity"] == ["40.4", "52.9", "63.6", "63.6", "0.0", "–", "–"]
    assert rows["Location"][-3:] == ["–"] * 3


def test_categories_are_those_of_f1_and_of_the_grouping_category() -> None:
    group = {"x": Score(value=5.0, value_answered=5.0, n=1, signature="s")}
    plain = of("a", 1, 2)
    wrong = plain.metrics["exact-match"].model_copy(update={"groups": {"category": {"Person": group["x"]}}})
    other = plain.metrics["token-f1"].model_copy(update={"groups": {"domain": {"Person": group["x"]}}})
    table = fiber_tables([plain.model_copy(update={"metrics": {"token-f1": other, "exact-match": wrong}})])[1]
    assert rows_of(table)["Person"][-1] == "–"


@pytest.mark.parametrize(
    ("engines", "columns", "rows"),
    [
        (["m beams:2"], ("1", "2", "4", "8"), {"m": ["–", "50.0", "–", "–"]}),
        (["m beams:16", "m beams:1"], ("1", "2", "4", "8", "16"), {"m": ["51.0", "–", "–", "–", "50.0"]}),
        (["m beams:3", "n beams:3"], ("1", "2", "3", "4", "8"), {"m": ["–", "–", "50.0", "–", "–"], "n": ["–", "–", "51.0", "–", "–"]}),
        (["m beams:4 p:1", "m beams:8 p:2"], ("1", "2", "4", "8"), {"m p:1": ["–", "–", "50.0", "–"], "m p:2": ["–", "–", "–", "51.0"]}),
        ([None, "m", "m beams:", "m beams:x", "m beams:4x", "m beams:12345", "mbeams:4"], ("1", "2", "4", "8"), {}),
    ],
)
def test_models_that_name_their_beams_have_a_row_and_a_column_of_their_own(
    engines: Sequence[str | None], columns: tuple[str, ...], rows: dict[str, list[str]]
) -> None:
    table = fiber_tables([of(f"f{number}", 50.0 + number, 1, engine=engine) for number, engine in enumerate(engines)])[2]
    assert table.columns == ("Method", *columns)
    assert {name: row for name, row in rows_of(table).items() if name not in published(5)} == rows
    assert list(rows_of(table))[:3] == list(published(5))


def test_notes_name_the_blanks_of_each_and_without_results_the_paper() -> None:
    assert fiber_tables([])[0].notes == ("All rows are as published.",)
    some = fiber_tables([of("a", 1, 2, n=12345), of("b", 1, 2)])[0]
    assert some.notes == ("Yours are on your own samples (a: 12,345 blanks, b: 7 blanks), against label and answers, normalised.",)
