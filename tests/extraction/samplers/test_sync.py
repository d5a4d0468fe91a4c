"""Which frames are looked at, and how picks are spread over time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.extraction.indices import RATE, at, index_of, steady
from tests.media import Clips, remux
from vip import registry
from vip.errors import BackendError
from vip.extraction.samplers.sync import (
    FEWEST_AT_LEAST,
    FEWEST_PER_KEYFRAME,
    FEWEST_PER_KEYFRAME_IN_LONG_GOPS,
    FEWEST_PER_KEYFRAME_IN_MOMENTS,
    LONG_GOP,
    MOST_AT_LEAST,
    MOST_PER_KEYFRAME_IN_SHORT,
    NEAREST_IN_SHORT_S,
    NEAREST_S,
    ROW_S,
    SHORT_FRAMES,
    SyncSampler,
    candidates_in_short_video,
    fill,
    is_short,
    last_of_rows,
    outside_transitions,
    thin,
)
from vip.extraction.transitions import PacketActivity
from vip.records import Frame, PacketIndex
from vip.video import Video

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


def test_of_two_that_are_as_near_thin_takes_the_earlier() -> None:
    assert thin([0, 30, 70, 100], 3) == [0, 30, 100]
    assert thin([0, 31, 70, 100], 3) == [0, 31, 100]
    assert thin([0, 29, 70, 100], 3) == [0, 70, 100]


def test_thin_spreads_over_time_and_not_over_number() -> None:
    crowded = [*range(0, 1000, 1), *range(1000, 100_000, 1000)]
    chosen = np.array(thin(crowded, 20))
    assert np.diff(chosen).max() < 2 * np.diff(chosen).min() + 2000


@pytest.mark.slow
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


@pytest.mark.parametrize("pick", [0, 4, 9])
def test_fill_finds_all_that_is_missing_before_the_first_pick_and_behind_the_last(pick: int) -> None:
    for fewest in range(1, 10):
        filled = fill([10 * pick], range(0, 100, 10), fewest)
        assert (len(filled), 10 * pick in filled) == (fewest, True)


@pytest.mark.slow
@given(st.integers(1, 9), st.data())
@settings(deadline=None)
def test_fill_leaves_no_gap_longer_than_the_best_possible(frames: int, data: st.DataObject) -> None:
    """Against all ways to add as many frames."""
    shown = list(range(frames))
    picked = sorted(data.draw(st.sets(st.sampled_from(shown), min_size=1)))
    fewest = data.draw(st.integers(len(picked), frames))
    others = [number for number in shown if number not in picked]

    def longest_gap(chosen: Iterable[int]) -> int:
        return int(np.diff([-1, *sorted(chosen), frames]).max())

    best = min(longest_gap([*picked, *added]) for added in combinations(others, fewest - len(picked)))
    assert longest_gap(fill(picked, shown, fewest)) == best


@pytest.mark.slow
@given(times.filter(lambda pts: len(pts) > 1), st.integers(2, 50))
def test_thin_leaves_no_hole_that_the_video_does_not_have(pts: list[int], most: int) -> None:
    even = (pts[-1] - pts[0]) / (most - 1)
    assert np.diff(thin(pts, most)).max() <= even + np.diff(pts).max() + 1


def test_thin_of_evenly_spaced_frames_is_even_and_full() -> None:
    chosen = thin(range(0, 100_000, 40), 100)
    assert len(chosen) == 100
    assert np.ptp(np.diff(chosen)) <= 2 * 40


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
    assert len(SyncSampler(None).sample(source(1001, 500), keyframes=12)) == 30
    assert len(SyncSampler(None).sample(source(1001, 500), keyframes=1)) == FEWEST_AT_LEAST


def planned(video: Source, keyframes: int) -> list[int]:
    """What is looked at where nobody asks for a number of candidates."""
    return SyncSampler(None).sample(video, keyframes=keyframes, candidates=candidates_in_short_video(video.index, keyframes))


@pytest.mark.parametrize("keyframes", [1, 4, 5, 12, 33])
def test_of_a_short_video_six_frames_a_keyframe_are_looked_at(keyframes: int) -> None:
    chosen = planned(source(SHORT_FRAMES, 500), keyframes)
    assert len(chosen) == max(FEWEST_AT_LEAST, MOST_PER_KEYFRAME_IN_SHORT * keyframes)


def test_but_in_a_short_video_not_so_many_that_they_show_the_same() -> None:
    """Eight seconds have room for 40 frames a fifth of a second apart; where less than 2.5 are left a keyframe, nearer ones are taken."""
    assert len(planned(source(201, 201), 12)) == round(8 / NEAREST_IN_SHORT_S) == 40
    assert len(planned(source(201, 201), 20)) == FEWEST_PER_KEYFRAME * 20
    assert len(planned(source(1, 1), 12)) == 1


def test_sync_frames_of_a_short_video_that_are_six_a_keyframe_are_taken_as_they_are() -> None:
    video = source(SHORT_FRAMES, 20)
    assert planned(video, 8) == video.index.sync_pts.tolist()
    assert len(planned(video, 9)) == 6 * 9


@pytest.mark.parametrize(
    ("frames", "about", "short"),
    [
        (SHORT_FRAMES, {}, True),
        (SHORT_FRAMES + 1, {}, False),
        (1, {}, True),
        (SHORT_FRAMES, {"is_sparse": True}, False),
        (SHORT_FRAMES, {"by_decoding": True}, False),
        (SHORT_FRAMES, {"decodes_all": True}, True),
        (SHORT_FRAMES, {"is_shown": np.zeros(SHORT_FRAMES, bool)}, False),
        (2 * SHORT_FRAMES, {"is_shown": np.arange(2 * SHORT_FRAMES) < SHORT_FRAMES}, True),  # the part between --start and --end
    ],
)
def test_short_is_a_video_of_a_thousand_frames_whose_packets_are_all_known(frames: int, about: dict[str, Any], short: bool) -> None:
    index = replace(source(frames, 500).index, **about)
    assert is_short(index) is short
    if len(index.shown_pts):
        assert len(planned(Source(index), 12)) == (min(frames, 72) if short else 30)


def test_a_number_of_candidates_that_is_asked_for_holds_also_in_a_short_video() -> None:
    assert len(SyncSampler(None).sample(source(SHORT_FRAMES, 500), keyframes=12, candidates=15)) == 15


def test_sync_adds_more_where_the_decoder_passes_over_every_frame_anyway() -> None:
    """Two sync frames each."""
    exactly, longer = source(2 * LONG_GOP, LONG_GOP + 1), source(2 * LONG_GOP + 1, LONG_GOP + 1)
    assert len(exactly.index.sync_pts) == len(longer.index.sync_pts) == 2
    assert len(SyncSampler(None).sample(exactly, keyframes=12)) == 30
    assert len(SyncSampler(None).sample(longer, keyframes=12)) == 6 * 12
    assert len(SyncSampler(None).sample(longer, keyframes=1)) == FEWEST_AT_LEAST


def test_where_the_decoder_passes_over_nothing_the_sync_frames_have_to_do_if_there_are_two_a_keyframe() -> None:
    video = source(6000, 100)
    dear = Source(replace(video.index, decodes_all=True))
    assert SyncSampler(None).sample(dear, keyframes=30) == dear.index.sync_pts.tolist()
    assert len(SyncSampler(None).sample(video, keyframes=30)) == 75
    assert len(SyncSampler(None).sample(dear, keyframes=31)) == 78


def test_sync_thins_out_a_file_of_nothing_but_sync_frames() -> None:
    chosen = SyncSampler(None).sample(source(90_000, 1), keyframes=12)
    assert MOST_AT_LEAST * 0.9 <= len(chosen) <= MOST_AT_LEAST


def test_sync_takes_every_frame_of_a_very_short_video() -> None:
    assert len(SyncSampler(None).sample(source(7, 7), keyframes=12)) == 7


@pytest.mark.parametrize(
    "name", ["h264.mp4", "h264_open_gop.ts", "vp9.webm", "uneven.mkv", "mjpeg.avi", "gif.gif", "h264.h264", "one_frame.mp4"]
)
@pytest.mark.parametrize("keyframes", [1, 3, 1000])
def test_sync_on_real_files_gives_frames_that_exist_the_sync_frames_among_them(clips: Clips, name: str, keyframes: int) -> None:
    with Video(clips(name).path) as video:
        shown, sync = video.index.shown_pts.tolist(), video.index.sync_pts.tolist()
        chosen = SyncSampler(None).sample(video, keyframes=keyframes)
        assert chosen == sorted(set(chosen))
        assert set(last_of_rows(sync, ROW_S / float(video.time_base))) <= set(chosen) <= set(shown)
        fewest = max(FEWEST_AT_LEAST, math.ceil(FEWEST_PER_KEYFRAME * keyframes))
        seconds = float((shown[-1] - shown[0]) * video.time_base)
        in_a_moment = max(math.ceil(FEWEST_PER_KEYFRAME_IN_MOMENTS * keyframes), round(seconds / NEAREST_S))
        wanted = min(fewest, in_a_moment) if is_short(video.index) else fewest
        assert len(chosen) == max(1, min(len(shown), wanted))


def test_sync_does_not_choose_what_an_edit_list_hides(clips: Clips, tmp_path: Path) -> None:
    remux(clips("h264.mp4").path, tmp_path / "cut.mp4", skip_s=Fraction(1, 2))
    with Video(tmp_path / "cut.mp4") as video:
        chosen = SyncSampler(None).sample(video, keyframes=100)
        assert len(video.index) > len(chosen) == len(video.index.shown_pts)
        assert [frame.pts for frame in video.frames(chosen)] == chosen


# ---------------------------------------------------------------- calm ones


def test_a_restless_pick_gives_way_to_the_nearest_calm_frame() -> None:
    index = steady(12, bursts={5.0: 0.6})
    assert outside_transitions(at(2.0, 8.0), index) == at(2.0, 8.0)
    assert outside_transitions(at(2.0, 4.8, 8.0), index) == at(2.0, 4.0, 8.0), "behind it lies the burst"
    assert outside_transitions(at(2.0, 5.64, 8.0), index) == at(2.0, 6.44, 8.0)


def test_a_restless_sync_frame_stays() -> None:
    index = steady(12, sync_every_s=5, bursts={5.04: 0.6})
    assert PacketActivity(index).in_transition(at(5.0)).all()
    assert outside_transitions(at(0.0, 5.0, 10.0), index) == at(0.0, 5.0, 10.0)


def test_where_all_around_is_restless_the_pick_stays() -> None:
    index = index_of(1000 * np.exp(1.2 * np.arange(12 * RATE) / RATE))
    assert PacketActivity(index).in_transition(at(9.2, 9.6, 10.0, 10.4, 10.8)).all()
    assert outside_transitions(at(10.0), index) == at(10.0)


def test_two_restless_picks_never_become_one() -> None:
    close = outside_transitions(at(4.76, 4.8, 4.84, 4.88), steady(12, bursts={5.0: 0.6}))
    assert len(set(close)) == 4
    assert close == sorted(close)
    between = steady(12, bursts={4.56: 0.2, 6.44: 0.3})
    assert outside_transitions(at(5.32), between) == outside_transitions(at(6.52), between) == at(5.72)
    assert outside_transitions(at(5.32, 6.52), between) == at(5.72, 6.52), "the one calm frame is that of the first"


def test_a_busy_stretch_keeps_its_picks() -> None:
    """None passes its neighbour, so that a restless scene is not left without a candidate."""
    index = steady(12, bursts={5.0: 0.3, 5.6: 0.3, 6.2: 0.3, 6.8: 0.3})
    picked = at(*np.arange(4.0, 8.1, 0.48).tolist())
    found = outside_transitions(picked, index)
    assert found != picked
    assert all(before < new < behind for before, new, behind in zip(found, found[1:], picked[2:], strict=False))


@pytest.mark.slow
@given(st.lists(st.sampled_from([500, 1000, 8000]), min_size=1, max_size=150), st.data())
def test_calmer_picks_are_as_many_exist_and_are_restless_only_where_they_were(sizes: list[int], data: st.DataObject) -> None:
    index = index_of(sizes, sync=range(0, len(sizes), 40))
    picked = sorted(data.draw(st.sets(st.sampled_from(index.shown_pts.tolist()), min_size=1)))
    found = outside_transitions(picked, index)
    assert found == sorted(set(found))
    assert len(found) == len(picked)
    new = set(found) - set(picked)
    assert new <= set(index.shown_pts.tolist())
    assert not PacketActivity(index).in_transition(sorted(new)).any()
    gone = sorted(set(picked) - set(found))
    assert PacketActivity(index).in_transition(gone).all()
    assert not set(gone) & set(index.sync_pts.tolist())


def test_sync_looks_at_a_shot_that_no_sync_frame_shows_and_avoids_its_cross_fade() -> None:
    index = steady(60, bursts={31.0: 0.6})
    video = Source(index)
    chosen = SyncSampler(None).sample(video, keyframes=12)
    assert len(chosen) == 12 * FEWEST_PER_KEYFRAME_IN_LONG_GOPS
    assert not PacketActivity(index).in_transition(chosen).any()
    (unseen,) = PacketActivity(index).unseen(6)
    assert any(unseen <= pts <= unseen + 1000 for pts in chosen)
    assert any(31.6 <= pts / 1000 <= 33 for pts in SyncSampler(None).sample(video, keyframes=2))


def test_sync_frames_that_are_enough_are_taken_as_they_are() -> None:
    video = Source(steady(120, sync_every_s=2, bursts={second + 1.5: 0.2 for second in range(2, 120, 6)}))
    assert PacketActivity(video.index).in_transition(at(4.0, 10.0)).all()
    assert SyncSampler(None).sample(video, keyframes=12) == at(*range(0, 120, 2))
    assert len(video.index) == 120 * RATE


@pytest.mark.parametrize(("start_s", "keyframes", "found"), [(98.0, 4, False), (98.0, 11, True), (100.5, 11, True)])
def test_a_shot_that_no_sync_frame_shows_joins_where_gaps_are_filled(start_s: float, keyframes: int, found: bool) -> None:
    """25 sync frames are enough for 4 keyframes, and are looked at first (`hidden_shots`); for 11, the gaps between them are filled."""
    index = steady(200, sync_every_s=8, bursts={start_s: 0.2})
    chosen = SyncSampler(None).sample(Source(index), keyframes=keyframes)
    assert any(start_s < pts / 1000 <= start_s + 1.2 for pts in set(chosen) - set(index.sync_pts.tolist())) == found


def test_sync_refuses_a_detail() -> None:
    with pytest.raises(BackendError, match="takes no detail"):
        SyncSampler("fast")


@pytest.mark.parametrize(("name", "is_exact"), [("sync", False), ("uniform", True), ("every", True), ("katna", True)])
def test_only_sync_leaves_it_to_the_decoder_which_of_the_frames_just_behind_is_cheapest(name: str, is_exact: bool) -> None:
    """Who asks for evenly spaced frames, or for those beside a change, means them."""
    assert registry.sampler(name).capabilities.exact is is_exact


def test_sixteen_sync_frames_a_keyframe_are_not_too_many() -> None:
    assert len(SyncSampler(None).sample(source(960 * 10, 10), keyframes=60)) == 960
    assert len(SyncSampler(None).sample(source(961 * 10, 10), keyframes=60)) <= 960


def test_of_sync_frames_in_a_row_the_last_is_taken_and_of_nothing_but_such_one_every_third_of_a_second() -> None:
    assert last_of_rows([0, 1000, 1100, 1250, 3000, 3300], 300) == [0, 1250, 3000, 3300]
    assert last_of_rows(range(0, 1001, 100), 300) == [100, 400, 700, 1000]
    assert last_of_rows([5], 300) == [5]
    assert last_of_rows([], 300) == []


@given(times, st.integers(1, 3000))
def test_rows_are_thinned_so_that_each_sync_frame_is_near_one_that_stays(pts: list[int], nearest: int) -> None:
    kept = last_of_rows(pts, nearest)
    assert set(kept) <= set(pts)
    assert all(gap >= nearest for gap in np.diff(kept).tolist())
    assert all(any(0 <= other - stamp < nearest for other in kept) for stamp in pts)


def test_candidates_that_are_asked_for_are_looked_at_also_where_that_is_dear() -> None:
    dear = Source(replace(source(6000, 100).index, decodes_all=True))
    assert len(SyncSampler(None).sample(dear, keyframes=12, candidates=100)) == 100


@pytest.mark.parametrize(("asked", "joins"), [(28, True), (27, True), (26, False), (25, False)])
def test_shots_that_no_sync_frame_shows_join_the_candidates_asked_for_where_there_is_room_for_all(asked: int, joins: bool) -> None:
    """25 sync frames, and two shots between them."""
    index = steady(200, sync_every_s=8, bursts={98.0: 0.2, 138.0: 0.2})
    sync, unseen = set(index.sync_pts.tolist()), PacketActivity(index).unseen(most=6)
    chosen = set(SyncSampler(None).sample(Source(index), keyframes=12, candidates=asked))
    assert (len(chosen), len(unseen)) == (asked, 2)
    assert sync <= chosen
    assert [any(start <= pts <= start + 1000 for pts in chosen - sync) for start in unseen] == [joins, joins]
