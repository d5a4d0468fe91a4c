"""Which frames stand still, by packets made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.extraction.indices import LARGE, SYNC, at, index_of, steady
from vip.extraction.stillness import MOVES_SHARE_OF_SYNC, STILL_BYTES, TIMES_CALM, calm_frames, still_frames

STILL, SECONDS = 50, 8


def slides(*changes_s: float) -> np.ndarray:
    """Sizes of packets, 25 a second: tiny ones, and three large ones at each change."""
    sizes = np.full(SECONDS * 25, STILL)
    sizes[0] = SYNC
    for change_s in changes_s:
        sizes[round(change_s * 25) : round(change_s * 25) + 3] = LARGE
    return sizes


def test_slides_stand_still_and_moving_pictures_do_not() -> None:
    assert still_frames(index_of(slides(4.0)), at(1.0, 3.0, 5.0, 7.0)).all()
    assert not still_frames(steady(SECONDS), at(1.0, 4.0, 7.0)).any()


def test_the_last_frame_before_a_change_and_the_first_behind_it_are_still() -> None:
    assert still_frames(index_of(slides(4.0)), at(3.96, 4.3)).all()


def test_amid_movement_nothing_is_still_though_it_has_just_begun() -> None:
    sizes = slides()
    sizes[100:130] = LARGE  # from 4.0 s on for 1.2 s
    assert still_frames(index_of(sizes), at(3.5, 4.2, 4.6, 5.0, 5.6)).tolist() == [True, False, False, False, True]


@pytest.mark.parametrize("moves", [False, True])
def test_a_sync_frame_is_still_unless_movement_begins_with_it(moves: bool) -> None:
    """At 4.0 s an encoder writes one because much has changed: a slide comes, or a page begins to scroll."""
    sizes = slides()
    sizes[100] = SYNC
    if moves:
        sizes[101:140] = LARGE
    index = index_of(sizes, sync=(0, 100))
    assert still_frames(index, at(3.96, 4.0)).tolist() == [True, not moves]


@pytest.mark.parametrize(("own", "still"), [(STILL, True), (STILL_BYTES, True), (8 * STILL_BYTES, False)])
def test_a_frame_that_has_moved_already_is_not_still_though_its_packet_is_small(own: int, still: bool) -> None:
    """B-frames at the beginning of a scroll are coded by what comes behind them."""
    sizes = slides()
    sizes[99], sizes[100:140] = own, LARGE
    assert 8 * STILL_BYTES < MOVES_SHARE_OF_SYNC * SYNC
    assert still_frames(index_of(sizes), at(3.92, 3.96)).tolist() == [True, still]


def test_packets_in_the_order_of_decoding_tell_the_same() -> None:
    sizes = slides(2.0)
    sizes[100:130] = LARGE
    index = index_of(sizes)
    order = np.random.default_rng(0).permutation(len(index.pts))
    columns = {name: getattr(index, name)[order] for name in ("pts", "is_sync", "size_bytes", "is_shown")}
    mixed = replace(index, dts=np.arange(len(order)), **columns)
    shown = index.shown_pts.tolist()
    assert still_frames(mixed, shown).tolist() == still_frames(index, shown).tolist()


def test_a_frame_that_nothing_follows_for_seconds_is_still() -> None:
    index = index_of([SYNC, SYNC, SYNC], sync=(0, 1, 2))
    far = replace(index, pts=np.array([0, 5000, 5040], np.int64))
    assert still_frames(far, [0, 5000, 5040]).tolist() == [True, False, False]


def test_packets_that_tell_nothing_say_no() -> None:
    index = index_of(slides())
    for silent in (replace(index, is_sparse=True), replace(index, by_decoding=True), index_of([])):
        assert not still_frames(silent, at(1.0, 2.0)).any()


@pytest.mark.parametrize(("large", "still"), [(44, False), (45, True)])
def test_at_few_frames_a_second_what_the_next_ones_refer_to_may_lie_farther_off(large: int, still: bool) -> None:
    """At ten frames a second, three that are copies of the next large one say nothing of the frame before them."""
    sizes = np.full(80, STILL)
    sizes[[0, 40, large]] = SYNC, LARGE, LARGE
    slow = index_of(sizes)
    slow = replace(slow, pts=slow.pts * 5 // 2, dts=slow.dts * 5 // 2)
    assert still_frames(slow, [40 * 100]).tolist() == [still]


def test_the_larger_the_sync_packets_the_more_may_move_in_a_still_picture() -> None:
    """At high bit rates noise alone takes more than a few bytes; three thousandths of a sync packet are what counts."""
    sizes = np.full(200, STILL_BYTES + 50)
    for sync_bytes, is_still in ((SYNC, False), (100 * SYNC, True)):
        sizes[0] = sync_bytes
        assert still_frames(index_of(sizes), at(4.0)).tolist() == [is_still]


@pytest.mark.parametrize(("burst", "is_still"), [(MOVES_SHARE_OF_SYNC, True), (1.1 * MOVES_SHARE_OF_SYNC, False)])
def test_one_packet_nearby_that_is_large_says_that_something_moves(burst: float, is_still: bool) -> None:
    sizes = slides()
    sizes[[98, 102]] = round(burst * SYNC)
    assert still_frames(index_of(sizes), at(4.0)).tolist() == [is_still]


# ---------------------------------------------------------------- no more than usual


def talk(*scrolls_s: float) -> np.ndarray:
    """Sizes of packets, 25 a second, of a speaker beside a page that scrolls from these times on for a second."""
    sizes = np.full(SECONDS * 25, 1000)
    sizes[0] = SYNC
    for start_s in scrolls_s:
        sizes[round(start_s * 25) : round(start_s * 25) + 25] = LARGE
    return sizes


def test_beside_a_speaker_who_moves_a_page_is_calm_but_where_it_scrolls() -> None:
    index = index_of(talk(3.0))
    assert calm_frames(index, at(1.0, 2.96, 3.5, 4.04, 6.0)).tolist() == [True, True, False, True, True]
    assert not still_frames(index, at(1.0, 6.0)).any()


@pytest.mark.parametrize(("times", "is_calm"), [(TIMES_CALM, True), (TIMES_CALM + 0.1, False)])
def test_what_is_usual_is_so_many_times_what_calm_packets_have(times: float, is_calm: bool) -> None:
    sizes = talk()
    sizes[75:125] = round(1000 * times)
    assert calm_frames(index_of(sizes), at(4.0)).tolist() == [is_calm]


def test_packets_that_do_not_tell_call_nothing_calm() -> None:
    index = index_of(talk())
    assert calm_frames(index, at(4.0)).all()
    for untold in (replace(index, is_sync=np.ones(len(index.pts), bool)), replace(index, by_decoding=True)):
        assert not calm_frames(untold, at(4.0)).any()
    assert calm_frames(index, []).shape == (0,)
