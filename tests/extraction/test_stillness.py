"""Which frames stand still, by packets made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.extraction.indices import LARGE, SYNC, at, index_of, steady
from vip.extraction.stillness import (
    LEVEL_SHARE_OF_SYNC,
    MOVES_SHARE_OF_SYNC,
    STILL_BYTES,
    TIMES_CALM,
    between_rests,
    calm_frames,
    rests_behind,
    still_frames,
)

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
    sizes = STILL_BYTES + 50 * np.tile([1, 2, 3, 4, 5], 40)  # of one size they would be a recorder's
    for sync_bytes, is_still in ((SYNC, False), (100 * SYNC, True)):
        sizes[0] = sync_bytes
        assert still_frames(index_of(sizes), at(4.0)).tolist() == [is_still]


@pytest.mark.parametrize(("burst", "is_still"), [(MOVES_SHARE_OF_SYNC, True), (1.1 * MOVES_SHARE_OF_SYNC, False)])
def test_one_packet_nearby_that_is_large_says_that_something_moves(burst: float, is_still: bool) -> None:
    sizes = slides()
    sizes[[98, 102]] = round(burst * SYNC)
    assert still_frames(index_of(sizes), at(4.0)).tolist() == [is_still]


def recording(*moves_s: tuple[float, float], level: int = 400, seconds: float = 8) -> np.ndarray:
    """Sizes of packets of a screen recording, 25 a second: hundreds of bytes where nothing changes, and uneven ones elsewhere."""
    sizes = np.full(round(seconds * 25), level)
    sizes[0] = SYNC
    for start_s, end_s in moves_s:
        moves = slice(round(start_s * 25), round(end_s * 25))
        sizes[moves] = np.random.default_rng(3).integers(level, 5 * level, len(sizes[moves]))
    return sizes


def test_what_a_recorder_spends_on_frames_in_which_nothing_changes_is_still() -> None:
    """VP8 takes 340 bytes for a still frame of 1024x768; they are all of one size, and no camera gives such."""
    index = index_of(recording((3.0, 5.0)))
    assert still_frames(index, at(1.0, 2.6, 4.0, 5.04, 7.0)).tolist() == [True, True, False, True, True]


@pytest.mark.parametrize(("share", "is_still"), [(0.5, True), (0.4, False)])
def test_half_of_the_packets_have_that_size_at_least(share: float, is_still: bool) -> None:
    """The rest refines the picture a little."""
    sizes = recording()
    others = np.random.default_rng(0).permutation(np.arange(1, len(sizes)))[: round((1 - share) * len(sizes))]
    sizes[others] = 700
    assert bool(still_frames(index_of(sizes), at(*np.arange(1.0, 7.0, 0.2))).mean() > 0.5) == is_still


@pytest.mark.parametrize(("level", "is_still"), [(0.06, True), (0.07, False)])
def test_that_size_is_a_small_part_of_a_sync_packet(level: float, is_still: bool) -> None:
    assert LEVEL_SHARE_OF_SYNC == 0.06
    assert still_frames(index_of(recording(level=round(level * SYNC))), at(4.0)).tolist() == [is_still]


@pytest.mark.parametrize(("spread", "is_still"), [(0.05, True), (0.12, False)])
def test_that_size_is_nearly_the_same(spread: float, is_still: bool) -> None:
    """Packets of a speaker before a still wall differ by more."""
    sizes = recording(level=1000)
    sizes[1:] = 1000 * (1 + spread * np.tile([0, 1, 0, 2, 3], 40)[1:])
    assert still_frames(index_of(sizes), at(4.0)).tolist() == [is_still]


@pytest.mark.parametrize(("largest", "is_still"), [(3.0, True), (3.1, False)])
def test_amid_packets_of_one_size_a_larger_one_nearby_says_that_something_moves(largest: float, is_still: bool) -> None:
    sizes = recording(level=1000)
    sizes[[98, 102]] = round(1000 * largest)
    assert still_frames(index_of(sizes), at(4.0)).tolist() == [is_still]


def test_a_few_packets_of_one_size_say_nothing() -> None:
    """At seven frames a second a second holds too few of them."""
    for rate, is_still in ((8, True), (7, False)):
        index = index_of(recording())
        slow = replace(index, pts=index.pts * 25 // rate, dts=index.dts * 25 // rate)
        assert still_frames(slow, [int(slow.pts[40])]).tolist() == [is_still]


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
    uneven = talk(3.0) + 100 * np.tile([0, 1, 2, 3, 4], 40)
    assert not still_frames(index_of(uneven), at(1.0, 6.0)).any()


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


# ---------------------------------------------------------------- what moves for a moment


def cards(*moves_s: tuple[float, float], seconds: float = 12) -> np.ndarray:
    """Sizes of packets, 25 a second: tiny ones, and large ones from each of these times to the other."""
    sizes = np.full(round(seconds * 25), STILL)
    sizes[0] = SYNC
    for start_s, end_s in moves_s:
        sizes[round(start_s * 25) : round(end_s * 25)] = LARGE
    return sizes


def test_what_moves_for_a_moment_is_between_rests_and_what_goes_on_is_not() -> None:
    index = index_of(cards((2.0, 3.0), (5.0, 8.0)))
    assert between_rests(index, at(1.0, 2.48, 4.0, 6.0, 9.0)).tolist() == [False, True, False, False, False]


@pytest.mark.parametrize(("length_s", "between"), [(1.4, True), (1.6, False)])
def test_a_moment_takes_a_second_and_a_half_at_most(length_s: float, between: bool) -> None:
    assert between_rests(index_of(cards((2.0, 2.0 + length_s))), at(2.6)).tolist() == [between]


@pytest.mark.parametrize(("pause_s", "between"), [(0.28, False), (0.6, True)])
def test_a_rest_is_long_enough_to_be_seen(pause_s: float, between: bool) -> None:
    """Between 2.0 and 3.0 s something moves, then it pauses and moves for two seconds more."""
    index = index_of(cards((2.0, 3.0), (3.0 + pause_s, 5.0 + pause_s)))
    assert between_rests(index, at(2.48)).tolist() == [between]


def test_a_video_may_begin_and_end_with_a_move() -> None:
    index = index_of(cards((0.04, 1.0), (11.2, 12.0)))
    assert between_rests(index, at(0.4, 11.6)).tolist() == [True, True]
    assert not between_rests(index_of(cards((0.04, 3.0), (9.0, 12.0))), at(0.4, 2.0, 9.4, 11.6)).any()


def test_a_short_video_in_which_nothing_rests_is_no_moment() -> None:
    assert not between_rests(index_of(cards((0.04, 1.2), seconds=1.2)), at(0.4, 0.8)).any()


def test_a_picture_that_is_still_refined_rests() -> None:
    """Every other packet behind a move corrects what it left."""
    sizes = cards((2.0, 3.0))
    sizes[76:110:3] = 20 * STILL
    index = index_of(sizes)
    assert between_rests(index, at(2.48, 3.4)).tolist() == [True, False]


def test_where_much_moves_much_is_little_in_a_rest() -> None:
    """At high bit rates a picture that rests takes 150 bytes a packet: a fiftieth of what moving ones take."""
    sizes = cards((2.0, 3.0), (4.0, 5.0))
    sizes[sizes == STILL] = 150
    sizes[0] = 10_000  # of a plain picture
    assert between_rests(index_of(sizes), at(2.48, 3.48)).tolist() == [True, False]
    sizes[sizes == LARGE] = 1000  # and here all that moves is little: a speaker
    assert not between_rests(index_of(sizes), at(2.48)).any()


def test_the_larger_the_sync_packets_the_more_may_move_in_a_rest() -> None:
    """At high bit rates noise takes more; a picture that is shown for long is most of all packets, and says nothing of what is large."""
    sizes = cards((10.0, 10.8))
    sizes[sizes == STILL] = 2 * STILL_BYTES
    for sync_bytes, between in ((SYNC, False), (5 * SYNC, True)):
        sizes[0] = sync_bytes
        assert between_rests(index_of(sizes), at(10.4)).tolist() == [between]


def test_the_rest_behind_a_move_is_looked_at_once_it_has_begun() -> None:
    index = index_of(cards((2.0, 3.0), (5.0, 5.8)))
    for pts in rests_behind(index, at(2.48, 2.8)):
        assert 3.1 <= pts / 1000 <= 3.4
    assert len(rests_behind(index, at(2.48, 2.8, 5.4))) == 2
    assert rests_behind(index, at(2.48)) == rests_behind(index, at(2.8))
    assert rests_behind(index_of(cards((11.0, 12.0))), at(11.4)) == []
    assert rests_behind(index, []) == []


def test_packets_that_tell_nothing_know_of_no_rests() -> None:
    index = index_of(cards((2.0, 3.0)))
    assert between_rests(index, at(2.48)).all()
    for silent in (replace(index, is_sparse=True), replace(index, by_decoding=True), index_of([SYNC, SYNC], sync=(0, 1))):
        assert not between_rests(silent, at(0.0)).any()
        assert rests_behind(silent, at(0.0)) == []
