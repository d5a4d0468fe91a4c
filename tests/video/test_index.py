"""Which packets a decoder may start at where the flags of a file cannot be believed, and times where it states none."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from vip.records import PacketIndex
from vip.video.index import _believe_decoder, _force_increasing

COUNT = 11


@dataclass
class Flagged:
    """A file in which every packet is flagged as sync; the decoder starts at all of them but one."""

    not_at: int | None

    @property
    def header(self) -> Any:
        return SimpleNamespace(formats=frozenset({"mp4"}))

    def starts_at(self, index: PacketIndex, position: int) -> bool:
        return position != self.not_at


def believed(not_at: int | None) -> list[int]:
    pts = np.arange(COUNT, dtype=np.int64)
    every = np.ones(COUNT, bool)
    index = PacketIndex(pts, pts, every, np.full(COUNT, 1000, np.int64), every, Fraction(1, 25))
    return np.flatnonzero(_believe_decoder(Flagged(not_at), index).is_sync).tolist()  # type: ignore[arg-type]


@pytest.mark.parametrize("not_at", [1, COUNT // 2, COUNT - 1])
def test_one_of_three_packets_at_which_the_decoder_does_not_start_makes_the_flags_untrue(not_at: int) -> None:
    assert believed(not_at) == [0]


def test_flags_are_believed_where_the_decoder_starts_at_each_of_the_three() -> None:
    assert believed(None) == list(range(COUNT))


@pytest.mark.parametrize(
    ("stamps", "increasing", "faults"),
    [
        ([0, 40, 80], [0, 40, 80], 0),
        ([None, 40, None], [0, 40, 80], 2),
        ([40, 40, 40], [40, 80, 120], 2),
        ([80, 40, 200], [80, 120, 200], 1),
        ([], [], 0),
    ],
)
def test_a_time_that_is_missing_or_goes_back_is_a_tick_behind_the_one_before(
    stamps: list[int | None], increasing: list[int], faults: int
) -> None:
    assert _force_increasing(stamps, 40) == (increasing, faults)
