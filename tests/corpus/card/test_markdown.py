"""The data card as text."""

from __future__ import annotations

from vip.corpus.card.histograms import HistogramBin, HistogramPlot
from vip.corpus.card.markdown import _plot


def test_a_histogram_has_bars_of_40_letters_at_most_and_a_trace_of_what_is_there() -> None:
    bins = (
        HistogramBin("0–9", "0", 1200),
        HistogramBin("10–19", "10", 1),
        HistogramBin("20–29", "20", 0),
        HistogramBin("30 and more", "30", 600),
    )
    assert list(_plot(HistogramPlot("Words", "All of them.", bins, between=True))) == [
        *("", "### Words", "", "All of them.", "", "```text"),
        f"        0–9  1,200  {'█' * 40}",
        "      10–19      1  ▏",
        "      20–29      0",
        f"30 and more    600  {'█' * 20}",
        "```",
    ]
