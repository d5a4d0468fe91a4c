"""The page of scores: values with their intervals, tables, the worst and the most disputed samples with pictures, answers and references.

In: `Scores`. Out: one HTML file that needs nothing else. Every figure of a table links to the samples that it is made of. All texts are
other people's: the template escapes them, and a picture is shown only from the run folders that the user names, or where its digest in the
samples fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from vip.html.axes import round_ticks
from vip.html.charts import Chart
from vip.html.layout import render_page, resource
from vip.html.markup import percent, tag
from vip.html.parts import Fact
from vip.store import replacing
from vip.tasks.budget_curve import budget_curves
from vip.tasks.page_samples import CardView, PagePictures, card_of, sample_card_anchor
from vip.tasks.records import Score, TaskResult
from vip.tasks.score import ScoredFile, group_members
from vip.tasks.score_files import Scores
from vip.tasks.score_output import answer_tables, paper_charts
from vip.tasks.score_tables import (
    MOST_NAME_LETTERS,
    NamedResult,
    budget_label,
    comparison_table,
    group_tables,
    metric_name,
    sample_anchor,
    score_tables,
)
from vip.tasks.shown_results import numbered_groups
from vip.tasks.table import Table
from vip.untrusted import shorten

LANE_PX = 26
LEAST_SPAN = 1.0
"""Points that an axis shows at least: equal values look equal."""
CARDS = 8
"""Worst samples, and as many disputed ones."""
MOST_LISTED = 50
"""Samples of one list."""


def write_page(scores: Scores, path: Path, *, runs: Sequence[Path] = ()) -> None:
    """Write the page.

    Args:
        runs: run folders that the samples were made from, for their pictures.

    Raises:
        StoreError: not writable.
    """
    view = ScoresView(scores, PagePictures(runs))
    style = resource("compare.css", "vip.report") + resource("score.css", "vip.tasks")
    text = render_page("vip.tasks", "score.html.jinja", style=style, view=view)
    with replacing(path) as file:
        file.write(text.encode())


class Lane(NamedTuple):
    """A value with its interval on the axis of its metric."""

    label: str
    link: str
    text: str
    svg: Markup


class MetricLanes(NamedTuple):
    """One metric: the values of all files on one axis."""

    title: str
    lanes: Sequence[Lane]
    axis: Markup


class ListedSample(NamedTuple):
    """A sample of a list, with its value × 100 in each metric."""

    id: str
    link: str
    """To its card; empty where it has none."""
    status: str
    values: Sequence[str]


class SampleList(NamedTuple):
    """The samples that a figure is made of, lowest first."""

    anchor: str
    title: str
    total: int
    metrics: Sequence[str]
    rows: Sequence[ListedSample]


@dataclass(frozen=True)
class ScoresView:
    """Scores, and what score.html.jinja shows of them."""

    scores: Scores
    pictures: PagePictures

    @property
    def title(self) -> str:
        tasks = dict.fromkeys(result.task for result in self.scores.results)
        return f"Scores of {', '.join(tasks)}"

    @property
    def facts(self) -> list[Fact]:
        """The figures at the top."""
        results = self.scores.shown
        budgets = dict.fromkeys(map(budget_label, results))
        without = sum(sum(result.unscored.values()) for result in results)
        samples = sorted({result.n for result in results})
        shown = f"{samples[0]:,}" if len(samples) == 1 else f"{samples[0]:,} to {samples[-1]:,}"
        facts = [Fact("Files of predictions", str(len(results))), Fact("Samples", shown, hint="in each file" if len(results) > 1 else "")]
        if clusters := {len({key.video for key in one.joined.pairs.keys}) for one in self.scores.scored}:
            facts.append(Fact("Videos", f"{max(clusters):,}", hint="clusters of the intervals"))
        facts.append(Fact("Without an answer", f"{without:,}", hint="counted as wrong"))
        return [*facts, Fact("Shown to the model", "; ".join(budgets))]

    @cached_property
    def metrics(self) -> list[MetricLanes]:
        rows: dict[tuple[str, str], list[NamedResult]] = {}
        for number, (result, label) in enumerate(zip(self.scores.shown, self.scores.labels, strict=True), 1):
            for name in result.metrics:
                rows.setdefault((result.label, name), []).append(NamedResult(number, result, label))
        return [_lanes(task, name, some) for (task, name), some in rows.items()]

    @cached_property
    def curves(self) -> list[Chart]:
        return [*budget_curves(self.scores.shown), *paper_charts(self.scores)]

    @cached_property
    def tables(self) -> list[Table]:
        numbered = enumerate(zip(self.scores.shown, self.scores.labels, strict=True), 1)
        groups = [table for number, (one, label) in numbered for table in group_tables(one, label=label, number=number)]
        differences = [comparison_table(self.scores.differences)] if self.scores.differences else []
        return [*score_tables(self.scores.shown), *differences, *groups, *answer_tables(self.scores)]

    # ------------------------------------------------------------ samples

    @cached_property
    def sets(self) -> list[list[ScoredFile]]:
        """The files with the same samples, together."""
        sets: dict[tuple[object, ...], list[ScoredFile]] = {}
        for one in self.scores.scored:
            sets.setdefault((one.result.task, tuple(key.id for key in one.joined.pairs.keys)), []).append(one)
        return list(sets.values())

    @cached_property
    def worst(self) -> list[CardView]:
        """The samples with the lowest value in the first metric, over all files; those that are disputed stand there."""
        return [self._card(some, index) for some in self.sets for index in worst(some, without=disputed(some))]

    @cached_property
    def disputed(self) -> list[CardView]:
        """The samples whose values in the first metric differ most between the files."""
        return [self._card(some, index) for some in self.sets for index in disputed(some)]

    def _card(self, files: Sequence[ScoredFile], index: int) -> CardView:
        return card_of(files, [self._label(one) for one in files], index, self.pictures)

    def _label(self, scored: ScoredFile) -> str:
        return self.scores.labels[self._places[id(scored.result)]]

    @cached_property
    def _places(self) -> dict[int, int]:
        """The place of each result; of one that stands there twice the first."""
        return {id(result): place for place, result in reversed(list(enumerate(self.scores.results)))}

    @cached_property
    def lists(self) -> list[SampleList]:
        """The samples of each figure in the tables."""
        cards = {one.anchor for one in (*self.worst, *self.disputed)}
        return [found for scored in self.scores.scored for found in self._lists_of(scored, cards)]

    def _lists_of(self, scored: ScoredFile, cards: set[str]) -> Iterator[SampleList]:
        place = self._places[id(scored.result)]
        result, number, pairs = self.scores.shown[place], place + 1, scored.joined.pairs
        label, ids = self.scores.labels[place], [key.id for key in pairs.keys]
        yield _list(scored, f"{label}: all samples of {result.label}", sample_anchor(number), range(len(ids)), ids, cards)
        members = group_members(pairs)
        for grouping_number, (grouping, groups) in enumerate(numbered_groups(result).items(), 1):
            for group, group_number in groups.items():
                title = f"{label}, {result.label}: {shorten(grouping, MOST_NAME_LETTERS)} {group}"
                anchor = sample_anchor(number, grouping_number, group_number)
                yield _list(scored, title, anchor, members[grouping][group], ids, cards)

    @property
    def unlisted(self) -> list[str]:
        """Anchors of results whose samples are not here."""
        listed = {id(one.result) for one in self.scores.scored}
        return [sample_anchor(number) for number, result in enumerate(self.scores.results, 1) if id(result) not in listed]

    @property
    def signatures(self) -> list[tuple[str, str]]:
        """What must be equal for two values to be comparable."""
        found = {name: score.signature for result in self.scores.shown for name, score in result.metrics.items()}
        rows = [(metric_name(name), signature) for name, signature in found.items()]
        for result, label in zip(self.scores.shown, self.scores.labels, strict=True):
            rows += [(f"{label}: {name}", str(value)) for name, value in _provenance(result)]
        return rows


def _provenance(result: TaskResult) -> Iterator[tuple[str, object]]:
    yield "file", result.name
    yield "task", f"{result.task}, version {result.task_version}"
    yield from result.parameters.items()
    yield "SHA-256 of samples", result.samples_sha256 or "several files"
    yield "SHA-256 of predictions", result.predictions_sha256


def first_values(scored: ScoredFile) -> tuple[float, ...] | None:
    """Return the values of the samples in the first metric that has some."""
    return next(iter(scored.values.values()), None)


def worst(files: Sequence[ScoredFile], count: int = CARDS, *, without: Sequence[int] = ()) -> list[int]:
    """Return the numbers of the samples with the lowest mean over the files, lowest first; equal ones in their order.

    Args:
        without: numbers to leave out.
    """
    columns = [values for one in files if (values := first_values(one)) is not None]
    means = [math.fsum(values) / len(values) for values in zip(*columns, strict=True)]
    return sorted(set(range(len(means))).difference(without), key=lambda place: (means[place], place))[:count]


def disputed(files: Sequence[ScoredFile], count: int = CARDS) -> list[int]:
    """Return the numbers of the samples whose values differ most between the files; none where all agree, or there is one file."""
    columns = [values for one in files if (values := first_values(one)) is not None]
    spreads = [max(values) - min(values) for values in zip(*columns, strict=True)] if len(columns) > 1 else []
    order = sorted(range(len(spreads)), key=lambda place: (-spreads[place], place))
    return [place for place in order[:count] if spreads[place] > 0]


def _list(scored: ScoredFile, title: str, anchor: str, members: Sequence[int], ids: Sequence[str], cards: set[str]) -> SampleList:
    first, result = first_values(scored), scored.result
    order = sorted(members, key=lambda place: (first[place] if first else 0.0, place))[:MOST_LISTED]
    rows = [
        ListedSample(
            ids[place],
            f"#{link}" if (link := sample_card_anchor(result, ids[place])) in cards else "",
            "" if scored.statuses[place] == "ok" else scored.statuses[place],
            [f"{100 * values[place]:.2f}" for values in scored.values.values()],
        )
        for place in order
    ]
    return SampleList(anchor, title, len(members), [metric_name(name) for name in scored.values], rows)


# ---------------------------------------------------------------- values on an axis


def _place(value: float, ticks: Sequence[float]) -> float:
    return 100 * (value - ticks[0]) / (ticks[-1] - ticks[0])


def _lanes(task: str, metric: str, rows: Sequence[NamedResult]) -> MetricLanes:
    """Return the values of a metric in all results that have it."""
    found = [row.result.metrics[metric] for row in rows]
    values = [0.0, 100.0, *(score.value for score in found if score.value is not None)]
    drawn = min(values), max(values)  # where few videos leave an interval that reaches beyond every possible value, it is cut off
    ends = [min(max(end, drawn[0]), drawn[1]) for score in found for end in (score.low, score.value, score.high) if end is not None]
    spare = max(0.0, LEAST_SPAN - (max(ends) - min(ends))) / 2 if ends else 0.0
    ticks = round_ticks(min(ends) - spare, max(ends) + spare) if ends else [0.0, 1.0]
    lanes = [
        Lane(f"{row.label} ({budget_label(row.result)})", f"#{sample_anchor(row.number)}", *_lane(score, ticks))
        for row, score in zip(rows, found, strict=True)
    ]
    return MetricLanes(f"{metric_name(metric)}, {task}", lanes, _axis(ticks))


def _lane(score: Score, ticks: Sequence[float]) -> tuple[str, Markup]:
    """Return the value in words, and its point with the interval."""
    if score.value is None:
        return "no value", tag("svg", height=LANE_PX, aria_hidden="true")
    middle, places = LANE_PX / 2, [percent(_place(tick, ticks)) for tick in ticks]
    parts = [tag("line", class_="grid", x1=place, x2=place, y1=0, y2=LANE_PX) for place in places]
    words = f"{score.value:.2f}"
    if score.low is not None and score.high is not None:
        words = f"{score.value:.2f}, 95 % interval {score.low:.2f} to {score.high:.2f}"
        ends = [_place(min(max(end, ticks[0]), ticks[-1]), ticks) for end in (score.low, score.high)]
        parts.append(tag("line", class_="interval", x1=percent(ends[0]), x2=percent(ends[1]), y1=middle, y2=middle))
        inside = [place for place, end in zip(ends, (score.low, score.high), strict=True) if ticks[0] <= end <= ticks[-1]]
        parts += [tag("line", class_="interval", x1=percent(end), x2=percent(end), y1=middle - 5, y2=middle + 5) for end in inside]
    parts.append(tag("circle", class_="dot kept", cx=percent(_place(score.value, ticks)), cy=middle, r=5))
    return words, tag("svg", tag("title", words), *parts, height=LANE_PX, role="img", aria_label=words)


def _axis(ticks: Sequence[float]) -> Markup:
    step = ticks[1] - ticks[0]
    digits = max(0, math.ceil(-math.log10(step) - 1e-9))
    texts = [
        tag(
            "text",
            f"{tick:.{digits}f}",
            x=percent(_place(tick, ticks)),
            y=14,
            text_anchor="start" if place == 0 else "end" if place == len(ticks) - 1 else "middle",
        )
        for place, tick in enumerate(ticks)
    ]
    return tag("svg", tag("g", *texts, class_="axis"), height=18, aria_hidden="true")
