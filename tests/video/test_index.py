"""Which packets a decoder may start at, where the file's own flags cannot be believed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from vip.records import PacketIndex
from vip.video.index import _believe_decoder

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
