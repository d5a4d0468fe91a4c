"""Figure 4 of Xiao et al. 2021 from results: the score over the number of clips (a), and over kinds of features (b).

In: results whose parameters name `clips` and `features` (`vip score --setting clips=16,features=Res+I3D`), or that say how many frames a
model saw and by whom they were chosen. Out: tables and charts; nothing where there is only one number and one kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vip.html.bars import Bar, draw_bars, draw_lines, line_legend
from vip.html.charts import Chart
from vip.tasks.nextqa.tables import COARSE, PAPER, own_values
from vip.tasks.records import TaskResult
from vip.tasks.table import Table, TableCell, mark_best, number_cell

CLIPS, FEATURES = "clips", "features"
MOST_DIGITS = 9  # of a number of clips
GROUP_NAMES = {"C": "causal", "T": "temporal", "D": "descriptive", "all": "all"}


class FigurePoint(NamedTuple):
    """The scores of one result."""

    features: str
    """What made the features, or chose the frames."""
    clips: int | None
    """Of each video; 0 for a model that sees none; None where nobody says."""
    values: Mapping[str, float]
    """× 100, by C, T, D and all."""


def figure_points(results: Sequence[TaskResult], task: str) -> list[FigurePoint]:
    """Return the scores of results by features and clips, in their order; those that say neither, or have no groups, are left out."""
    points = []
    for result in results:
        values = own_values(result) if result.task == task else {}
        clips, features = _clips(result), _features(result)
        has_groups = len(set(COARSE) & set(values)) > 1
        if "all" in values and has_groups and (clips is not None or FEATURES in result.parameters):
            points.append(FigurePoint(features, clips, {name: values[name] for name in COARSE if name in values}))
    return points


def _clips(result: TaskResult) -> int | None:
    named = str(result.parameters.get(CLIPS, ""))
    if named.isascii() and named.isdigit() and len(named) <= MOST_DIGITS:
        return int(named)
    return result.budget.frames if result.budget else None


def _features(result: TaskResult) -> str:
    chosen = result.budget.chosen if result.budget else None
    return str(result.parameters.get(FEATURES) or chosen or result.engine or result.name)


def clip_lines(points: Sequence[FigurePoint]) -> dict[str, dict[int, Mapping[str, float]]]:
    """Return for each kind of features the scores by the number of clips; kinds with one number are left out."""
    lines: dict[str, dict[int, Mapping[str, float]]] = {}
    for point in points:
        if point.clips is not None:
            lines.setdefault(point.features, {})[point.clips] = point.values
    return {features: dict(sorted(line.items())) for features, line in lines.items() if len(line) > 1}


def feature_rows(points: Sequence[FigurePoint]) -> list[FigurePoint]:
    """Return the points of the number of clips that most kinds of features have, the largest of equal ones; none for one kind."""
    by_clips: dict[int | None, dict[str, FigurePoint]] = {}
    for point in points:
        by_clips.setdefault(point.clips, {})[point.features] = point
    best = max(by_clips, key=lambda clips: (len(by_clips[clips]), -1 if clips is None else clips), default=None)
    rows = list(by_clips.get(best, {}).values())
    return rows if len(rows) > 1 else []


def figure_tables(results: Sequence[TaskResult], task: str) -> list[Table]:
    """Return the points of Figure 4 as tables."""
    points, tables = figure_points(results, task), list[Table]()
    if lines := clip_lines(points):
        counts = sorted({clips for line in lines.values() for clips in line})
        rows = [
            (TableCell(features), TableCell(name), *(number_cell(line.get(clips, {}).get(name)) for clips in counts))
            for features, line in lines.items()
            for name in COARSE
        ]
        title = f"{task} by number of clips or frames (Figure 4 (a) of {PAPER})"
        tables.append(Table(title=title, columns=("Features", "Questions", *map(str, counts)), rows=tuple(rows), labels=2))
    if kinds := feature_rows(points):
        cells = [[TableCell(one.features), *(number_cell(one.values.get(name)) for name in COARSE)] for one in kinds]
        for column in range(1, 1 + len(COARSE)):
            cells = mark_best(cells, column)
        title = f"{task} by features{_at(kinds[0].clips)} (Figure 4 (b) of {PAPER})"
        tables.append(Table(title=title, columns=("Features", "C", "T", "D", "All"), rows=tuple(map(tuple, cells))))
    return tables


def figure_charts(results: Sequence[TaskResult], task: str) -> list[Chart]:
    """Return Figure 4 as charts."""
    points, charts = figure_points(results, task), list[Chart]()
    for features, line in clip_lines(points).items():
        by_group = {GROUP_NAMES[name]: {clips: values[name] for clips, values in line.items() if name in values} for name in COARSE}
        by_group = {name: some for name, some in by_group.items() if some}
        title = f"{task} over the number of clips or frames, {features}"
        charts.append(Chart(title, f"Figure 4 (a). {line_legend(list(by_group))}", draw_lines(by_group, title, is_count=False)))
    if kinds := feature_rows(points):
        title = f"{task} by features{_at(kinds[0].clips)}"
        bars = [
            Bar(f"{GROUP_NAMES[name]}, {one.features}", one.values[name], f"{one.values[name]:.2f}", int(place > 0))
            for name in COARSE
            for place, one in enumerate(kinds)
            if name in one.values
        ]
        charts.append(Chart(title, "Figure 4 (b).", draw_bars(bars, title)))
    return charts


def _at(clips: int | None) -> str:
    return "" if clips is None else f", {clips} clips or frames"
