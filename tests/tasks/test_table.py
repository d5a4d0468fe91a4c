"""One table in five forms."""

from __future__ import annotations

import csv
import io
import json
import math

import pytest

from vip.tasks.table import Table, TableCell, TableFormat, mark_best, number_cell, render

TABLE = Table(
    title="Scores",
    columns=("Model", "Value"),
    rows=(
        (TableCell("a_b|<x>"), number_cell(1.234)),
        (TableCell("=1+1"), TableCell("9.87 ± 0.50", 9.8712, is_best=True)),
        (TableCell("none"), number_cell(None)),
    ),
    notes=("50 % of them.",),
)


def test_text_has_columns_of_one_width_and_marks_the_best() -> None:
    assert render(TABLE, "text").splitlines() == [
        "Scores",
        "Model           Value",
        "a_b|<x>          1.23",
        "=1+1     9.87 ± 0.50*",
        "none                –",
        "50 % of them.",
    ]


def test_markdown_escapes_what_it_would_read() -> None:
    assert render(TABLE, "markdown").splitlines() == [
        "**Scores**",
        "",
        "| Model | Value |",
        "| --- | --: |",
        "| a\\_b\\|\\<x\\> | 1.23 |",
        "| =1+1 | **9.87 ± 0.50** |",
        "| none | – |",
        "",
        "50 % of them.",
    ]


def test_latex_is_for_booktabs_and_underlines_the_best() -> None:
    text = render(TABLE, "latex")
    assert "\\toprule\nModel & Value \\\\\n\\midrule" in text
    assert "a\\_b\\textbar{}\\textless{}x\\textgreater{} & 1.23 \\\\" in text
    assert "\\underline{9.87 $\\pm$ 0.50}" in text
    assert "\\caption{Scores. 50 \\% of them.}" in text
    assert text.count("{") == text.count("}")


def test_csv_keeps_numbers_whole_and_holds_no_formula() -> None:
    rows = list(csv.reader(io.StringIO(render(TABLE, "csv"))))
    assert rows == [["Model", "Value"], ["a_b|<x>", "1.234"], ["'=1+1", "9.8712"], ["none", ""]]


def test_json_keeps_numbers_whole_and_names_the_best() -> None:
    found = json.loads(render(TABLE, "json"))
    assert (found["columns"], found["rows"][1], found["best"]) == (["Model", "Value"], ["=1+1", 9.8712], [[], [1], []])


def test_terminals_get_no_escape_sequences() -> None:
    table = Table(title="t", columns=("a",), rows=((TableCell("\x1b[31mred\nline"),),))
    assert render(table, "text").splitlines() == ["t", "a", "red line"]


def test_names_of_columns_titles_and_notes_are_other_peoples_too() -> None:
    table = Table(title="\x1b[31mt\nu", columns=("=cmd|'/c calc'!A1", "\x1b[2Jb\nc"), rows=(), notes=("\x1b[1mn\nm",))
    assert render(table, "text").splitlines() == ["t u", "=cmd|'/c calc'!A1  b c", "n m"]
    assert list(csv.reader(io.StringIO(render(table, "csv")))) == [["'=cmd|'/c calc'!A1", "b c"]]


@pytest.mark.parametrize("sign", ["=", "+", "-", "@"])
def test_each_sign_that_begins_a_formula_gets_an_apostrophe(sign: str) -> None:
    table = Table(title="t", columns=("a",), rows=((TableCell(f"{sign}A1"),),))
    assert render(table, "csv").splitlines() == ["a", f"'{sign}A1"]


def test_the_best_are_those_that_look_best() -> None:
    rows = [[number_cell(value)] for value in (1.231, 1.229, 1.0, None)]
    assert [row[0].is_best for row in mark_best(rows, 0)] == [True, True, False, False]
    assert [row[0].is_best for row in mark_best(rows, 0, [1, 2])] == [False, True, False, False]
    assert not mark_best(rows[:1], 0)[0][0].is_best
    assert not any(row[0].is_best for row in mark_best(rows[:2], 0))  # both are 1.23


def test_a_row_of_another_length_is_a_bug() -> None:
    with pytest.raises(ValueError, match="expected 2 cells, got 1"):
        Table(title="t", columns=("a", "b"), rows=((TableCell(),),))


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "csv", "json"])
def test_a_long_name_of_a_stranger_does_not_fill_the_terminal(form: TableFormat) -> None:
    long = Table(title="Scores", columns=("Model", "m" * 100_000), rows=((TableCell("e" * 100_000), number_cell(1.0)),))
    text = render(long, form)
    assert len(text) < 3000
    assert "e" * 300 + "…" in text


def test_zeros_are_numbers_in_csv_and_json() -> None:
    table = Table(title="t", columns=("a", "b"), rows=((TableCell("x"), number_cell(0.0)), (TableCell("y"), number_cell(-0.5))))
    assert render(table, "csv").splitlines() == ["a,b", "x,0.0", "y,-0.5"]
    assert json.loads(render(table, "json"))["rows"] == [["x", 0.0], ["y", -0.5]]


def test_no_rows_to_hold_against_each_other_have_no_best() -> None:
    rows = [[number_cell(1.0)], [number_cell(2.0)]]
    assert not any(row[0].is_best for row in mark_best(rows, 0, []))
    assert [row[0].is_best for row in mark_best(rows, 0)] == [False, True]
    marked = mark_best([[number_cell(1.0, link="#a")], [number_cell(2.0, link="#b")]], 0)
    assert (marked[1][0].link, marked[1][0].number) == ("#b", 2.0)
    assert not any(row[0].is_best for row in mark_best([[number_cell(5.0)], [number_cell(5.0)]], 0)), "all are equal"


def test_names_stand_at_the_left_and_numbers_at_the_right_in_every_form() -> None:
    table = Table(title="t.", columns=("a", "b", "c"), rows=((TableCell("x"), TableCell("y"), number_cell(1.0)),), labels=2)
    assert "\\begin{tabular}{llr}\n" in render(table, "latex")
    assert "\\caption{t.}" in render(table, "latex")
    assert "| --- | --- | --: |" in render(table, "markdown")
    wide = Table(title="t", columns=("name", "long name", "value"), rows=((TableCell("x"), TableCell("y"), number_cell(1.0)),), labels=2)
    assert render(wide, "text").splitlines()[1:] == ["name  long name  value", "x     y           1.00"]


def test_the_best_of_numbers_that_are_shown_by_other_words_is_found_by_their_value() -> None:
    rows = [[TableCell("ten", 10.0)], [TableCell("", 9.0)], [TableCell("9.5 ± 1", 9.5)]]
    assert [row[0].is_best for row in mark_best(rows, 0)] == [True, False, False]


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_json_has_the_text_of_a_number_that_it_does_not_know(number: float) -> None:
    table = Table(title="t", columns=("a",), rows=((TableCell("∞", number),),))
    assert json.loads(render(table, "json"), parse_constant=lambda name: pytest.fail(name))["rows"] == [["∞"]]
