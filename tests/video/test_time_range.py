"""--start and --end: only frames within are shown, decoding starts before them where it must, and reading stops behind them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.media import Clips, linear, number_in
from vip.errors import InputError
from vip.records import PacketIndex
from vip.video import Video
from vip.video.time_range import TimeRange

NAMES = ["h264.mp4", "h264.ts", "h264_open_gop.mkv", "vp9.webm", "h264.h264", "mpeg4_b_frames.avi", "late.mp4", "gif.gif", "one_gop.mp4"]


def index_of(times: list[int], time_base: Fraction = Fraction(1, 1000)) -> PacketIndex:
    pts = np.array(times, np.int64)
    return PacketIndex(pts, pts, np.arange(len(pts)) == 0, np.ones_like(pts), np.ones(len(pts), bool), time_base)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("start_s", "end_s"), [(0.5, 1.0), (None, 0.7), (1.1, None), (0.52, 0.52)])
def test_exactly_the_frames_within_are_shown(clips: Clips, name: str, start_s: float | None, end_s: float | None) -> None:
    path = clips(name).path
    with Video(path) as whole:
        base = float(whole.time_base)
        first_s = int(whole.index.shown_pts[0]) * base
        low, high = (None if time_s is None else time_s + first_s for time_s in (start_s, end_s))
        wanted = [
            pts
            for pts in whole.index.shown_pts.tolist()
            if (low is None or pts * base >= low - 1e-6) and (high is None or pts * base <= high + 1e-6)
        ]
        truth = {frame.pts: number_in(frame.image) for frame in whole.frames(wanted)}
    with Video(path, span=TimeRange(low, high)) as video:
        assert video.index.shown_pts.tolist() == wanted
        assert set(video.index.sync_pts.tolist()) <= set(wanted)
        assert {frame.pts: number_in(frame.image) for frame in video.frames(wanted)} == truth
        info = video.info()
        assert (info.start_time_s, info.end_time_s) == pytest.approx((wanted[0] * base, wanted[-1] * base))
        assert info.frames == len(wanted)
        assert video.losses == []


def parts_from_the_middle(path: Path) -> Iterator[tuple[list[int], Video]]:
    """Yield ten parts of a video that begin at one frame, as the PTS in each and a reader of it."""
    with Video(path) as whole:
        stamps, base = whole.index.shown_pts.tolist(), float(whole.time_base)
    for last in range(20, 30):
        with Video(path, span=TimeRange(stamps[12] * base, stamps[last] * base)) as video:
            yield stamps[12 : last + 1], video


@pytest.mark.slow
@pytest.mark.parametrize("name", ["h264.mp4", "h264_open_gop.ts", "vp9.webm"])
def test_frames_nearby_lie_within_as_well(clips: Clips, name: str) -> None:
    for stamps, video in parts_from_the_middle(clips(name).path):
        for asked in stamps:
            near = [frame.pts for frame in video.frames_near([asked])]
            assert len(near) == 1
            assert asked <= near[0] <= stamps[-1]


@pytest.mark.parametrize("name", ["h264.mp4", "vp9.webm"])
def test_a_frame_near_the_end_is_not_one_behind_it(clips: Clips, name: str) -> None:
    for stamps, video in parts_from_the_middle(clips(name).path):
        assert [frame.pts for frame in video.frames_near([stamps[-1]])] == [stamps[-1]]


def test_pictures_within_are_those_of_plain_decoding(clips: Clips) -> None:
    path = clips("h264_open_gop.mp4").path
    truth = dict(linear(path))
    with Video(path, span=TimeRange(0.6, 1.2)) as video:
        frames = list(video.frames(video.index.shown_pts.tolist()))
    assert len(frames) > 10
    assert all(np.array_equal(frame.image, truth[frame.pts]) for frame in frames)


def test_what_lies_behind_the_end_is_not_indexed(clips: Clips) -> None:
    path = clips("h264.mp4").path
    with Video(path) as whole, Video(path, span=TimeRange(None, 0.2)) as video:
        assert len(video.index) < len(whole.index) / 2
        assert video.info().sha256 == whole.info().sha256, "of all bytes all the same"


def test_a_time_as_ffprobe_prints_it_is_that_frame(clips: Clips) -> None:
    path = clips("ntsc.mp4").path
    with Video(path) as whole:
        stamps = whole.index.shown_pts.tolist()
        printed = [round(float(pts * whole.time_base), 6) for pts in stamps]
    for place in (1, 7, 20, 39):
        with Video(path, span=TimeRange(printed[place], printed[place])) as video:
            assert video.index.shown_pts.tolist() == [stamps[place]]


@pytest.mark.parametrize(
    ("span", "said"),
    [
        (TimeRange(100, None), "has no frame from 1:40.00 on: it goes from 0:00.00 to 0:01.56. Change --start or --end."),
        (TimeRange(100, 200), "has no frame between 1:40.00 and 3:20.00: it goes from 0:00.00 to 0:01.56. Change --start or --end."),
        (TimeRange(None, -1), "has no frame up to -0:01.00: it goes from 0:00.00 to 0:01.56. Change --start or --end."),
        (TimeRange(1e30, None), "it goes from 0:00.00 to 0:01.56."),
        (TimeRange(None, -1e30), "it goes from 0:00.00 to 0:01.56."),
    ],
)
def test_a_part_that_is_not_there_is_refused_with_the_range_that_is(clips: Clips, span: TimeRange, said: str) -> None:
    path = clips("h264.mp4").path
    with pytest.raises(InputError) as raised:
        Video(path, span=span)
    assert str(raised.value).startswith(f"{path} has no frame ")
    assert said in str(raised.value)


@settings(deadline=None)
@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, unique=True), st.integers(-(10**6), 10**6), st.integers(0, 10**6))
def test_restricting_shows_what_lies_within_or_refuses(times: list[int], start: int, length: int) -> None:
    span = TimeRange(start / 1000, (start + length) / 1000)
    wanted = [time for time in times if start <= time <= start + length]
    if wanted:
        assert span.restrict(index_of(times), "x").shown_pts.tolist() == sorted(wanted)
    else:
        with pytest.raises(InputError):
            span.restrict(index_of(times), "x")


@pytest.mark.parametrize(
    ("start_s", "end_s", "shown"),
    [(0.0, 1.0, [2, 3, 5]), (None, 0.004, [2, 3]), (0.003, None, [3, 5]), (0.004, 0.004, []), (0.0, 0.001, []), (None, None, [2, 3, 5])],
)
def test_what_an_edit_list_hides_stays_hidden(start_s: float | None, end_s: float | None, shown: list[int]) -> None:
    index = replace(index_of([0, 1, 2, 3, 4, 5]), is_shown=np.array([False, False, True, True, False, True]))
    with nullcontext() if shown else pytest.raises(InputError, match="x has no frame between"):
        assert TimeRange(start_s, end_s).restrict(index, "x").shown_pts.tolist() == shown


def test_no_span_changes_nothing(tmp_path: Path) -> None:
    index = index_of([1, 2, 3])
    assert TimeRange().restrict(index, "x") is index
