"""Plots of the data card: bars as long as their shares, and as many labels as there is room for."""

from __future__ import annotations

import re

import pytest
from markupsafe import Markup

from vip.corpus.card.charts import histogram, share_bars
from vip.corpus.card.histograms import HistogramBin, HistogramPlot
from vip.corpus.card.tables import CardTable
from vip.html.charts import BOTTOM_PX


def plot(count: int, label: str = "20–29") -> HistogramPlot:
    return HistogramPlot("Words", "3 captions.", tuple(HistogramBin(label, label, number + 1) for number in range(count)), between=False)


def test_bars_are_as_long_as_their_shares_of_the_largest() -> None:
    table = CardTable("Verticals", ("Vertical", "Asked", "Chosen"), (("Sports", "50.0 %", "25.0 %"), ("News", "10.0 %", "–")), "")
    found = re.findall(r'<rect class="s\d" y="(\d+)" width="([\d.]+)%"', str(Markup().join(share_bars(table))))
    assert [(int(y), float(width)) for y, width in found] == [(0, 100), (11, 50), (0, 20), (11, 0)]


@pytest.mark.parametrize(("count", "shown", "wide"), [(5, 5, 0), (8, 8, 4), (16, 8, 4), (30, 8, 4)])
def test_of_many_labels_some_stand_and_every_other_one_only_where_it_is_wide(count: int, shown: int, wide: int) -> None:
    labels = re.findall(r"<text[^>]*>20–29</text>", str(histogram(plot(count)).svg))
    assert (len(labels), sum('class="wide"' in label for label in labels)) == (shown, wide)


def test_columns_are_as_high_as_their_counts() -> None:
    heights = [float(found) for found in re.findall(r'<rect class="column"[^>]* height="([\d.]+)"', str(histogram(plot(4)).svg))]
    assert [height / heights[0] for height in heights] == pytest.approx([1, 2, 3, 4], rel=0.02)


def test_columns_stand_side_by_side_on_one_line_and_say_what_they_count() -> None:
    svg = str(histogram(plot(4)).svg)
    found = [
        tuple(map(float, one))
        for one in re.findall(r'<rect class="column" x="([\d.]+)%" y="([\d.]+)" width="([\d.]+)%" height="([\d.]+)"', svg)
    ]
    assert [x for x, *_ in found] == pytest.approx([2, 27, 52, 77])
    assert {wide for _, _, wide, _ in found} == {21}
    assert [y + high for _, y, _, high in found] == pytest.approx([BOTTOM_PX] * 4, abs=0.1)
    assert re.findall(r"<title>(20.*?)</title>", svg) == [
        "20–29: 1 (10.0 %)",
        "20–29: 2 (20.0 %)",
        "20–29: 3 (30.0 %)",
        "20–29: 4 (40.0 %)",
    ]
    assert "Words: 3 captions. From 20–29 to 20–29, most often 20–29 (4)." in svg
