"""Which frames are looked at, and how picks are spread over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vip.errors import BackendError
from vip.extraction.candidates import FEWEST_AT_LEAST, MOST_AT_LEAST, SyncSampler, fill, thin
from vip.records import Frame, PacketIndex

times = st.lists(st.integers(-1000, 100_000), min_size=1, max_size=300, unique=True).map(sorted)


@given(times, st.integers(2, 50))
def test_thin_takes_from_what_there_is_in_order_and_never_too_many(pts: list[int], most: int) -> None:
    if len(pts) < 2:
        return
    chosen = thin(pts, most)
    assert chosen == sorted(set(chosen))
    assert set(chosen) <= set(pts)
    assert len(chosen) <= most
    assert {pts[0], pts[-1]} <= set(chosen)


def test_thin_spreads_over_time_and_not_over_number() -> None:
    crowded = [*range(0, 1000, 1), *range(1000, 100_000, 1000)]
    chosen = np.array(thin(crowded, 20))
    assert np.diff(chosen).max() < 2 * np.diff(chosen).min() + 2000


@given(times, st.data(), st.integers(1, 60))
def test_fill_keeps_the_picks_and_adds_frames_that_exist(shown: list[int], data: st.DataObject, fewest: int) -> None:
    picked = sorted(data.draw(st.sets(st.sampled_from(shown), min_size=1)))
    filled = fill(picked, shown, fewest)
    assert filled == sorted(set(filled))
    assert set(filled) <= set(shown)
    assert set(picked) <= set(filled)
    assert len(filled) == max(len(picked), min(fewest, len(shown)))


def test_fill_puts_frames_evenly_into_the_longest_gaps() -> None:
    shown = list(range(0, 3000, 10))
    filled = fill([0, 10, 20], shown, 12)
    gaps = np.diff([*filled[2:], 2990])
    assert gaps.max() <= 2 * gaps.min()


@dataclass
class Source:
    """A video source that has an index and cannot decode."""

    index: PacketIndex
    time_base: Fraction = Fraction(1, 1000)

    def frames(self, pts: Sequence[int], *, longest_side_px: int | None = None) -> Iterator[Frame]:
        raise AssertionError("the sampler `sync` decodes nothing")


def source(frames: int, sync_every: int) -> Source:
    pts = np.arange(frames, dtype=np.int64) * 40
    ones = np.ones(frames, np.int64)
    return Source(PacketIndex(pts, pts, np.arange(frames) % sync_every == 0, ones, ones.astype(bool), Fraction(1, 1000)))


def test_sync_takes_the_sync_frames_where_they_are_enough() -> None:
    video = source(6000, 100)
    assert SyncSampler(None).sample(video, keyframes=12) == video.index.sync_pts.tolist()


def test_sync_adds_frames_where_sync_frames_are_too_few() -> None:
    chosen = SyncSampler(None).sample(source(1000, 1000), keyframes=12)
    assert len(chosen) == 36
    assert len(SyncSampler(None).sample(source(1000, 1000), keyframes=1)) == FEWEST_AT_LEAST


def test_sync_thins_out_a_file_of_nothing_but_sync_frames() -> None:
    chosen = SyncSampler(None).sample(source(90_000, 1), keyframes=12)
    assert MOST_AT_LEAST * 0.9 <= len(chosen) <= MOST_AT_LEAST


def test_sync_takes_every_frame_of_a_very_short_video() -> None:
    assert len(SyncSampler(None).sample(source(7, 7), keyframes=12)) == 7


def test_sync_refuses_a_detail() -> None:
    with pytest.raises(BackendError, match="takes no detail"):
        SyncSampler("fast")
