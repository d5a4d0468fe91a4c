"""Calls into FFmpeg that are under way: each has a number of its own, and none is left behind."""

from __future__ import annotations

import pytest

from tests.media import Clips
from vip.video import Video
from vip.video.stall_guard import FfmpegCalls, inside_ffmpeg


def test_a_call_under_way_has_a_number_of_its_own_until_it_comes_back() -> None:
    calls = FfmpegCalls()
    with calls:
        first = calls.running()
    assert len(first) == 1
    assert calls.running() == set()
    seen = []
    for _ in calls.each(iter([1, 2])):
        assert calls.running() == set(), "what is done with an item is no call"
        with calls:
            seen.append(calls.running())
    assert calls.running() == set()
    assert len({*map(frozenset, [first, *seen])}) == 3


def test_a_call_that_fails_has_come_back() -> None:
    calls = FfmpegCalls()
    with pytest.raises(ValueError, match="damaged"), calls:
        raise ValueError("damaged")
    assert calls.running() == set()
    with pytest.raises(ZeroDivisionError):
        list(calls.each(1 // number for number in (1, 0)))
    assert calls.running() == set()


def test_nothing_is_under_way_behind_a_video(clips: Clips) -> None:
    with Video(clips("h264.mp4").path) as video:
        assert list(video.frames(video.index.sync_pts.tolist()))
        assert inside_ffmpeg.running() == set()
