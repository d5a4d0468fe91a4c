"""Frames kept in memory: as many as there is room for."""

from __future__ import annotations

import pytest
from av.video.frame import VideoFrame

from vip.video.frame_cache import FrameCache

WIDE = VideoFrame(64, 32, "gray")
ONE_BYTES = WIDE.planes[0].buffer_size


def held(cache: FrameCache) -> list[int]:
    return [pts for pts in range(10) if pts in cache]


def test_frames_are_kept_while_there_is_room() -> None:
    cache = FrameCache(2 * ONE_BYTES)
    for pts in range(4):
        cache.keep(pts, WIDE)
    assert held(cache) == [0, 1]
    assert cache.get(0) is WIDE
    assert cache.get(2) is None


def test_a_frame_that_is_kept_takes_no_second_place() -> None:
    cache = FrameCache(2 * ONE_BYTES)
    for pts in (0, 0, 1, 2):
        cache.keep(pts, WIDE)
    assert held(cache) == [0, 1]


def test_room_is_counted_in_bytes_of_all_planes() -> None:
    yuv = VideoFrame(64, 32, "yuv444p")
    assert sum(plane.buffer_size for plane in yuv.planes) == 3 * ONE_BYTES
    cache = FrameCache(4 * ONE_BYTES - 1)
    cache.keep(0, WIDE)
    cache.keep(1, yuv)
    assert held(cache) == [0]
    cache.clear()
    cache.keep(2, yuv)
    assert held(cache) == [2]


@pytest.mark.parametrize("room", [0, 1])
def test_where_there_is_no_room_for_one_nothing_is_kept(room: int) -> None:
    cache = FrameCache(room)
    cache.keep(0, WIDE)
    assert held(cache) == []


def test_a_cache_that_is_emptied_has_all_its_room() -> None:
    cache = FrameCache(2 * ONE_BYTES)
    for pts in (0, 1):
        cache.keep(pts, WIDE)
    cache.clear()
    assert (len(cache), list(cache), cache.get(0)) == (0, [], None)
    for pts in (1, 2, 3):
        cache.keep(pts, WIDE)
    assert held(cache) == [1, 2]
