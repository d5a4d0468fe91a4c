"""Figures of the data card in words: rounded, and unknown is not zero."""

from __future__ import annotations

import pytest

from vip.corpus.card.tables import _at_least, _days, _thousands, printable, share
from vip.dataset.statistics import ModelUse


@pytest.mark.parametrize(
    ("count", "told"),
    [(0, "0"), (999, "999"), (1000, "1K"), (1540, "1.54K"), (999_499, "999K"), (999_999, "1M"), (1_000_000, "1M"), (2_500_000, "2.5M")],
)
def test_many_are_told_in_thousands_and_millions(count: int, told: str) -> None:
    assert _thousands(count) == told


@pytest.mark.parametrize(
    ("calls", "cached", "unknown", "told"),
    [(4, 0, 0, "7"), (4, 0, 1, "at least 7"), (4, 0, 4, "not known"), (4, 2, 2, "not known"), (4, 2, 1, "at least 7"), (4, 4, 0, "7")],
)
def test_what_is_not_known_of_all_requests_is_not_told_as_a_sum(calls: int, cached: int, unknown: int, told: str) -> None:
    assert _at_least("7", unknown, ModelUse(calls=calls, cached=cached)) == told


def test_one_day_is_told_once() -> None:
    assert _days("2026-01-02T03:00:00+00:00", "2026-01-02T23:00:00+00:00") == "2 January 2026"
    assert _days("2026-01-02T03:00:00+00:00", "2026-03-01T00:00:00+00:00") == "2 January 2026 – 1 March 2026"


def test_a_share_of_nothing_is_a_dash() -> None:
    assert (share(1, 3), share(0, 3), share(0, 0)) == ("33.3 %", "0.0 %", "–")


def test_what_is_not_to_be_shown_is_replaced() -> None:
    assert printable("a\n b\x00c\u202e") == "a b\N{REPLACEMENT CHARACTER}c\N{REPLACEMENT CHARACTER}"
