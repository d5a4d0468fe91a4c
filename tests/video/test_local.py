"""A local file is read once: hashed as it passes, its packets kept for decoding, its start for other readers."""

from __future__ import annotations

import hashlib
import sys
import threading
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vip.video.packets
from tests.media import Clips, number_in
from vip.errors import InputError
from vip.pipeline import extract
from vip.video import FileSource, Video
from vip.video.index import Columns
from vip.video.local import Local, LocalFile
from vip.video.packets import PacketCache

CONTAINERS = ["h264.mp4", "h264_faststart.mp4", "h264_fragmented.mp4", "h264.mkv", "h264.ts", "vp9.webm"]
CONTAINERS += ["mpeg4.avi", "h264.h264", "mpeg2.mxf", "gif.gif"]
CODECS = ["h264.mp4", "h264_open_gop.ts", "hevc_open_gop.mp4", "vp9.webm", "h264_444_cavlc.mp4", "h264_intra_refresh.ts", "av1.mkv"]
DATA = bytes(range(256)) * 4000


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all reads from local files."""
    sizes: list[int] = []

    class Counting:
        def __init__(self, file: object) -> None:
            self.file = file

        def read(self, size: int) -> bytes:
            data: bytes = self.file.read(size)  # type: ignore[attr-defined]
            sizes.append(len(data))
            return data

        def __getattr__(self, name: str) -> object:
            return getattr(self.file, name)

    def opening(self: LocalFile, *arguments: object) -> None:
        plain(self, *arguments)  # type: ignore[arg-type]
        self._file = Counting(self._file)  # type: ignore[assignment]

    plain = LocalFile.__init__
    monkeypatch.setattr(LocalFile, "__init__", opening)
    return sizes


@pytest.mark.parametrize("name", CONTAINERS)
def test_the_hash_is_that_of_the_file(clips: Clips, name: str) -> None:
    path = clips(name).path
    with Video(path) as video:
        assert video.info().sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_twin_that_is_closed_leaves_what_it_shares(clips: Clips, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Local] = []
    monkeypatch.setattr(Local, "close", lambda held: closed.append(held))
    with Video(clips("h264.mp4").path) as video:
        for _ in range(2):
            with video.reopen() as twin, twin.reopen() as another:
                assert len(list(another.frames(twin.index.sync_pts.tolist()))) == len(twin.index.sync_pts)
        assert closed == []
    assert len(closed) == 1


@pytest.fixture(scope="module")
def data_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("local") / "data"
    path.write_bytes(DATA)
    return path


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, len(DATA)), st.integers(1, 300_000)), max_size=12), st.integers(0, 12))
def test_in_whatever_order_a_file_is_read_its_hash_is_the_same(data_file: Path, reads: list[tuple[int, int]], opened: int) -> None:
    local = Local(FileSource(data_file))
    file = local.open()
    for number, (place, size) in enumerate(reads):
        if number == opened:
            file.mark_opened()
        file.seek(place)
        data = file.read(size)
        assert data == DATA[place : place + len(data)]
        assert len(data) > 0 or place == len(DATA)
    file.close()
    assert local.sha256() == hashlib.sha256(DATA).hexdigest()


@pytest.mark.parametrize(("offset", "whence"), [(-1, 0), (-30_000, 1), (-(2**40), 2)])
def test_a_place_that_no_file_has_is_refused_without_an_error(clips: Clips, offset: int, whence: int) -> None:
    """Damage may name it; an error would end what FFmpeg can still read."""
    local = Local(FileSource(clips("h264.mp4").path))
    with closing(local), closing(local.open()) as file:
        file.seek(100)
        assert file.seek(offset, whence) < 0
        assert file.tell() == 100


@pytest.mark.parametrize(
    ("offset", "whence", "place"), [(7, 0, 7), (7, 1, 107), (-100, 1, 0), (-1, 2, len(DATA) - 1), (0, 2, len(DATA)), (9, 2, len(DATA) + 9)]
)
def test_a_reader_goes_to_any_place_that_a_file_has(data_file: Path, offset: int, whence: int, place: int) -> None:
    local = Local(FileSource(data_file))
    with closing(local), closing(local.open()) as file:
        assert file.read(100) == DATA[:100]
        assert file.seek(offset, whence) == file.tell() == place
        assert file.read(5) == DATA[place : place + 5]
        assert file.tell() == min(place + 5, max(place, len(DATA)))


def test_all_that_is_left_is_read_where_no_size_is_asked_for(data_file: Path) -> None:
    local = Local(FileSource(data_file))
    with closing(local), closing(local.open()) as file:
        file.mark_opened()
        file.seek(1000)
        assert file.read() == DATA[1000:]
        assert file.read() == b""


@pytest.mark.parametrize(("most_bytes", "kept"), [(100, [0]), (199, [0]), (200, [0, 500]), (1000, [0, 500, 900]), (99, [])])
def test_so_much_is_kept_of_what_was_read_to_open_it_and_no_more(
    data_file: Path, monkeypatch: pytest.MonkeyPatch, counted: list[int], most_bytes: int, kept: list[int]
) -> None:
    monkeypatch.setattr("vip.video.local.MOST_HEAD_BYTES", most_bytes)
    local = Local(FileSource(data_file))
    with (
        closing(local),
        closing(local.open()),
        closing(local.open()) as first,
        closing(local.open()) as second,
    ):
        for place in (0, 500, 900, 500):
            first.seek(place)
            first.read(100)
        assert [place for place in (0, 500, 900) if local.read_head(place, 100)] == kept
        first.mark_opened()
        first.seek(300)
        first.read(100)
        assert local.read_head(300, 100) == b"", "it is open by now"
        counted.clear()
        for place in (0, 500, 900):
            second.mark_opened()
            second.seek(place + 50)
            assert second.read(100) == DATA[place + 50 : place + (100 if place in kept else 150)]
        assert len(counted) == 3 - len(kept)


@pytest.mark.parametrize(
    ("place", "size", "found"),
    [(10, 5, DATA[10:15]), (10, 500, DATA[10:30]), (29, 5, DATA[29:30]), (30, 5, b""), (9, 5, b""), (100, 5, DATA[100:105])],
)
def test_what_was_read_to_open_it_is_found_by_its_place(data_file: Path, place: int, size: int, found: bytes) -> None:
    local = Local(FileSource(data_file))
    local.keep_head(10, DATA[10:30])
    local.keep_head(10, b"something else")
    local.keep_head(100, DATA[100:200])
    assert local.read_head(place, size) == found


def test_a_file_whose_hash_is_finished_is_read_on_without_being_hashed_twice(data_file: Path) -> None:
    """Its digest comes of a thread that reads the rest by itself; what else is read would only be kept for nobody."""
    local = Local(FileSource(data_file))
    with closing(local), closing(local.open()) as file:
        file.mark_opened()
        assert file.read(5000) == DATA[:5000]
        local.finish()
        assert local._hash is not None
        assert not local._hash.add(b"more")
        local.finish()
        assert file.read(5000) == DATA[5000:10_000]
        assert local._hash.place == 5000
        assert local.sha256() == hashlib.sha256(DATA).hexdigest()


def test_a_hash_that_nobody_waits_for_is_given_up(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(DATA)
    others = set(threading.enumerate())
    local = Local(FileSource(tmp_path / "a"))
    local.open().close()
    local.close()
    (hashing,) = [thread for thread in threading.enumerate() if thread.name == "vip-hash" and thread not in others] or [threading.Thread()]
    if hashing.ident is not None:
        hashing.join(10)
    assert not hashing.is_alive()


@pytest.mark.parametrize(("is_wanted", "hashed_bytes"), [(True, len(DATA)), (False, 100)])
def test_of_a_file_whose_hash_is_given_up_the_rest_is_not_read(
    data_file: Path, monkeypatch: pytest.MonkeyPatch, is_wanted: bool, hashed_bytes: int
) -> None:
    """A film of many gigabytes may be closed right behind its start."""
    hashed: list[int] = []

    class Counting:
        def update(self, data: bytes) -> None:
            hashed.append(len(data))

        def hexdigest(self) -> str:
            return "the digest"

    monkeypatch.setattr("vip.video.local.hashlib", SimpleNamespace(sha256=Counting))
    others = set(threading.enumerate())
    local = Local(FileSource(data_file))
    with closing(local.open()) as file:
        file.read(100)
        hashing = set(threading.enumerate()) - others
    if is_wanted:
        assert local.sha256() == "the digest"
    local.close()
    for thread in hashing:
        thread.join(10)
    assert sum(hashed) == hashed_bytes


@pytest.mark.slow
@pytest.mark.parametrize("name", ["h264_faststart.mp4", "h264.mkv", "vp9.webm", "h264.ts", "mpeg4.avi"])
def test_a_whole_extraction_reads_each_byte_about_once(clips: Clips, counted: list[int], tmp_path: Path, name: str) -> None:
    path = clips(name).path
    extract(path, out=tmp_path / "run", keyframes=4)
    assert 0.9 * path.stat().st_size <= sum(counted) <= 1.15 * path.stat().st_size


def test_readers_that_are_opened_later_read_nothing_to_open(clips: Clips, counted: list[int]) -> None:
    with Video(clips("h264.mp4").path) as video:
        before = sum(counted)
        for _ in range(3):
            with video.reopen() as twin:
                assert len(list(twin.frames(video.index.shown_pts.tolist()))) == 40
        assert sum(counted) == before


@pytest.mark.parametrize("is_opened", [False, True])
def test_a_hash_of_what_cannot_be_read_is_an_input_error(tmp_path: Path, is_opened: bool) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(DATA)
    with closing(Local(FileSource(path))) as local:
        if is_opened:
            local.open().close()
        path.unlink()
        path.mkdir()
        with pytest.raises(InputError, match=r"a\.mp4 cannot be read to its end \("):
            local.sha256()


def test_a_file_that_has_gone_is_said(clips: Clips, tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(clips("h264.mp4").path.read_bytes())
    with Video(path) as video:
        path.unlink()
        with pytest.raises(InputError, match=r"a\.mp4 was there and is not any more"):
            video.info()


# ---------------------------------------------------------------- packets


@pytest.mark.slow
@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("most_bytes", [0, 6000, 20_000, 3 * 2**23])
def test_pictures_are_the_same_however_many_packets_are_kept(
    clips: Clips, monkeypatch: pytest.MonkeyPatch, name: str, most_bytes: int
) -> None:
    path = clips(name).path
    monkeypatch.setattr(PacketCache.__init__, "__defaults__", (most_bytes,))
    with Video(path) as video:
        stamps = video.index.shown_pts.tolist()
        numbers = {frame.pts: number_in(frame.image) for frame in video.frames(stamps)}
        assert list(numbers.values()) == list(range(40))
        for stamp in (stamps[0], stamps[-1], stamps[13], *video.index.sync_pts.tolist()):
            with video.reopen() as twin:
                assert [number_in(frame.image) for frame in twin.frames([stamp])] == [numbers[stamp]]
        assert sum(packet.size + vip.video.packets.OVERHEAD_BYTES for packet in video._cached) <= most_bytes


def test_sync_packets_take_the_place_of_others(clips: Clips) -> None:
    with Video(clips("h264.mp4").path) as video:
        packets = [packet for packet in map(video._cached.get, range(len(video.index))) if packet is not None]
    assert len(packets) == 40
    sync_bytes = sum(packet.size + vip.video.packets.OVERHEAD_BYTES for packet in packets if packet.is_keyframe)
    cache = PacketCache(sync_bytes)
    for position, packet in enumerate(packets):
        cache.keep(position, packet)
    assert [packet.is_keyframe for packet in cache] == [True] * 4
    cache.clear()
    assert len(cache) == 0
    cache.keep(0, packets[0])
    assert len(cache) == 1


@pytest.mark.parametrize("is_near", [True, False])
def test_of_a_long_video_that_is_near_fewer_packets_are_kept_and_each_is_let_go_when_it_is_taken(clips: Clips, is_near: bool) -> None:
    with Video(clips("h264.mp4").path) as video:
        packets = [packet for packet in map(video._cached.get, range(len(video.index))) if packet is not None]
    sync = [position for position, packet in enumerate(packets) if packet.is_keyframe]
    sizes = [packets[position].size + vip.video.packets.OVERHEAD_BYTES for position in sync]
    most_bytes = 3 * sum(sizes[:2])

    cache = PacketCache(most_bytes, is_near=is_near)
    for _ in range(2):
        for position in range(sync[2]):
            cache.keep(position, packets[position])
        before = len(cache)
        assert before > 2
        assert cache.take(sync[0]) is cache.take(sync[0]) is packets[sync[0]], "still short"
        for position in range(sync[2], len(packets)):
            cache.keep(position, packets[position])
        left = [position for position in range(len(packets)) if position in cache]
        if is_near:
            assert left == sync[:2]
            assert cache.take(sync[0]) is packets[sync[0]]
            assert cache.take(sync[0]) is None
            cache.keep(sync[3], packets[sync[3]])  # what is let go makes room
            assert (sync[3] in cache) is (sizes[3] <= sizes[0])
        else:
            assert set(sync) < set(left)
            assert cache.take(sync[0]) is cache.take(sync[0]) is packets[sync[0]]
        assert cache.take(999) is None
        cache.clear()


@pytest.mark.parametrize("is_near", [True, False])
def test_of_a_near_video_that_is_far_larger_than_the_cache_only_sync_packets_are_kept(clips: Clips, is_near: bool) -> None:
    with Video(clips("h264.mp4").path) as video:
        sync, other = video._cached.get(0), video._cached.get(1)
    assert sync is not None
    assert other is not None
    assert sync.is_keyframe
    assert not other.is_keyframe
    seen_bytes = sync.size + 20 * other.size + 21 * vip.video.packets.OVERHEAD_BYTES
    for most_bytes, is_long in ((seen_bytes // 2 + 1, False), (seen_bytes // 2 - 1, True)):
        cache = PacketCache(most_bytes, is_near=is_near)
        for _ in range(2):
            cache.keep(0, sync)
            for position in range(1, 21):
                cache.keep(position, other)
            assert 0 in cache
            assert (len(cache) == 1) is (is_near and is_long)
            cache.clear()


def test_ten_hours_of_packets_take_about_30_mb() -> None:
    packets, columns = 50_000, Columns()
    packet: Any = SimpleNamespace(pts=0, dts=0, size=1000, is_keyframe=False, is_discard=False)
    for number in range(packets):
        packet.pts = packet.dts = number
        columns.add(packet)
    index = columns.index(Fraction(1, 25))
    assert len(index) == packets
    used_bytes = sum(map(sys.getsizeof, vars(columns).values()))
    assert used_bytes / packets * 10 * 3600 * 30 < 33 * 2**20
    assert np.shares_memory(index.pts, np.frombuffer(columns.pts, np.int64))
