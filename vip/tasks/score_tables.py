"""The tables of `vip score`: one row a file, one a group, one a comparison. Every score stands beside its frame budget.

Results are those that are shown (`shown_result`): somebody else's name any number of metrics and groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from vip.tasks.comparison import Difference
from vip.tasks.records import JudgeCalibration, Score, TaskResult
from vip.tasks.shown_results import numbered_groups
from vip.tasks.table import Table, TableCell, mark_best, number_cell
from vip.untrusted import shorten
from vip.wording import counted

NAME_COLUMNS = ("Predictions", "Shown to the model")
MOST_COLUMNS = 100
"""Metrics, or parts of one, in a table of several results."""
MOST_NAME_LETTERS = 300
"""Of a metric or a grouping, which stand in many tables."""
METRIC_NAMES = {"rouge-l": "ROUGE-L", "bert-score": "BERTScore", "sentence-bert": "SentenceBERT"}


def metric_name(name: str) -> str:
    """Return the name of a metric as papers write it."""
    return shorten(METRIC_NAMES.get(name, name), MOST_NAME_LETTERS)


def budget_label(result: TaskResult) -> str:
    """Return what stands in the name of a score: `8 frames, vip algorithm1`."""
    return result.budget.label if result.budget else "frames not stated"


def result_labels(results: Sequence[TaskResult]) -> list[str]:
    """Return a name for each result: the engine where that tells those of one task apart, else the file, else both numbered."""
    for names in ([result.engine or result.name for result in results], [result.name for result in results]):
        if len({(name, result.label) for name, result in zip(names, results, strict=True)}) == len(names):
            return names
    return [f"{result.name} ({number})" for number, result in enumerate(results, 1)]


def score_cell(score: Score, *, link: str = "") -> TableCell:
    """Return a value with half the width of its 95 % interval."""
    if score.value is None:
        return number_cell(None, link=link)
    if score.low is None or score.high is None:
        return TableCell(f"{score.value:.2f}", score.value, link=link)
    half = score.high / 2 - score.low / 2
    return TableCell(f"{score.value:.2f} ± {half:.2f}", score.value, link=link)


def p_cell(value: float | None) -> TableCell:
    """Return a p value as it is printed."""
    return TableCell("< 0.0001", value) if value is not None and value < 0.0001 else number_cell(value, digits=4)


def score_tables(results: Sequence[TaskResult]) -> list[Table]:
    """Return, for each task, one row a file and one column a metric; and a table of the parts of each metric that has some."""
    by_task: dict[str, list[NamedResult]] = {}
    for number, (result, label) in enumerate(zip(results, result_labels(results), strict=True), 1):
        by_task.setdefault(result.label, []).append(NamedResult(number, result, label))
    tables = []
    for task, rows in by_task.items():
        tables.append(_whole_table(task, rows))
        tables += _part_tables(task, rows)
    return tables


class NamedResult(NamedTuple):
    """A result as tables name it."""

    number: int
    """Counted from 1 over all results: its anchor on the page."""
    result: TaskResult
    label: str

    @property
    def names(self) -> list[TableCell]:
        return [TableCell(self.label), TableCell(budget_label(self.result))]

    def cell(self, score: Score | None) -> TableCell:
        return number_cell(None) if score is None else score_cell(score, link=f"#{sample_anchor(self.number)}")


def _whole_table(task: str, rows: Sequence[NamedResult]) -> Table:
    metrics, left_out = _first(name for row in rows for name in row.result.metrics)
    apart = [name for name in metrics if any(_is_apart(row.result.metrics.get(name)) for row in rows)]
    columns = [*NAME_COLUMNS]
    cells = [row.names for row in rows]
    for name in metrics:
        columns.append(metric_name(name))
        scores = [row.result.metrics.get(name) for row in rows]
        for done, row, score in zip(cells, rows, scores, strict=True):
            done.append(row.cell(score))
        cells = mark_best(cells, len(columns) - 1)
        if name in apart:
            columns.append(f"{metric_name(name)}, answered alone")
            for done, score in zip(cells, scores, strict=True):
                done.append(number_cell(None if score is None else score.value_answered))
    for done, row in zip(cells, rows, strict=True):
        done.append(TableCell(f"{row.result.n:,}", row.result.n))
    notes = _notes([row.result for row in rows], [row.label for row in rows])
    if any(cell.is_best for row in cells for cell in row):
        notes.insert(1, "Marked: the best of each column.")
    notes += _left_out_notes(left_out, "metric")
    return Table(title=f"Scores × 100: {task}", columns=(*columns, "Samples"), rows=tuple(map(tuple, cells)), notes=tuple(notes), labels=2)


def _first(names: Iterable[str]) -> tuple[list[str], int]:
    """Return the first names of several results, and how many more there are."""
    every = list(dict.fromkeys(names))
    return every[:MOST_COLUMNS], max(0, len(every) - MOST_COLUMNS)


def _left_out_notes(count: int, noun: str) -> list[str]:
    return [f"{counted(count, noun)} more of these files not shown: score fewer files at a time."] if count else []


def _is_apart(score: Score | None) -> bool:
    return score is not None and score.value_answered != score.value


def _part_tables(task: str, rows: Sequence[NamedResult]) -> list[Table]:
    """Return, for each metric with parts, one row a file and one column a part."""
    tables = []
    for name in _first(name for row in rows for name, score in row.result.metrics.items() if score.parts)[0]:
        scores = [(row, row.result.metrics[name]) for row in rows if name in row.result.metrics]
        parts, left_out = _first(part for _, score in scores for part in score.parts)
        cells = [[*row.names, *(row.cell(score.parts.get(part)) for part in parts)] for row, score in scores]
        for column in range(len(NAME_COLUMNS), len(NAME_COLUMNS) + len(parts)):
            cells = mark_best(cells, column)
        title = f"Parts of {metric_name(name)} × 100: {task}"
        notes = tuple(_left_out_notes(left_out, "part"))
        tables.append(Table(title=title, columns=(*NAME_COLUMNS, *parts), rows=tuple(map(tuple, cells)), notes=notes, labels=2))
    return tables


def _notes(results: Sequence[TaskResult], labels: Sequence[str]) -> list[str]:
    notes = ["± is half the 95 % interval, clustered by video."]
    for result, label in zip(results, labels, strict=True):
        whys = dict.fromkeys(score.no_interval for score in result.metrics.values() if score.no_interval)
        notes += [f"{label}: {why}" for why in whys]
        if result.unscored:
            kinds = ", ".join(f"{number:,} {status}" for status, number in result.unscored.items())
            notes.append(
                f"{label}: {counted(sum(result.unscored.values()), 'sample')} without an answer ({kinds}) "
                f"counted as wrong, such as {', '.join(result.unscored_ids[:3])}."
            )
        for name, score in result.metrics.items():
            if score.without_value:
                notes.append(f"{label}, {name}: {counted(score.without_value, 'answer')} without a value counted as wrong.")
            if score.calibration:
                notes.append(f"{label}, {name}: {_calibration_note(score.calibration)}")
        if result.left_out:
            notes.append(f"{label}: {counted(result.left_out, 'sample')} without a prediction left out; compare with no other score.")
    return [*notes, *dict.fromkeys(note for result in results for score in result.metrics.values() for note in score.notes)]


def _calibration_note(found: JudgeCalibration) -> str:
    kappa = "not defined" if found.kappa is None else f"{found.kappa:.2f}"
    beside = f"κ {kappa}, base rate {100 * found.base_rate:.1f} %"
    told = f"agrees with people on {100 * found.agreement:.1f} % of {counted(found.labelled, 'answer')} ({beside})"
    if found.corrected is None or found.sensitivity is None or found.specificity is None:
        return f"{told}. {found.no_correction}"
    errors = f"sensitivity {found.sensitivity:.2f} and specificity {found.specificity:.2f}"
    return f"{told}. Corrected for {errors}: {found.corrected:.2f} (95 % interval {found.low:.2f} to {found.high:.2f})."


def group_tables(result: TaskResult, *, label: str, number: int = 1) -> list[Table]:
    """Return a table for each grouping of a result."""
    groups = numbered_groups(result)
    return [_group_table(result, grouping, groups[grouping], place, label, number) for place, grouping in enumerate(groups, 1)]


def _group_table(result: TaskResult, grouping: str, groups: Mapping[str, int], place: int, label: str, number: int) -> Table:
    """Return one row a group of a grouping, one column a metric."""
    by_metric = {name: score.groups[grouping] for name, score in result.metrics.items() if grouping in score.groups}
    rows = []
    for group, row in groups.items():
        scores = [members.get(group) for members in by_metric.values()]
        count, link = next(score.n for score in scores if score is not None), f"#{sample_anchor(number, place, row)}"
        cells = (number_cell(None) if score is None else score_cell(score, link=link) for score in scores)
        rows.append((TableCell(group), *cells, TableCell(f"{count:,}", count)))
    title = shorten(grouping, MOST_NAME_LETTERS)
    return Table(
        title=f"{label}: {result.label} by {title} ({budget_label(result)})",
        columns=(title.capitalize(), *map(metric_name, by_metric), "Samples"),
        rows=tuple(rows),
    )


def sample_anchor(number: int, grouping: int = 0, group: int = 0) -> str:
    """Return where the page lists the samples of a result, or of one of its groups; made of numbers, since names are other people's.

    Args:
        number: of the result; all are counted from 1.
    """
    return f"r{number}-{grouping}-{group}" if grouping else f"r{number}"


def comparison_table(differences: Sequence[Difference]) -> Table:
    """Return one row a comparison."""
    rows = []
    for one in differences:
        interval = f"{one.low:+.2f} to {one.high:+.2f}" if one.low is not None and one.high is not None else "–"
        rows.append(
            (
                TableCell(f"{one.second} against {one.first}"),
                TableCell(f"{metric_name(one.metric)} ({one.task})"),
                TableCell(f"{one.value:+.2f}", one.value, is_best=one.is_significant),
                TableCell(interval),
                p_cell(one.p_value),
                p_cell(one.p_corrected),
                number_cell(one.smallest_detectable),
            )
        )
    notes = ["Paired by sample and clustered by video; p after Holm over this table. Marked: p after Holm below 0.05."]
    notes += list(dict.fromkeys(one.no_interval for one in differences if one.no_interval))
    return Table(
        title="Differences in points",
        columns=("Predictions", "Metric", "Difference", "95 % interval", "p", "p, Holm", "Smallest detectable"),
        rows=tuple(rows),
        notes=tuple(notes),
        labels=2,
    )
