"""What packet sizes tell: bursts make the frames beside them restless, and a change that no sync frame shows is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.extraction.indices import LARGE, RATE, SYNC, TICKS, USUAL, at, index_of, steady
from vip.extraction.transitions import MANY_SYNC, SETTLED_S, USUAL_SHARE, PacketActivity, _bursts, _whole_picture
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
    assert in_transition(index, 2.0, 4.0, 4.3, 6.4, 8.0, 11.0) == [False] * 6


@pytest.mark.parametrize("seed", range(3))
def test_packets_in_the_order_of_decoding_say_what_those_in_the_order_of_showing_do(seed: int) -> None:
    index = steady(12, sync_every_s=2.0, bursts=CROSS_FADE)
    order = np.random.default_rng(seed).permutation(len(index.pts))
    columns = ("pts", "dts", "is_sync", "size_bytes", "is_shown")
    mixed = replace(index, **{name: getattr(index, name)[order] for name in columns})
    shown = index.shown_pts.tolist()
    one, other = PacketActivity(index), PacketActivity(mixed)
    assert one.in_transition(shown).tolist() == other.in_transition(shown).tolist()
    assert one.is_followed_by_much(shown) == other.is_followed_by_much(shown)
    assert one.unseen(5) == other.unseen(5)
    assert one.moving(shown[::30]) == other.moving(shown[::30])


def test_a_sync_packet_is_no_burst_however_large() -> None:
    index = steady(12, sync_every_s=5)
    assert SYNC > 10 * USUAL
    assert in_transition(index, 4.8, 4.96, 5.0, 5.04, 5.2) == [False] * 5


def test_a_burst_behind_a_sync_frame_makes_that_frame_restless() -> None:
    assert in_transition(steady(12, sync_every_s=5, bursts={5.04: 0.5}), 5.0) == [True]


@pytest.mark.parametrize(("share", "restless"), [(0.1, False), (0.4, False), (0.6, True), (1.0, True)])
def test_a_single_large_packet_is_a_burst_from_half_a_whole_new_picture_on(share: float, restless: bool) -> None:
    """Where there are five sync packets or more, these say what a whole new picture costs."""
    sizes = np.full(12 * RATE, USUAL)
    sizes[:: 2 * RATE] = SYNC
    sizes[7 * RATE] = USUAL + round(share * SYNC)
    assert in_transition(index_of(sizes, range(0, 12 * RATE, 2 * RATE)), 6.6, 7.0, 7.6) == [restless] * 3


def test_what_a_whole_new_picture_costs_is_told_by_the_sync_packets_nearby() -> None:
    """The first minute is coded with a tenth of the bytes of the second: what is a new shot there is a movement here."""
    sizes = np.full(120 * RATE, USUAL)
    sync = range(0, 120 * RATE, 4 * RATE)
    sizes[list(sync)] = np.where(np.array(sync) < 60 * RATE, SYNC // 10, SYNC)
    for second in (31, 91):
        sizes[second * RATE] = USUAL + SYNC // 10
    assert in_transition(index_of(sizes, sync), 31.0, 91.0) == [True, False]


def test_packets_as_uneven_as_those_of_vp9_make_only_the_largest_bursts_restless() -> None:
    """Every eighth packet holds several frames ahead, whatever they show."""
    sizes = np.full(60 * RATE, USUAL // 4)
    sizes[::8] = 6 * USUAL
    sizes[:: 4 * RATE] = SYNC // 2
    uneven = index_of(sizes, range(0, 60 * RATE, 4 * RATE))
    assert PacketActivity(uneven).in_transition(uneven.shown_pts.tolist()).mean() < 0.1
    sizes[30 * RATE + 25 : 30 * RATE + 35] = LARGE
    assert in_transition(index_of(sizes, range(0, 60 * RATE, 4 * RATE)), 31.0, 31.3) == [True, True]


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
    assert at(5.6) <= [found] <= at(5.6 + SETTLED_S), "the frame to look at lies behind the burst"


@pytest.mark.parametrize("sync_every_s", [None, 2.0])
def test_in_a_steady_stream_nothing_is_unseen(sync_every_s: float | None) -> None:
    assert PacketActivity(steady(12, sync_every_s=sync_every_s)).unseen(10) == []


@pytest.mark.parametrize("start_s", [4.3, 4.6, 4.8])
def test_what_the_sync_frame_behind_it_shows_is_not_unseen(start_s: float) -> None:
    assert PacketActivity(steady(12, sync_every_s=5, bursts={start_s: 0.2})).unseen(10) == []
    assert PacketActivity(steady(12, bursts={start_s: 0.2})).unseen(10) != [], "without that sync frame it is"


@pytest.mark.parametrize("start_s", [5.04, 5.3, 7.0, 8.0])
def test_what_begins_behind_a_sync_frame_is_not_shown_by_that(start_s: float) -> None:
    (found,) = PacketActivity(steady(12, sync_every_s=5, bursts={start_s: 0.2})).unseen(10)
    assert at(start_s + 0.2) <= [found] <= at(start_s + 0.04 + SETTLED_S)


def with_packets(share: float, *frames: int, frames_in_all: int = 20 * RATE) -> PacketIndex:
    """A sync frame every 4 s; the packets of these frames hold so large a share of a whole new picture above the usual."""
    sizes = np.full(frames_in_all, USUAL)
    sizes[:: 4 * RATE] = SYNC
    sizes[list(frames)] = USUAL + round(share * SYNC)
    return index_of(sizes, range(0, frames_in_all, 4 * RATE))


@pytest.mark.parametrize(("share", "found"), [(0.48, 0), (0.52, 1), (1.0, 1)])
def test_half_of_a_whole_new_picture_is_a_new_shot(share: float, found: int) -> None:
    assert len(PacketActivity(with_packets(share, 217)).unseen(10)) == found


def test_a_new_shot_is_one_burst_alone_and_movement_is_a_row_of_them() -> None:
    """From 4 to 8 s a burst every 0.8 s, each larger than the one at 13 s."""
    moving = [100 + place for place in range(5, 90, 20)]
    activity = PacketActivity(with_packets(0.9, *moving, 13 * RATE))
    (first,) = activity.unseen(1)
    assert at(13) < [first] <= at(13.04 + SETTLED_S)
    assert {first} < set(activity.unseen(10)), "the others are fewer and come behind it"


def test_of_two_new_shots_the_one_that_no_sync_frame_shows_for_longer_goes_first() -> None:
    sizes = np.full(20 * RATE, USUAL)
    sync = [0, 3 * RATE, 6 * RATE, 9 * RATE, 12 * RATE, 18 * RATE]
    sizes[sync] = SYNC
    sizes[[7 * RATE, 13 * RATE]] = SYNC
    activity = PacketActivity(index_of(sizes, sync))
    (first,) = activity.unseen(1)
    assert at(13) < [first] <= at(13.04 + SETTLED_S)
    assert len(activity.unseen(2)) == 2


@pytest.mark.parametrize(("deepest", "found"), [(None, 2), (60, 1), (5, 0), (74, 1), (75, 2)])
def test_changes_too_deep_behind_a_sync_frame_are_left_out(deepest: int | None, found: int) -> None:
    """One begins 25 frames behind a sync frame, the other 87: it is found up to half a second before it begins."""
    sizes = np.full(20 * RATE, USUAL)
    sync = [0, 150, 300, 450, 475]
    sizes[sync] = SYNC
    sizes[[175, 300 + 87]] = 2 * SYNC
    assert len(PacketActivity(index_of(sizes, sync)).unseen(10, deepest=deepest)) == found


@pytest.mark.slow
@given(st.lists(st.integers(2, 30), min_size=1, max_size=6, unique=True), st.integers(0, 8))
def test_the_strongest_changes_are_found_in_time_order_and_never_too_many(places: list[int], most: int) -> None:
    starts_s = [3.0 * place for place in sorted(places)]
    sizes, sync = np.full(100 * RATE, USUAL), range(3 * RATE - 10, 100 * RATE, 3 * RATE)
    sizes[list(sync)] = SYNC
    for rank, start_s in enumerate(starts_s):
        sizes[round(start_s * RATE)] = USUAL + round((0.6 + 0.15 * rank) * SYNC)
    found = PacketActivity(index_of(sizes, sync)).unseen(most)
    strongest = starts_s[-most:] if most else []
    assert [round(pts / TICKS / RATE - SETTLED_S) for pts in found] == [round(start_s) for start_s in strongest]
    assert found == sorted(set(found))


def test_a_change_at_the_very_end_has_no_settled_frame_behind_it() -> None:
    assert PacketActivity(steady(12, bursts={11.7: 0.3})).unseen(10) == []


@pytest.mark.slow
@given(
    st.lists(st.one_of(st.sampled_from([0, USUAL, LARGE, SYNC]), st.integers(1, 50_000)), min_size=1, max_size=110),
    st.lists(st.integers(0, 109), max_size=12),
)
def test_bursts_are_what_the_next_half_second_holds_above_the_usual(sizes: list[int], sync: list[int]) -> None:
    """The definition, packet by packet, where one window holds all."""
    index = index_of(sizes, sync)
    others = sorted(size for size, is_sync in zip(sizes, index.is_sync, strict=True) if not is_sync)
    usual = others[int(USUAL_SHARE * (len(others) - 1))] if others else 0
    syncs = [size for size, is_sync in zip(sizes, index.is_sync, strict=True) if is_sync]
    expected, wholes = [], []
    for first in range(len(sizes)):
        behind = range(first, min(len(sizes), first + -(-RATE // 2)))
        above = sum(max(0, sizes[place] - usual) for place in behind if not index.is_sync[place])
        seen = sum(bool(is_sync) for is_sync in index.is_sync[: first + 1])
        start = min(max(seen - 3, 0), max(0, len(syncs) - 6))
        whole = np.median(syncs[start : start + 6]) if len(syncs) >= MANY_SYNC else np.quantile(sizes, 0.995, method="inverted_cdf")
        wholes.append(float(whole))
        expected.append(above / max(1.0, float(whole)))
    times_s = index.pts * float(index.time_base)
    known = _whole_picture(index.size_bytes, index.is_sync)
    assert known == pytest.approx(wholes)
    assert _bursts(times_s, index.size_bytes, index.is_sync, known) == pytest.approx(expected)


# ---------------------------------------------------------------- followed by much


def followed(*, whole: int, first: int, behind: Sequence[int], decodes_all: bool = False) -> bool:
    """Whether much follows a frame whose own packet has `first` bytes, and which these packets follow; others have 10.

    Args:
        whole: bytes of each sync packet; there are enough of them to say what a whole picture costs.
    """
    sizes = np.full(20 * RATE, 10)
    sync = [second * RATE for second in range(0, 20, 2)]
    sizes[sync] = whole
    place = 9 * RATE if first != whole else 8 * RATE
    sizes[place : place + 1 + len(behind)] = [first, *behind]
    index = replace(index_of(sizes, sync), decodes_all=decodes_all)
    pts = index.shown_pts[place : place + 1].tolist()
    found = PacketActivity(index).is_followed_by_much(pts)
    assert found <= set(pts)
    return bool(found)


@pytest.mark.parametrize("first", [1000, 20], ids=["sync", "other"])
@pytest.mark.parametrize(
    ("behind", "decodes_all", "much"),
    [
        ([125, 125, 125, 125, 0], False, False),  # half of a whole picture to the byte
        ([126, 125, 125, 125, 0], False, True),
        ([0, 0, 0, 501, 0], False, True),
        ([0, 0, 0, 0, 0, 5000], False, False),
        ([75, 75, 75, 75, 0], True, False),  # where the decoder passes over nothing, three tenths are much
        ([75, 75, 76, 75, 0], True, True),
        ([75, 75, 76, 75, 0], False, False),
    ],
)
def test_a_frame_is_followed_by_much_where_a_fifth_of_a_second_holds_half_of_a_whole_picture(
    first: int, behind: list[int], decodes_all: bool, much: bool
) -> None:
    assert followed(whole=1000, first=first, behind=behind, decodes_all=decodes_all) is much


def test_a_sync_frame_is_compared_with_its_own_size_and_another_with_those_nearby() -> None:
    sizes = np.full(20 * RATE, 10)
    sync = [second * RATE for second in range(0, 20, 2)]
    sizes[sync] = 1000
    sizes[8 * RATE], sizes[8 * RATE + 1 : 8 * RATE + 8] = 2000, 150
    assert PacketActivity(index_of(sizes, sync)).is_followed_by_much(at(8.0, 8.04)) == set(at(8.04))
    sizes[8 * RATE] = 1000
    assert PacketActivity(index_of(sizes, sync)).is_followed_by_much(at(8.0, 8.04)) == set(at(8.0, 8.04))


def test_a_sync_frame_that_follows_is_not_counted() -> None:
    sizes = np.full(4 * RATE, 10)
    sync = [*range(0, 4 * RATE, 20), 42]
    sizes[sync] = 1000
    assert PacketActivity(index_of(sizes, sync)).is_followed_by_much(at(*np.array(sync) / RATE)) == set()


def test_the_last_frame_is_followed_by_nothing_and_of_none_none_is() -> None:
    activity = PacketActivity(steady(4))
    assert activity.is_followed_by_much(at(3.96)) == activity.is_followed_by_much([]) == set()


def test_all_that_begins_in_a_burst_is_followed_by_much_and_a_steady_stream_nowhere() -> None:
    index = steady(12, sync_every_s=2, bursts=CROSS_FADE)
    assert PacketActivity(index).is_followed_by_much(at(5.0, 5.2, 5.36, 5.6, 9.0)) == set(at(5.0, 5.2, 5.36))
    steadily = steady(12, sync_every_s=2)
    assert PacketActivity(steadily).is_followed_by_much(steadily.shown_pts.tolist()) == set()


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
    assert PacketActivity(index).is_followed_by_much(shown) <= set(shown)
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


def test_a_sync_frame_within_half_a_second_follows_and_the_frame_itself_does_not() -> None:
    activity = PacketActivity(index_of([USUAL] * 200, [0, 12, 25, 150]))
    frames = at(0, 0.48, 0.52, 1.0, 5.48, 5.52, 6.0, 7.0)
    assert activity.is_followed_by_sync(frames) == set(at(0, 0.52, 5.52))
    assert activity.is_followed_by_sync([]) == set()
    assert activity.is_followed_by_sync([-TICKS, -1000 * TICKS]) == {-TICKS}
