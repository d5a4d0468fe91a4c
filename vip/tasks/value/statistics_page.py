"""Tables 1, 2, 7 and 8 of Li et al. 2021 with own rows, and figure 2: the lengths of videos; as tables, as JSON and as a page."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from vip.html.charts import AXIS_Y, HEIGHT_PX, Chart, Scale, draw, polyline, value_axis
from vip.html.layout import render_page
from vip.html.markup import percent, tag
from vip.store import replacing
from vip.tasks.table import Table, TableCell, number_cell
from vip.tasks.value.datasets import DATASETS
from vip.tasks.value.statistics import SOURCES, TOP, DataStatistics, SourceStatistics, WordCounts, titles_of

PACKAGE = "vip.tasks.value"
WORDS = "published/value_words.csv"
BIN_S, LAST_S = 10, 150
"""Width of a bar of figure 2, and the length from which on all are counted together."""


def statistics_tables(found: DataStatistics | None = None) -> list[Table]:
    """Return the four tables; with own rows of what was measured."""
    return [_videos_table(found), _tasks_table(found), *(_words_table(number, found) for number in ("7", "8"))]


def _videos_table(found: DataStatistics | None) -> Table:
    rows = [
        (TableCell(f"{one.title} ({titles_of(one)})"), number_cell(1000 * one.published[0], digits=0), *map(number_cell, one.published[1:]))
        for one in SOURCES
    ]
    for own in found.sources if found else ():
        cells = number_cell(len(own.durations_s), digits=0), number_cell(own.channel_ratio), number_cell(own.mean_length_s)
        rows.append((TableCell(f"own: {own.source.title}"), *cells))
    notes = ("Published rows: table 1 of Li et al. 2021. Own rows: the videos that the files name.", *(found.notes if found else ()))
    return Table(
        title="VALUE, table 1: videos", columns=("Videos", "Number", "With subtitles %", "Length s"), rows=tuple(rows), notes=notes
    )


def _tasks_table(found: DataStatistics | None) -> Table:
    rows = []
    for dataset in DATASETS:
        pairs = [dataset.train, *((one.videos, one.queries) for one in (dataset.validation, dataset.test))]
        texts = [TableCell(f"{videos:.1f}K/{queries:.1f}K") for videos, queries in pairs]
        rows.append((TableCell(dataset.title), *texts, TableCell(dataset.target)))
    for own in found.tasks if found else ():
        dataset = own.dataset
        counts = [own.splits.get(name) for name in ("train", dataset.validation.name, dataset.test.name)]
        if any(counts):
            cells = [TableCell("–" if one is None else f"{one[0]:,}/{one[1]:,}") for one in counts]
            rows.append((TableCell(f"own: {dataset.title}"), *cells, TableCell(dataset.target)))
    return Table(
        title="VALUE, table 2: tasks",
        columns=("Task", "Train", "Validation", "Test", "Metric"),
        rows=tuple(rows),
        notes=("Videos/queries, questions or captions. Published rows: table 2 of Li et al. 2021, splits as submissions name them.",),
    )


@cache
def published_words() -> tuple[tuple[str, str, str, str], ...]:
    """Return table, data set, `nouns` or `verbs`, and the words as printed."""
    text = (files("vip.tasks") / WORDS).read_text(encoding="utf-8")
    return tuple((row["table"], row["data"], row["part"], row["words"]) for row in csv.DictReader(text.splitlines()))


def _words_table(number: str, found: DataStatistics | None) -> Table:
    rows = [(TableCell(data), TableCell(part), TableCell(words)) for table, data, part, words in published_words() if table == number]
    own: list[tuple[str, WordCounts | None]] = []
    if found is not None:
        own = [(one.source.title, one.words) for one in found.sources]
        own = own if number == "7" else [(one.dataset.title, one.words) for one in found.tasks]
    for name, counts in own:
        if counts is not None and counts.texts:
            rows += [(TableCell(f"own: {name}"), TableCell(part), TableCell(", ".join(counts.top(part)))) for part in ("nouns", "verbs")]
    what = "subtitles" if number == "7" else "annotations"
    note = f"The {TOP} most frequent ones, names left out. Published rows: table {number} of Li et al. 2021."
    return Table(
        title=f"VALUE, table {number}: words of {what}", columns=("Data", "Part", "Words"), rows=tuple(rows), notes=(note,), labels=3
    )


# ---------------------------------------------------------------- figure 2


def length_shares(lengths_s: Sequence[float]) -> list[float]:
    """Return the share of videos in each 10 s, in percent; the last one has all from 150 s on."""
    counts = [0] * (LAST_S // BIN_S + 1)
    for length in lengths_s:
        counts[min(int(length // BIN_S), len(counts) - 1)] += 1
    return [100 * count / len(lengths_s) for count in counts]


def length_chart(source: SourceStatistics) -> Chart:
    """Return the distribution of the lengths of a source: figure 2."""
    shares = length_shares(source.lengths_s)
    scale = Scale.enclosing(0, max(shares))
    width = 100 / len(shares)
    points = []
    for place, share in enumerate(shares):  # a flat step for each 10 s
        points += [(place * width, scale.y(share)), ((place + 1) * width, scale.y(share))]
    names = [
        tag("text", f"{place * BIN_S} s{' and more' if place == len(shares) - 1 else ''}", x=percent(place * width), y=AXIS_Y)
        for place in range(0, len(shares), 5)
    ]
    label = f"Lengths of {len(source.lengths_s):,} videos of {source.source.title}, percent in each {BIN_S} s"
    svg = draw(value_axis(scale), polyline(points), tag("g", *names, class_="axis"), height_px=HEIGHT_PX, label=label)
    return Chart(source.source.title, f"{label}. Mean {source.mean_length_s:.1f} s.", svg)


def write_statistics_page(path: Path, found: DataStatistics) -> None:
    """Write the tables and the figure as one page.

    Raises:
        StoreError: not writable.
    """
    charts = [length_chart(one) for one in found.sources if one.lengths_s]
    page = render_page(PACKAGE, "statistics.html.jinja", style="td{vertical-align:top}", tables=statistics_tables(found), charts=charts)
    with replacing(path) as file:
        file.write(page.encode())


def statistics_json(found: DataStatistics) -> dict[str, Any]:
    """Return what was measured, for programs."""

    def words(counts: WordCounts | None) -> dict[str, Any] | None:
        return None if counts is None else {"texts": counts.texts, "nouns": counts.top("nouns"), "verbs": counts.top("verbs")}

    return {
        "suite": "value",
        "videos": {
            one.source.key: {
                "videos": len(one.durations_s),
                "with_subtitles_percent": one.channel_ratio,
                "mean_length_s": one.mean_length_s,
                "lengths_percent": length_shares(one.lengths_s) if one.lengths_s else None,
                "words": words(one.words),
            }
            for one in found.sources
        },
        "tasks": {
            one.dataset.name: {
                "splits": {name: {"videos": videos, "texts": texts} for name, (videos, texts) in one.splits.items()},
                "words": words(one.words),
            }
            for one in found.tasks
        },
        "notes": found.notes,
    }
