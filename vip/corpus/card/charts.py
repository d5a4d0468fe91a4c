"""The plots of a data card, as SVG of our own: bars of shares by name, and histograms; one drawing for every width.

In: tables and plots of the card. Out: figures with a tooltip on every bar.
"""

from __future__ import annotations

import math

from vip.corpus.card.histograms import HistogramPlot
from vip.corpus.card.tables import CardTable
from vip.html.axes import round_ticks
from vip.html.markup import Html, join, percent, tag
from vip.report.curves import AXIS_Y, HEIGHT_PX, PLOT_PX, TOP_PX, Scale, value_axis

BAR_PX, STEP_PX = 9, 11


def bars(table: CardTable) -> Html:
    """Figure 2 of the paper: for each row a bar of every column of shares, side by side."""
    if not table.rows:
        return Html("")
    kinds, most = table.head[1:], max(_share(cell) for row in table.rows for cell in row[1:]) or 1.0
    rows = []
    for name, *cells in table.rows:
        told = ", ".join(f"{kind.lower()} {cell}" for kind, cell in zip(kinds, cells, strict=True))
        drawn = [
            tag("rect", class_=f"s{place}", y=place * STEP_PX, width=percent(100 * _share(cell) / most), height=BAR_PX, rx=2)
            for place, cell in enumerate(cells)
        ]
        svg = tag("svg", tag("title", f"{name}: {told}"), join(drawn), height=len(kinds) * STEP_PX, role="img", aria_label=told)
        figures = tag("span", join(tag("span", cell) for cell in cells), class_="figures")
        rows.append(tag("li", tag("span", tag("bdi", name), class_="name"), svg, figures))
    keys = [tag("span", tag("i", class_=f"key s{place}"), kind) for place, kind in enumerate(kinds)]
    legend = tag("p", join(keys), class_="legend")
    return tag("section", tag("h2", table.title), tag("p", table.note, class_="hint"), legend, tag("ul", join(rows), class_="shares"))


def _share(cell: str) -> float:
    """Of `12.3 %`; nothing of a dash."""
    return float(cell.removesuffix(" %")) if cell.endswith("%") else 0.0


def histogram(plot: HistogramPlot) -> Html:
    """Columns over an axis; the labels of some of them on a phone."""
    scale = Scale(tuple(round_ticks(0, max(one.count for one in plot.bins))))
    total, width = sum(one.count for one in plot.bins), 100 / len(plot.bins)
    columns = []
    for place, one in enumerate(plot.bins):
        y = scale.y(one.count)
        told = tag("title", f"{one.label}: {one.count:,} ({100 * one.count / total:.1f} %)")
        hit = tag("rect", class_="hit", x=percent(place * width), y=TOP_PX, width=percent(width), height=PLOT_PX)
        x, wide = percent((place + 0.08) * width), percent(0.84 * width)
        columns.append(tag("g", told, hit, tag("rect", class_="column", x=x, y=y, width=wide, height=TOP_PX + PLOT_PX - y)))
    svg = tag("svg", value_axis(scale), join(columns), _ticks(plot, width), height=HEIGHT_PX, role="img", aria_label=_spoken(plot))
    return tag("figure", tag("figcaption", tag("h3", plot.title), tag("p", plot.note)), tag("div", svg, class_="plot"), class_="chart")


def _ticks(plot: HistogramPlot, width: float) -> Html:
    """As many as there is room for: on a phone every other one of a desktop's."""
    room = 13 if max(len(one.tick) for one in plot.bins) <= 3 else 8
    every, ticks = math.ceil(len(plot.bins) / room), []
    for place in range(0, len(plot.bins), every):
        x = (place if plot.between else place + 0.5) * width
        kind = "wide" if place // every % 2 and len(plot.bins) > 5 else None
        ticks.append(tag("text", plot.bins[place].tick, x=percent(x), y=AXIS_Y, text_anchor="middle", class_=kind))
    return tag("g", join(ticks), class_="axis")


def _spoken(plot: HistogramPlot) -> str:
    """The plot in a sentence, for those who cannot see it."""
    most = max(plot.bins, key=lambda one: one.count)
    return f"{plot.title}: {plot.note} From {plot.bins[0].label} to {plot.bins[-1].label}, most often {most.label} ({most.count:,})."
