"""Packets of an open file: which are yielded, which is the one that the index means, and what is said where they break off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from threading import Event
from types import SimpleNamespace
from typing import Any

import av.error
import numpy as np
import pytest

from vip.records import PacketIndex
from vip.video.demuxer import OpenFile


def packet(pts: int | None, dts: int | None = None, size: int = 10) -> Any:
    return SimpleNamespace(pts=pts, dts=pts if dts is None else dts, size=size)


def index_of(count: int = 6) -> PacketIndex:
    pts = np.arange(count, dtype=np.int64) * 40
    return PacketIndex(pts, pts, np.ones(count, bool), np.arange(10, 10 + count, dtype=np.int64), np.ones(count, bool), Fraction(1, 1000))


def demuxed(*given: Any, abandoned: bool = False) -> tuple[list[Any], list[str]]:
    """The packets that come of these packets and errors, and what is said."""

    def demux(_: object) -> Iterator[Any]:
        for one in given:
            if isinstance(one, Exception):
                raise one
            yield one

    event = Event()
    if abandoned:
        event.set()
    file: Any = SimpleNamespace(_container=SimpleNamespace(demux=demux), _stream=None, _abandoned=event, _losses=list[str]())
    return [one.pts for one in OpenFile._demux(file)], file._losses


def test_packets_without_bytes_are_passed_over() -> None:
    assert demuxed(packet(0), packet(40, size=0), packet(80)) == ([0, 80], [])


def test_where_a_file_breaks_off_what_came_is_used_and_the_damage_said() -> None:
    found, losses = demuxed(packet(0), av.error.InvalidDataError(1, "Invalid data"), packet(40))
    assert (found, losses) == ([0], ["The file is damaged (Invalid data); what can be read is used."])


def test_a_stream_that_appears_late_ends_the_packets_without_a_word() -> None:
    assert demuxed(packet(0), IndexError("list index out of range")) == ([0], [])


def test_nothing_more_is_read_for_who_has_gone() -> None:
    assert demuxed(packet(0), packet(40), abandoned=True) == ([], [])


@pytest.mark.parametrize(
    ("coming", "most", "found", "following"),
    [
        ([(0, 0, 10), (40, 40, 11), (80, 80, 12), (120, 120, 13)], 9, 80, 120),
        ([(80, 80, 12)], 9, 80, None),
        ([(80, 80, 99), (80, 80, 12)], 9, 80, None),
        ([(0, None, 10), (80, 80, 12)], 9, 80, None),
        ([(80, 80, 99), (120, 120, 13), (80, 80, 12)], 9, None, 80),
        ([(0, 0, 10), (40, 40, 11), (80, 80, 12)], 2, None, 80),
        ([], 9, None, None),
    ],
)
def test_a_packet_is_known_by_its_time_and_its_size_until_what_comes_lies_behind_it(
    coming: list[tuple[int, int | None, int]], most: int, found: int | None, following: int | None
) -> None:
    packets = iter([SimpleNamespace(pts=pts, dts=dts, size=size) for pts, dts, size in coming])
    file: Any = SimpleNamespace(index=index_of(), _packets=packets, _next=0)
    one = OpenFile._search(file, 2, most)
    assert (one and one.pts) == found
    assert file._next == (0 if found is None else 3)
    behind = next(packets, None)
    assert (behind and behind.pts) == following


@pytest.mark.parametrize(
    ("kept", "first", "last", "asked", "found"),
    [
        ([0, 1, 2, 3, 4, 5], 1, 4, [], [40, 80, 120, 160]),
        ([1, 2, 4], 1, 4, [3], [40, 80, 120, 160]),
        ([], 0, 2, [0], [0, 40, 80]),
        ([2], 1, 2, [1], [40, 80]),
        ([4, 5], 4, 9, [6], [160, 200]),
    ],
)
def test_only_from_the_first_packet_on_that_was_not_kept_the_file_is_read(
    kept: list[int], first: int, last: int, asked: list[int], found: list[int]
) -> None:
    sought: list[int] = []

    class File(OpenFile):
        def _packet_at(self, position: int) -> Any:
            sought.append(position)
            if position >= len(self.index):
                return None
            self._packets = iter([packet(40 * place) for place in range(position + 1, 6)])
            self._next = position + 1
            return packet(40 * position)

    file = File()
    file.index, file._next = index_of(), 0
    file._cached = SimpleNamespace(take={place: packet(40 * place) for place in kept}.get)  # type: ignore[assignment]
    assert [one.pts for one in file._read(first, last)] == found
    assert sought == asked


def test_packets_are_counted_as_they_are_given_and_anew_behind_a_seek() -> None:
    sought: list[int] = []

    class File(OpenFile):
        def _demux(self) -> Any:
            return iter([packet(400), packet(440)])

        def _rewind(self) -> None:
            sought.append(-1)

    file = File()
    file._container = SimpleNamespace(seek=lambda stamp, stream: sought.append(stamp))  # type: ignore[assignment]
    file._stream, file._packets, file._next = SimpleNamespace(), iter([packet(0), packet(40), packet(80)]), 0  # type: ignore[assignment]
    assert [one.pts for one in islice(file.packets(), 2)] == [0, 40]
    assert file._next == 2
    file.seek_to(400)
    assert (file._next, [one.pts for one in file.packets()], file._next, sought) == (0, [400, 440], 2, [400])
    file.seek_to(None)
    assert sought == [400, -1]


def test_a_place_that_a_container_cannot_go_to_is_read_from_where_it_stands() -> None:
    class File(OpenFile):
        def _demux(self) -> Any:
            return iter([packet(0)])

    def refuse(stamp: int, stream: object) -> None:
        raise av.error.InvalidDataError(1, "Invalid data")

    file = File()
    file._container = SimpleNamespace(seek=refuse)  # type: ignore[assignment]
    file._stream, file._next = SimpleNamespace(), 7  # type: ignore[assignment]
    file.seek_to(400)
    assert [one.pts for one in file.packets()] == [0]


@pytest.mark.parametrize("place", [0, 1, 5])
def test_where_only_some_packets_are_known_one_alone_is_read(place: int) -> None:
    sought: list[int] = []

    class File(OpenFile):
        def _demux(self) -> Any:
            yield from (packet(sought[-1] + number) for number in range(9))

    file = File()
    file.index, file._next = replace(index_of(), is_sparse=True), 0
    file._cached = SimpleNamespace(take={}.get)  # type: ignore[assignment]
    file._container = SimpleNamespace(seek=lambda stamp, stream: sought.append(stamp))  # type: ignore[assignment]
    file._stream = SimpleNamespace()  # type: ignore[assignment]
    assert [one.pts for one in file._read(place, place)] == sought == [40 * place]


class Sought(OpenFile):
    """Six packets; `lands`: the place where a seek to a time ends up, for those times that can be sought."""

    def __init__(self, lands: dict[int, int], *, formats: str = "mov", shows_first: bool = False) -> None:
        self.index = replace(index_of(), pts=index_of().pts + 80)
        self.done: list[object] = []
        self._sync, self._next, self._at = np.array([0, 2, 3, 4]), 0, 0
        self._lands, self._shows_first = lands, shows_first
        self._container: Any = SimpleNamespace(seek=self._go_to, format=SimpleNamespace(name=formats))
        self._stream: Any = SimpleNamespace()
        self._packets = self._demux()

    def _go_to(self, stamp: int, stream: object) -> None:
        self.done.append(stamp)
        if stamp not in self._lands:
            raise av.error.InvalidDataError(1, "Invalid data")
        self._at = self._lands[stamp]

    def _demux(self) -> Any:
        return iter([packet(80 + 40 * place, 40 * place, 10 + place) for place in range(self._at, 6)])

    def _rewind(self) -> None:
        self.done.append("rewind")
        self._at = self._next = 0
        self._packets = self._demux()

    def _prime(self) -> None:
        self.done.append("prime")
        if self._shows_first:
            self._take_next()


@pytest.mark.parametrize(
    ("file", "position", "done"),
    [
        (Sought({240: 4}), 4, [240]),
        (Sought({240: 2}), 4, [240]),
        (Sought({160: 4}, formats="matroska,webm"), 4, [160]),
        (Sought({240: 5, 200: 3}), 4, [240, 200]),
        (Sought({240: 5, 200: 5, 160: 2}), 4, [240, 200, 160]),
        (Sought({240: 5, 200: 5, 160: 5}), 4, [240, 200, 160, "rewind", "prime"]),
        (Sought({240: 5, 200: 5, 160: 5}, shows_first=True), 4, [240, 200, 160, "rewind", "prime"]),
        (Sought({}), 4, [240, "rewind", "prime"]),
        (Sought({}, shows_first=True), 1, [120, "rewind", "prime"]),
        (Sought({}, shows_first=True), 5, [280, "rewind", "prime"]),
        (Sought({80: 3}), 0, []),
        (Sought({}, formats="mpegts"), 4, []),
    ],
)
def test_where_a_seek_leads_too_far_earlier_ones_are_tried_and_at_last_the_start(file: Sought, position: int, done: list[object]) -> None:
    found = file._packet_at(position)
    assert found is not None
    assert (found.size, file._next, file.done) == (10 + position, position + 1, done)
    following = file._take_next()
    assert (following and following.size) == (None if position == 5 else 11 + position)


def test_the_first_packet_is_read_without_being_shown_before() -> None:
    file = Sought({})
    assert [one and one.size for one in (file._packet_at(4), file._packet_at(0))] == [14, 10]
    assert file.done == [240, "rewind", "prime", 80, "rewind"]


def test_behind_the_last_packet_there_is_none() -> None:
    assert Sought({})._packet_at(6) is None
