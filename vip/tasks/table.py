"""Tables for people and programs: one record, written as text, Markdown, LaTeX, CSV or JSON.

A cell is a text with what is to be marked: the best value of a column is bold on a terminal and on pages, underlined in LaTeX (as the
papers do) and bold in Markdown. Numbers of cells are kept unrounded for CSV and JSON.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from vip.untrusted import one_line, printable_json, shorten

TableFormat = Literal["text", "markdown", "latex", "csv", "json"]
FORMATS: tuple[TableFormat, ...] = ("text", "markdown", "latex", "csv", "json")
MOST_LETTERS = 300  # of a cell

_LATEX = {
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "±": "$\\pm$",
    "−": "$-$",
    "≤": "$\\le$",
    "×": "$\\times$",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
}
_MARKDOWN = {**{letter: f"\\{letter}" for letter in "\\`*_[]<>|#"}, "&": "&amp;"}


@dataclass(frozen=True, slots=True)
class TableCell:
    """A cell: a text, the number that it shows, and whether it is the best of its kind."""

    text: str = ""
    number: float | None = None
    is_best: bool = False
    link: str = ""
    """An anchor on the page with the samples that the figure is made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table with a title and notes."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    notes: tuple[str, ...] = ()
    labels: int = field(default=1)
    """So many columns at the left are names; the others are numbers and stand at the right."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"expected {len(self.columns)} cells, got {len(row)}")


def number_cell(value: float | None, *, digits: int = 2, link: str = "") -> TableCell:
    """Return the cell of a number; `–` where there is none."""
    return TableCell("–", None, link=link) if value is None else TableCell(f"{value:.{digits}f}", value, link=link)


def mark_best(rows: Sequence[Sequence[TableCell]], column: int, members: Sequence[int] | None = None) -> list[list[TableCell]]:
    """Return the rows with the largest number of a column marked, as it is shown: equal ones are all best, unless all are equal.

    Args:
        members: the rows that are held against each other; None: all.
    """
    chosen = range(len(rows)) if members is None else members
    shown = {row: _shown(rows[row][column]) for row in chosen if rows[row][column].number is not None}
    done = [list(row) for row in rows]
    if len(set(shown.values())) > 1:
        top = max(shown.values())
        for row, value in shown.items():
            if value == top:
                cell = rows[row][column]
                done[row][column] = TableCell(cell.text, cell.number, is_best=True, link=cell.link)
    return done


def _shown(cell: TableCell) -> float:
    try:
        return float(cell.text.split()[0])
    except (ValueError, IndexError):
        return cell.number or 0.0


def render(table: Table, form: TableFormat) -> str:
    """Return a table as text that ends without a line break."""
    writers: dict[TableFormat, Callable[[Table], str]] = {
        "text": _text,
        "markdown": _markdown,
        "latex": _latex,
        "csv": _csv,
        "json": _json,
    }
    return writers[form](_shortened(table))


def _shortened(table: Table) -> Table:
    """Return the table without the rest of long texts: names of engines, groups and files may be of somebody else."""
    return replace(
        table,
        columns=tuple(shorten(name, MOST_LETTERS) for name in table.columns),
        rows=tuple(tuple(replace(cell, text=shorten(cell.text, MOST_LETTERS)) for cell in row) for row in table.rows),
    )


def _text(table: Table) -> str:
    """Return columns of one width; the best values have an asterisk."""
    body = [list(map(one_line, table.columns))]
    body += [[one_line(cell.text) + ("*" if cell.is_best else "") for cell in row] for row in table.rows]
    widths = [max(len(row[column]) for row in body) for column in range(len(table.columns))]
    lines = [one_line(table.title)]
    for row in body:
        cells = [
            text.ljust(width) if column < table.labels else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join([*lines, *map(one_line, table.notes)])


def _markdown(table: Table) -> str:
    def row(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cells)} |"

    lines = [f"**{_escaped(table.title, _MARKDOWN)}**", "", row([_escaped(name, _MARKDOWN) for name in table.columns])]
    lines.append(row(["---" if column < table.labels else "--:" for column in range(len(table.columns))]))
    for cells in table.rows:
        texts = [_escaped(cell.text, _MARKDOWN) for cell in cells]
        lines.append(row([f"**{text}**" if cell.is_best else text for cell, text in zip(cells, texts, strict=True)]))
    notes = [line for note in table.notes for line in ("", _escaped(note, _MARKDOWN))]
    return "\n".join([*lines, *notes])


def _latex(table: Table) -> str:
    """Return a table for the package booktabs."""
    columns = "l" * table.labels + "r" * (len(table.columns) - table.labels)
    lines = ["\\begin{table}", "\\centering", f"\\begin{{tabular}}{{{columns}}}", "\\toprule"]
    lines += [" & ".join(_escaped(name, _LATEX) for name in table.columns) + " \\\\", "\\midrule"]
    for cells in table.rows:
        texts = [_escaped(cell.text, _LATEX) for cell in cells]
        texts = [f"\\underline{{{text}}}" if cell.is_best else text for cell, text in zip(cells, texts, strict=True)]
        lines.append(" & ".join(texts) + " \\\\")
    caption = " ".join([table.title if table.title.endswith(".") else f"{table.title}.", *table.notes])
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", f"\\caption{{{_escaped(caption, _LATEX)}}}", "\\end{table}"])


def _csv(table: Table) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(_no_formula, table.columns))
    for row in table.rows:
        writer.writerow([_of_spreadsheet(cell) for cell in row])
    return file.getvalue().removesuffix("\n")


def _of_spreadsheet(cell: TableCell) -> str | float:
    """Return the number of a cell, or its text so that no spreadsheet takes it for a formula."""
    if cell.number is not None:
        return cell.number
    return "" if cell.text == "–" else _no_formula(cell.text)


def _no_formula(text: str) -> str:
    line = one_line(text)
    return f"'{line}" if line[:1] in ("=", "+", "-", "@") else line


def _json(table: Table) -> str:
    rows = [[_number_or_text(cell) for cell in row] for row in table.rows]
    best = [[column for column, cell in enumerate(row) if cell.is_best] for row in table.rows]
    return printable_json({"title": table.title, "columns": table.columns, "rows": rows, "best": best, "notes": table.notes})


def _number_or_text(cell: TableCell) -> float | str:
    """Return the number of a cell; its text where it has none that JSON knows."""
    return cell.number if cell.number is not None and math.isfinite(cell.number) else cell.text


def _escaped(text: str, letters: dict[str, str]) -> str:
    return "".join(letters.get(letter, letter) for letter in one_line(text))
