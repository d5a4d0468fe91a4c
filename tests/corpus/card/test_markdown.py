"""The data card as text."""

from __future__ import annotations

from vip.corpus.card.bars import Bin, Plot
from vip.corpus.card.markdown import _plot


def test_a_histogram_has_bars_of_40_letters_at_most_and_a_trace_of_what_is_there() -> None:
    bins = (Bin("0–9", "0", 1200), Bin("10–19", "10", 1), Bin("20–29", "20", 0), Bin("30 and more", "30", 600))
    assert list(_plot(Plot("Words", "All of them.", bins, between=True))) == [
        *("", "### Words", "", "All of them.", "", "```text"),
        f"        0–9  1,200  {'█' * 40}",
        "      10–19      1  ▏",
        "      20–29      0",
        f"30 and more    600  {'█' * 20}",
        "```",
    ]
