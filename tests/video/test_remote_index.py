"""The index of a video on a server: its own table of sync frames where that can be trusted and is long enough, else the whole file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from vip.errors import InputError
from vip.records import PacketIndex
from vip.video import remote_index
from vip.video.packets import PacketCache
from vip.video.remote_index import FEWEST_SYNC, read_remote_index
from vip.video.time_range import TimeRange

SECOND = 1000


class Table:
    """A video of 100 s with a sync frame each second and four frames between two; its table as given."""

    def __init__(self, table: Sequence[int] | None = None, *, formats: str = "mov", duration_s: float | None = 100.0) -> None:
        self.name = "a.mp4"
        self.header = SimpleNamespace(
            time_base=Fraction(1, SECOND),
            formats=frozenset({formats}),
            frames=0,
            duration_s=duration_s,
            rate=Fraction(5),
            reorders=False,
        )
        self.table = [SECOND * second for second in range(100)] if table is None else list(table)
        self.sought: list[int | None] = []
        self.lost: list[str] = []
        self.at = 0
        self.other: dict[int, Any] = {}
        """What comes instead of some packets, by PTS."""

    def sync_table(self) -> list[int]:
        return self.table

    def seek_to(self, stamp: int | None) -> None:
        self.sought.append(stamp)
        self.at = 0 if stamp is None else -(-stamp // SECOND) * SECOND

    def packets(self) -> Iterator[Any]:
        for pts in range(self.at, 100 * SECOND, SECOND // 5):
            plain = {"pts": pts, "dts": pts, "size": 100, "is_keyframe": pts % SECOND == 0, "is_discard": False}
            yield SimpleNamespace(**{**plain, **self.other.get(pts, {})})

    def starts_at(self, index: PacketIndex, position: int) -> bool:
        return True

    def lose(self, sentence: str) -> None:
        self.lost.append(sentence)


def index_of(video: Table, start_s: float | None = None, end_s: float | None = None) -> PacketIndex:
    return read_remote_index(video, TimeRange(start_s, end_s), PacketCache())  # type: ignore[arg-type]


def test_each_sync_frame_of_the_table_is_looked_up_once() -> None:
    video = Table()
    index = index_of(video)
    assert index.is_sparse
    assert index.pts.tolist() == video.sought == [SECOND * second for second in range(100)]
    assert index.is_sync.all()
    assert video.lost == []


def test_of_very_many_those_at_even_distances_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_index, "MOST_SYNC", 34)
    assert index_of(Table()).pts.tolist() == [3 * SECOND * number for number in range(34)]


def test_two_entries_that_lead_to_one_frame_are_one() -> None:
    stamps = [SECOND * second for second in range(100)]
    assert index_of(Table(sorted([*stamps, 500, 1500, 1600]))).pts.tolist() == stamps


@pytest.mark.parametrize("other", [{"is_keyframe": False}, {"pts": None}])
def test_what_is_no_sync_frame_is_left_out(other: dict[str, Any]) -> None:
    video = Table()
    video.other[7 * SECOND] = other
    assert index_of(video).pts.tolist() == [SECOND * second for second in range(100) if second != 7]


def test_where_none_of_them_is_one_the_file_is_damaged() -> None:
    video = Table()
    video.other = {pts: {"is_keyframe": False} for pts in video.table}
    with pytest.raises(InputError, match=r"a\.mp4 holds a video stream without a readable frame"):
        index_of(video)


@pytest.mark.parametrize(
    ("start_s", "end_s", "first", "last"), [(10.5, 60.5, 11, 60), (10.0, 60.0, 10, 60), (None, 50.0, 0, 50), (50.5, None, 51, 99)]
)
def test_of_a_part_the_sync_frame_before_it_is_looked_up_too_and_hidden(
    start_s: float | None, end_s: float | None, first: int, last: int
) -> None:
    video = Table()
    index = index_of(video, start_s, end_s)
    assert index.is_sparse
    assert index.shown_pts.tolist() == [SECOND * second for second in range(first, last + 1)]
    assert video.sought[0] == SECOND * (first if start_s is None or start_s == first else first - 1)
    assert video.sought[-1] == SECOND * last


@pytest.mark.parametrize(
    ("start_s", "seconds", "sought", "said"),
    [
        (None, FEWEST_SYNC - 1, None, "23 sync frames cannot be chosen from, so the part from --start to --end was read"),
        (40.5, 5, 40 * SECOND, "6 sync frames cannot be chosen from, so the part from --start to --end was read"),
        (40.0, 5, 40 * SECOND, "6 sync frames cannot be chosen from, so the part from --start to --end was read"),
    ],
)
def test_of_too_few_sync_frames_all_frames_of_the_part_are_read(start_s: float | None, seconds: int, sought: int | None, said: str) -> None:
    video = Table()
    end_s = (start_s or 0.0) + seconds - (0.5 if start_s is None else 0.0)
    index = index_of(video, start_s, end_s)
    assert not index.is_sparse
    wanted = range(round(SECOND * (start_s or 0.0)), round(SECOND * end_s) + 1)
    assert index.shown_pts.tolist() == [pts for pts in range(0, 100 * SECOND, SECOND // 5) if pts in wanted]
    assert video.sought == [sought]
    assert said in video.lost[0]


@pytest.mark.parametrize(
    ("video", "said"),
    [
        (Table(formats="mpegts"), "The file has no table of its sync frames, so the file was read"),
        (Table([]), "The file has no table of its sync frames, so the file was read"),
        (Table([SECOND * second for second in range(49)]), "The file has no table of its sync frames, so the file was read"),
        (Table([0, 99 * SECOND]), "2 sync frames cannot be chosen from, so the file was read"),
    ],
)
def test_a_table_that_cannot_be_trusted_is_none(video: Table, said: str) -> None:
    assert len(index_of(video)) == 500
    assert video.sought == [None]
    assert said in video.lost[0]


@pytest.mark.parametrize("table", [[SECOND * second for second in range(51)], list(range(0, 50_001, SECOND))])
@pytest.mark.parametrize("duration_s", [100.0, None])
def test_a_table_of_half_the_video_is_trusted(table: list[int], duration_s: float | None) -> None:
    assert index_of(Table(table, duration_s=duration_s)).pts.tolist() == table


def test_a_part_without_a_frame_is_refused_with_the_range_of_the_video() -> None:
    with pytest.raises(InputError, match=r"a\.mp4 has no sync frame up to -0:01\.00: it goes from 0:00\.00 to 1:39\.00"):
        index_of(Table(), None, -1.0)
