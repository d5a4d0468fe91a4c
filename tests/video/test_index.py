"""Which packets a decoder may start at where the flags of a file cannot be believed, and times where it states none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from vip.errors import InputError
from vip.records import PacketIndex
from vip.video.index import Columns, _believe_decoder, _force_increasing, read_index
from vip.video.packets import PacketCache
from vip.video.time_range import TimeRange

COUNT = 11


@dataclass
class Flagged:
    """A file in which every packet is flagged as sync; the decoder starts at all of them but one."""

    not_at: int | None

    @property
    def header(self) -> Any:
        return SimpleNamespace(formats=frozenset({"mp4"}))

    def starts_at(self, index: PacketIndex, position: int) -> bool:
        return position != self.not_at


def believed(not_at: int | None) -> list[int]:
    pts = np.arange(COUNT, dtype=np.int64)
    every = np.ones(COUNT, bool)
    index = PacketIndex(pts, pts, every, np.full(COUNT, 1000, np.int64), every, Fraction(1, 25))
    return np.flatnonzero(_believe_decoder(Flagged(not_at), index).is_sync).tolist()  # type: ignore[arg-type]


@pytest.mark.parametrize("not_at", [1, COUNT // 2, COUNT - 1])
def test_one_of_three_packets_at_which_the_decoder_does_not_start_makes_the_flags_untrue(not_at: int) -> None:
    assert believed(not_at) == [0]


def test_flags_are_believed_where_the_decoder_starts_at_each_of_the_three() -> None:
    assert believed(None) == list(range(COUNT))


def packet(pts: int | None, dts: int | None = None, *, size: int = 1000, sync: bool = False, hidden: bool = False) -> Any:
    return SimpleNamespace(pts=pts, dts=dts, size=size, is_keyframe=sync, is_discard=hidden)


@pytest.mark.parametrize(
    ("hidden", "shown"), [((False, False, False), [0, 1, 2]), ((True, False, False), [1, 2]), ((True, True, True), [0, 1, 2])]
)
def test_frames_are_hidden_as_the_file_says_unless_that_would_leave_none(hidden: tuple[bool, ...], shown: list[int]) -> None:
    columns = Columns()
    for number, is_hidden in enumerate(hidden):
        columns.add(packet(number, number, hidden=is_hidden))
    assert columns.index(Fraction(1, 25)).shown_pts.tolist() == shown


@pytest.mark.parametrize(
    ("pts", "dts", "row"), [(5, 3, (5, 3)), (None, 3, (3, 3)), (5, None, (5, 5)), (None, None, (0, 0)), (0, -2, (0, -2))]
)
def test_a_packet_without_one_of_its_times_has_the_other(pts: int | None, dts: int | None, row: tuple[int, int]) -> None:
    columns = Columns()
    assert columns.add(packet(pts, dts, size=7, sync=True)) == row[0]
    index = columns.index(Fraction(1, 25), is_sparse=True)
    assert (index.pts.tolist(), index.dts.tolist(), index.size_bytes.tolist(), index.is_sync.tolist()) == ([row[0]], [row[1]], [7], [True])
    assert index.is_sparse


class Told(Flagged):
    """A file with packets 40 ms apart, and a header as given; it notes what it is told."""

    def __init__(self, packets: Sequence[Any], **header: Any) -> None:
        super().__init__(None)
        plain = {"formats": frozenset({"matroska"}), "frames": 0, "duration_s": None, "reorders": False, "rate": Fraction(25)}
        self.given = SimpleNamespace(time_base=Fraction(1, 1000), **{**plain, **header})
        self.packets_of, self.read, self.lost, self.name = packets, 0, list[str](), "a.mkv"

    @property
    def header(self) -> Any:
        return self.given

    def packets(self) -> Iterator[Any]:
        for one in self.packets_of:
            self.read += 1
            yield one

    def all_frames(self) -> Iterator[Any]:
        return (SimpleNamespace(pts=None, dts=40 * number) for number in range(len(self.packets_of)))

    def lose(self, sentence: str) -> None:
        self.lost.append(sentence)


def row(count: int, *, sync_every: int = 10) -> list[Any]:
    return [packet(40 * number, 40 * number, sync=number % sync_every == 0) for number in range(count)]


@pytest.mark.parametrize(
    ("count", "header", "said"),
    [
        (50, {"frames": 50}, None),
        (49, {"frames": 50}, "49 of its 50 frames"),
        (49, {"frames": 50, "duration_s": 1.96}, None),
        (40, {"frames": 50, "duration_s": 2.0}, "40 of its 50 frames"),
        (50, {"duration_s": 2.0}, None),
        (50, {"duration_s": 4.0}, None),
        (50, {"duration_s": 5.0}, "2.0 of 5.0 s"),
        (50, {}, None),
    ],
)
def test_a_file_that_ends_early_is_said(count: int, header: dict[str, Any], said: str | None) -> None:
    video = Told(row(count), **header)
    assert len(read_index(video, TimeRange(), PacketCache())) == count  # type: ignore[arg-type]
    assert (said in video.lost[0]) if said else not video.lost


@pytest.mark.parametrize(
    ("span", "begin", "said"),
    [(TimeRange(), None, 1), (TimeRange(), 0, 0), (TimeRange(None, 1.0), None, 0), (TimeRange(0.0, 9.0), None, 1)],
)
def test_nothing_is_said_of_an_end_that_was_not_looked_for(span: TimeRange, begin: int | None, said: int) -> None:
    video = Told(row(50), frames=99)
    read_index(video, span, PacketCache(), begin=begin)  # type: ignore[arg-type]
    assert len(video.lost) == said


@pytest.mark.parametrize(("end_s", "read"), [(1.0, 27), (1.96, 50), (None, 50), (0.0, 2)])
def test_reading_ends_behind_the_last_frame_that_is_wanted(end_s: float | None, read: int) -> None:
    video = Told(row(50))
    read_index(video, TimeRange(None, end_s), PacketCache())  # type: ignore[arg-type]
    assert video.read == read


@pytest.mark.parametrize(
    ("packets", "header", "by_decoding"),
    [
        (row(20), {}, False),
        (row(20), {"formats": frozenset({"avi"}), "reorders": True}, True),
        (row(20), {"formats": frozenset({"avi"})}, False),
        ([row(20)[number] for number in (0, 3, 1, 2, *range(4, 20))], {"formats": frozenset({"avi"}), "reorders": True}, False),
        (row(20), {"reorders": True}, False),
        ([*row(19), packet(None, 760)], {}, True),
        ([packet(None, 0), *row(20)[1:]], {}, True),
        (row(10) * 2, {}, True),
        ([*row(19), packet(40, 760)], {}, False),
    ],
)
def test_times_that_are_made_up_missing_or_repeated_are_found_by_decoding(
    packets: list[Any], header: dict[str, Any], by_decoding: bool
) -> None:
    cache = PacketCache()
    index = read_index(Told(packets, **header), TimeRange(), cache)  # type: ignore[arg-type]
    assert index.by_decoding == by_decoding
    assert (len(cache) == 0) == by_decoding, "kept packets are found by their place in the index"


@pytest.mark.parametrize(
    ("frames", "stamps"),
    [
        ([(0, 0), (40, None), (80, None), (120, 5)], [0, 40, 80, 120]),
        ([(None, 0), (None, 40), (5, 80), (None, 120)], [0, 40, 80, 120]),
        ([(0, None), (80, None), (40, None), (120, None)], [0, 80, 120, 160]),
        ([(None, None)] * 3, [0, 40, 80]),
        ([(0, 7), (40, 47)], [0, 40]),
    ],
)
def test_the_times_of_a_decoder_that_rise_are_those_of_the_frames(frames: list[tuple[int | None, int | None]], stamps: list[int]) -> None:
    video = Told([packet(None, 0)])
    video.all_frames = lambda: iter(SimpleNamespace(pts=pts, dts=dts) for pts, dts in frames)  # type: ignore[method-assign]
    index = read_index(video, TimeRange(), PacketCache())  # type: ignore[arg-type]
    assert (index.by_decoding, index.pts.tolist()) == (True, stamps)
    assert index.is_sync.tolist() == [True] + [False] * (len(stamps) - 1)


def test_where_nothing_decodes_there_is_no_index() -> None:
    video = Told([packet(None, 0)])
    video.all_frames = lambda: iter(())  # type: ignore[method-assign]
    with pytest.raises(InputError, match="not one frame can be decoded"):
        read_index(video, TimeRange(), PacketCache())  # type: ignore[arg-type]


def test_a_file_without_a_packet_is_cut_off() -> None:
    with pytest.raises(InputError, match=r"a\.mkv holds a video stream without a readable frame"):
        read_index(Told([]), TimeRange(), PacketCache())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("stamps", "increasing", "faults"),
    [
        ([0, 40, 80], [0, 40, 80], 0),
        ([None, 40, None], [0, 40, 80], 2),
        ([40, 40, 40], [40, 80, 120], 2),
        ([80, 40, 200], [80, 120, 200], 1),
        ([], [], 0),
    ],
)
def test_a_time_that_is_missing_or_goes_back_is_a_tick_behind_the_one_before(
    stamps: list[int | None], increasing: list[int], faults: int
) -> None:
    assert _force_increasing(stamps, 40) == (increasing, faults)
