"""What packet sizes tell about shots: that one goes on to the next sync frame, and that nothing changes at all."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from vip.extraction.transitions import PacketActivity
from vip.records import PacketIndex


def index_of(sync: list[int], frames: int, sizes: dict[int, int] | None = None) -> PacketIndex:
    """25 frames a second of 1,000 bytes each, but for `sizes`."""
    pts = np.arange(frames, dtype=np.int64)
    size = np.full(frames, 1000, np.int64)
    for number, size_bytes in (sizes or {}).items():
        size[number] = size_bytes
    return PacketIndex(pts, pts, np.isin(pts, sync), size, np.ones(frames, bool), Fraction(1, 25))


@pytest.mark.parametrize(("pts", "expected"), [(0, True), (60, True), (100, False), (120, False), (150, True), (249, True), (250, False)])
def test_a_shot_goes_on_where_the_next_sync_frame_came_because_the_gop_was_full(pts: int, expected: bool) -> None:
    calm = PacketActivity(index_of([0, 100, 150, 250], 300))  # full, cut short by a cut, full, the end
    assert calm.goes_on(pts) is expected


def test_gops_of_equal_length_say_nothing_about_cuts() -> None:
    assert not PacketActivity(index_of([0, 50, 100, 150, 200], 250)).goes_on(60)
    assert not PacketActivity(index_of([0, 50], 100)).goes_on(10)


def test_a_stretch_of_tiny_packets_is_still_and_one_with_a_change_is_not() -> None:
    calm = PacketActivity(index_of([0], 300, dict.fromkeys(range(1, 300), 40) | {200: 30_000}))
    assert calm.moving([0, 100, 299]) == [0, *range(100, 300)], "the change at 200 lies between the last two"
    assert calm.moving([100, 150]) == [*range(101), *range(150, 300)], "nothing is known before the first"
    assert calm.moving([50]) == list(range(300))
    assert PacketActivity(index_of([0], 300)).moving([0, 299]) == list(range(300))
