"""What packet sizes tell: bursts make the frames beside them restless, and a change that no sync frame shows is found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.extraction.indices import LARGE, RATE, SYNC, TICKS, USUAL, at, index_of, steady
from vip.extraction.transitions import SETTLED_S, PacketActivity
from vip.records import PacketIndex

CROSS_FADE = {5.0: 0.6}  # from 5.0 to 5.6 s


def in_transition(index: PacketIndex, *times_s: float) -> list[bool]:
    flags: list[bool] = PacketActivity(index).in_transition(at(*times_s)).tolist()
    return flags


# ---------------------------------------------------------------- restless


@pytest.mark.parametrize("sync_every_s", [None, 2.0, 0.5])
def test_a_steady_stream_is_restless_nowhere(sync_every_s: float | None) -> None:
    index = steady(12, sync_every_s=sync_every_s)
    assert not PacketActivity(index).in_transition(index.shown_pts.tolist()).any()


def test_just_before_a_burst_in_it_and_just_behind_it_is_restless() -> None:
    index = steady(12, bursts=CROSS_FADE)
    assert in_transition(index, 4.8, 4.96, 5.1, 5.3, 5.56, 5.7) == [True] * 6
    assert in_transition(index, 2.0, 4.0, 4.5, 6.4, 8.0, 11.0) == [False] * 6


def test_a_sync_packet_is_no_burst_however_large() -> None:
    index = steady(12, sync_every_s=5)
    assert SYNC > 10 * USUAL
    assert in_transition(index, 4.8, 4.96, 5.0, 5.04, 5.2) == [False] * 5


def test_a_burst_behind_a_sync_frame_makes_that_frame_restless() -> None:
    assert in_transition(steady(12, sync_every_s=5, bursts={5.04: 0.5}), 5.0) == [True]


def test_a_single_large_packet_is_no_row_of_them() -> None:
    """A hard cut without a sync frame: the frame that it shows is whole."""
    sizes = np.full(12 * RATE, USUAL)
    sizes[6 * RATE] = LARGE // 2
    assert in_transition(index_of(sizes), 6.0, 6.5) == [False, False]


def test_a_video_that_becomes_busy_and_stays_so_is_calm_again_behind_the_change() -> None:
    sizes = np.repeat([USUAL, LARGE], 8 * RATE)
    assert in_transition(index_of(sizes), 7.0, 8.1, 8.3, 12.0) == [False, True, True, False]


def test_the_smallest_noise_in_a_still_picture_is_no_burst() -> None:
    """Nearly empty packets: ten times almost nothing is still nothing."""
    sizes = np.full(20 * RATE, 4 * USUAL)
    sizes[5 * RATE : 15 * RATE] = 4
    sizes[10 * RATE : 10 * RATE + 15] = 40
    assert in_transition(index_of(sizes), 9.9, 10.2, 10.7) == [False] * 3


def test_only_the_time_of_a_packet_counts_not_its_place_in_the_file() -> None:
    """B-frames: packets come in another order than frames are shown."""
    plain = steady(12, bursts=CROSS_FADE)
    order = [frame // 50 * 50 + frame * 7 % 50 for frame in range(len(plain))]
    swapped = index_of(plain.size_bytes, order=order)
    assert (np.diff(swapped.pts) < 0).sum() > 10
    shown = plain.shown_pts.tolist()
    assert np.array_equal(PacketActivity(swapped).in_transition(shown), PacketActivity(plain).in_transition(shown))
    assert PacketActivity(swapped).unseen(4) == PacketActivity(plain).unseen(4) != []


# ---------------------------------------------------------------- unseen


def test_a_burst_inside_a_gop_is_a_shot_that_no_sync_frame_shows() -> None:
    (found,) = PacketActivity(steady(12, bursts=CROSS_FADE)).unseen(4)
    assert at(5.0 + SETTLED_S - 0.2) <= [found] <= at(5.6 + SETTLED_S)
    assert in_transition(steady(12, bursts=CROSS_FADE), found * 0.001) == [False], "the frame to look at is a calm one"


@pytest.mark.parametrize("sync_every_s", [None, 2.0])
def test_in_a_steady_stream_nothing_is_unseen(sync_every_s: float | None) -> None:
    assert PacketActivity(steady(12, sync_every_s=sync_every_s)).unseen(10) == []


@pytest.mark.parametrize("start_s", [4.3, 4.6, 5.04, 5.2])
def test_what_the_sync_frame_beside_it_shows_is_not_unseen(start_s: float) -> None:
    assert PacketActivity(steady(12, sync_every_s=5, bursts={start_s: 0.2})).unseen(10) == []
    assert PacketActivity(steady(12, bursts={start_s: 0.2})).unseen(10) != [], "without that sync frame it is"


@pytest.mark.slow
@given(st.lists(st.integers(2, 30), min_size=1, max_size=6, unique=True), st.integers(0, 8))
def test_the_strongest_changes_are_found_in_time_order_and_never_too_many(places: list[int], most: int) -> None:
    starts_s = [3.0 * place for place in sorted(places)]
    sizes = np.full(100 * RATE, USUAL)
    for rank, start_s in enumerate(starts_s):
        sizes[round(start_s * RATE) : round(start_s * RATE) + 8] = LARGE * (1 + rank)
    found = PacketActivity(index_of(sizes)).unseen(most)
    strongest = starts_s[-most:] if most else []
    assert [round(pts / TICKS / RATE - SETTLED_S) for pts in found] == [round(start_s) for start_s in strongest]
    assert found == sorted(set(found))


def test_a_change_at_the_very_end_has_no_settled_frame_behind_it() -> None:
    assert PacketActivity(steady(12, bursts={11.7: 0.3})).unseen(10) == []


# ---------------------------------------------------------------- odd files


@pytest.mark.slow
@given(
    st.lists(st.sampled_from([0, 1, USUAL, LARGE, SYNC]), min_size=1, max_size=120),
    st.lists(st.integers(0, 119), max_size=12),
    st.integers(0, 5),
)
def test_any_index_gets_an_answer(sizes: list[int], sync: list[int], most: int) -> None:
    index = index_of(sizes, sync)
    shown = index.shown_pts.tolist()
    assert PacketActivity(index).in_transition(shown).shape == (len(shown),)
    found = PacketActivity(index).unseen(most)
    assert len(found) <= most
    assert set(found) <= set(shown)


@pytest.mark.parametrize("sizes", [[USUAL], [0], [0] * 200, [USUAL] * 200], ids=["one", "empty", "all empty", "equal"])
@pytest.mark.parametrize("sync", [[], [0], range(200)], ids=["no sync", "first", "all sync"])
def test_where_sizes_tell_nothing_all_is_calm_and_nothing_unseen(sizes: list[int], sync: list[int]) -> None:
    index = index_of(sizes, sync)
    assert not PacketActivity(index).in_transition(index.shown_pts.tolist()).any()
    assert PacketActivity(index).unseen(10) == []
    assert PacketActivity(index).in_transition([]).tolist() == []
