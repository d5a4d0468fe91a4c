"""The curve of the score over the frame budget: what more frames are worth, and what choosing them well is worth.

In: results of one task and engine with several budgets. Out: one chart a metric, with a line for each way of choosing frames.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from vip.html.charts import AXIS_Y, HEIGHT_PX, Chart, Scale, dot, draw, polyline, value_axis
from vip.html.markup import join, percent, tag
from vip.tasks.records import Score, TaskResult
from vip.tasks.score_tables import metric_name
from vip.tasks.table import Table, TableCell, number_cell

KINDS = ("kept", "", "bad")
MOST_WAYS, MOST_BUDGETS = 20, 50
"""Ways of choosing frames, and numbers of frames, of one curve: those of more files are left out, the last first."""
Points = dict[str, dict[int, Score]]
"""Way of choosing -> frames -> score."""


def budget_points(results: Sequence[TaskResult]) -> dict[tuple[str, str, str], Points]:
    """Return the scores over the number of frames, by task, engine and metric; those with fewer than two numbers are left out."""
    found: dict[tuple[str, str, str], Points] = {}
    for result in results:
        if result.budget is None or result.budget.frames is None:
            continue
        for name, score in result.metrics.items():
            points = found.setdefault((result.task, result.engine or "", name), {})
            chosen, frames = result.budget.chosen or "frames", result.budget.frames
            if chosen not in points and len(points) >= MOST_WAYS:
                continue
            some = points.setdefault(chosen, {})
            if frames in some or len(some) < MOST_BUDGETS:
                some[frames] = score
    return {key: points for key, points in found.items() if len({frames for some in points.values() for frames in some}) > 1}


def budget_curves(results: Sequence[TaskResult]) -> list[Chart]:
    """Return one chart for each task, engine and metric with several budgets."""
    return [
        Chart(
            f"{metric_name(metric)} over the frame budget",
            " ".join((f"{task}{f', {engine}' if engine else ''}. {_legend(points)} Bars: 95 % interval.", *_bound_notes(points))),
            _curve(points, f"{metric_name(metric)} of {task} over the number of frames"),
        )
        for (task, engine, metric), points in budget_points(results).items()
    ]


def budget_tables(results: Sequence[TaskResult]) -> list[Table]:
    """Return the same as tables: one row a number of frames, one column a way of choosing."""
    tables = []
    for (task, engine, metric), points in budget_points(results).items():
        rows = [
            (TableCell(str(frames), frames), *(number_cell(some[frames].value if frames in some else None) for some in points.values()))
            for frames in _frames(points)
        ]
        title = f"{metric_name(metric)} of {task} over the frame budget{f', {engine}' if engine else ''}"
        tables.append(Table(title=title, columns=("Frames", *points), rows=tuple(rows), notes=_bound_notes(points)))
    return tables


def _bound_notes(points: Points) -> tuple[str, ...]:
    """Return what may be left out, of a curve that is as large as one may be."""
    if len(points) < MOST_WAYS and all(len(some) < MOST_BUDGETS for some in points.values()):
        return ()
    return (f"At most {MOST_WAYS} ways of choosing frames and {MOST_BUDGETS} numbers of frames of each are shown.",)


def _frames(points: Points) -> list[int]:
    return sorted({frames for some in points.values() for frames in some})


def _legend(points: Points) -> str:
    colours = ("blue", "grey", "red")
    return " ".join(f"{name}: {colours[index % 3]}." for index, name in enumerate(points)) if len(points) > 1 else ""


def _curve(points: Points, label: str) -> Markup:
    """Return the lines; numbers of frames stand at equal distances, as they are doubled from one to the next."""
    frames = _frames(points)
    scores = [score for some in points.values() for score in some.values()]
    ends = [end for score in scores for end in (score.low, score.value, score.high) if end is not None]
    scale = Scale.enclosing(min(ends), max(ends)) if ends else Scale((0.0, 1.0))
    places = {number: 100 * (index + 0.5) / len(frames) for index, number in enumerate(frames)}
    parts = [value_axis(scale)]
    parts += [tag("text", str(number), x=percent(place), y=AXIS_Y, text_anchor="middle") for number, place in places.items()]
    parts = [parts[0], tag("g", *parts[1:], class_="axis")]
    for index, (name, some) in enumerate(points.items()):
        known = [(number, score, score.value) for number, score in sorted(some.items()) if score.value is not None]
        parts.append(polyline((places[number], scale.y(value)) for number, _, value in known))
        parts += [_bar(score, places[number], scale) for number, score, _ in known]
        kind = KINDS[index % len(KINDS)]
        parts += [
            dot(f"{name}, {number} frames: {value:.2f}", kind, places[number], scale.y(value), radius_px=4.5) for number, _, value in known
        ]
    return draw(join(parts), height_px=HEIGHT_PX, label=label)


def _bar(score: Score, place: float, scale: Scale) -> Markup:
    if score.low is None or score.high is None:
        return Markup()
    return tag("line", class_="interval", x1=percent(place), x2=percent(place), y1=scale.y(score.low), y2=scale.y(score.high))
