"""The plots of a data card, as SVG of our own: bars of shares by name, and histograms; one drawing for every width.

In: tables and plots of the card. Out: drawings with a tooltip on every bar.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from vip.corpus.card.histograms import HistogramPlot
from vip.corpus.card.tables import CardTable
from vip.html import charts
from vip.html.charts import Chart, Scale
from vip.html.markup import join, percent, tag

BAR_PX, STEP_PX = 9, 11


def share_bars(table: CardTable) -> list[Markup]:
    """Return for each row a drawing with a bar of every column of shares, as in Figure 2 of the paper."""
    kinds = table.head[1:]
    most = max((_share(cell) for row in table.rows for cell in row[1:]), default=0.0) or 1.0
    return [_bars(name, kinds, cells, most) for name, *cells in table.rows]


def _bars(name: str, kinds: Sequence[str], cells: Sequence[str], most: float) -> Markup:
    label = ", ".join(f"{kind.lower()} {cell}" for kind, cell in zip(kinds, cells, strict=True))
    bars = [
        tag("rect", class_=f"s{place}", y=place * STEP_PX, width=percent(100 * _share(cell) / most), height=BAR_PX, rx=2)
        for place, cell in enumerate(cells)
    ]
    return charts.draw(tag("title", f"{name}: {label}"), *bars, height_px=len(kinds) * STEP_PX, label=label)


def _share(cell: str) -> float:
    """Return the number of `12.3 %`, and 0 of a dash."""
    return float(cell.removesuffix(" %")) if cell.endswith("%") else 0.0


def histogram(plot: HistogramPlot) -> Chart:
    """Return columns over an axis; a phone shows some of their labels."""
    scale = Scale.enclosing(0, max(one.count for one in plot.bins))
    total, width = sum(one.count for one in plot.bins), 100 / len(plot.bins)
    columns = []
    for place, one in enumerate(plot.bins):
        y = scale.y(one.count)
        title = tag("title", f"{one.label}: {one.count:,} ({100 * one.count / total:.1f} %)")
        hit = tag("rect", class_="hit", x=percent(place * width), y=charts.TOP_PX, width=percent(width), height=charts.PLOT_PX)
        x, wide = percent((place + 0.08) * width), percent(0.84 * width)
        columns.append(tag("g", title, hit, tag("rect", class_="column", x=x, y=y, width=wide, height=charts.BOTTOM_PX - y)))
    parts = (charts.value_axis(scale), join(columns), _labels(plot, width))
    return Chart(plot.title, plot.note, charts.draw(*parts, height_px=charts.HEIGHT_PX, label=_describe_plot(plot)))


def _labels(plot: HistogramPlot, width: float) -> Markup:
    """Return as many labels as there is room for: on a phone every other one of a desktop's."""
    room = 13 if max(len(one.tick) for one in plot.bins) <= 3 else 8
    every, labels = math.ceil(len(plot.bins) / room), []
    for place in range(0, len(plot.bins), every):
        x = (place if plot.between else place + 0.5) * width
        kind = "wide" if place // every % 2 and len(plot.bins) > 5 else None
        labels.append(tag("text", plot.bins[place].tick, x=percent(x), y=charts.AXIS_Y, text_anchor="middle", class_=kind))
    return tag("g", join(labels), class_="axis")


def _describe_plot(plot: HistogramPlot) -> str:
    """Return the plot in a sentence, for those who cannot see it."""
    most = max(plot.bins, key=lambda one: one.count)
    return f"{plot.title}: {plot.note} From {plot.bins[0].label} to {plot.bins[-1].label}, most often {most.label} ({most.count:,})."
