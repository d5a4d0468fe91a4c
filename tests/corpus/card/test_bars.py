"""Bars of the data card: their edges in words."""

from __future__ import annotations

import pytest

from vip.corpus.card.bars import _clock


@pytest.mark.parametrize(
    ("seconds", "told"), [(0, "0"), (1, "1 s"), (59, "59 s"), (60, "1 min"), (3540, "59 min"), (3600, "1 h"), (36_000, "10 h")]
)
def test_lengths_are_told_in_the_largest_unit_that_they_fill(seconds: float, told: str) -> None:
    assert _clock(seconds) == told
