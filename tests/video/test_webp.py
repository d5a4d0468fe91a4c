"""vip.video.webp: the headers of frames, a part of an animation, and what is said of it"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.video.drawing import animate, hole, told
from vip.errors import InputError
from vip.records import Image as Picture
from vip.video import FileSource
from vip.video.time_range import TimeRange
from vip.video.webp import AnimatedWebp, _read_index

DURATIONS_MS = [40, 100, 30, 500, 70, 80]
STARTS_MS = [0, 40, 140, 170, 670, 740]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return animate(tmp_path / "a.webp", [hole(number) for number in range(6)], DURATIONS_MS, lossless=True)


@pytest.fixture
def video(path: Path) -> Iterator[AnimatedWebp]:
    with AnimatedWebp(FileSource(path)) as one:
        yield one


def frame_chunks(data: bytes) -> list[tuple[int, int]]:
    """Where each chunk ANMF begins, and the size that it states."""
    return [(match.start(), int.from_bytes(data[match.end() : match.end() + 4], "little")) for match in re.finditer(b"ANMF", data)]


# ---------------------------------------------------------------- the headers


def test_the_index_has_starts_sizes_and_one_sync_frame(video: AnimatedWebp, path: Path) -> None:
    index = video.index
    assert (index.pts.tolist(), index.dts.tolist(), index.shown_pts.tolist()) == (STARTS_MS, STARTS_MS, STARTS_MS)
    assert (index.sync_pts.tolist(), index.time_base, video.time_base) == ([0], Fraction(1, 1000), Fraction(1, 1000))
    assert index.size_bytes.tolist() == [size for _, size in frame_chunks(path.read_bytes())]
    assert repr(video) == "AnimatedWebp('a.webp', PacketIndex(packets=6, sync=1))"


@pytest.mark.parametrize("long_ms", [256, 65_536, 2**24 - 1])
def test_a_duration_has_three_bytes(long_ms: int, tmp_path: Path) -> None:
    with AnimatedWebp(FileSource(animate(tmp_path / "a.webp", [hole(number) for number in range(3)], [long_ms, 7, 40]))) as video:
        assert video.index.pts.tolist() == [0, long_ms, long_ms + 7]
        assert video.info().end_time_s == (long_ms + 7) / 1000


def test_a_frame_of_no_duration_lasts_a_millisecond_and_others_what_they_say(tmp_path: Path) -> None:
    with AnimatedWebp(FileSource(animate(tmp_path / "a.webp", [hole(number) for number in range(4)], [5, 0, 9, 0]))) as video:
        assert video.index.pts.tolist() == [0, 5, 6, 15]


def test_flags_beside_the_duration_do_not_count(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for start, _ in frame_chunks(bytes(data)):
        data[start + 8 + 15] |= 0xFC  # reserved bits
    path.write_bytes(data)
    with AnimatedWebp(FileSource(path)) as video:
        assert video.index.pts.tolist() == STARTS_MS


@pytest.mark.parametrize("size", [0, 1, 15, 16, 40])
def test_chunks_between_frames_are_passed_over_whatever_their_size(size: int, path: Path) -> None:
    data = path.read_bytes()
    second, _ = frame_chunks(data)[1]
    chunk = b"ABCD" + size.to_bytes(4, "little") + b"\x07" * (size + size % 2)
    path.write_bytes(data[:4] + (len(data) - 8 + len(chunk)).to_bytes(4, "little") + data[8:second] + chunk + data[second:])
    with AnimatedWebp(FileSource(path)) as video:
        assert video.index.pts.tolist() == STARTS_MS


@pytest.mark.parametrize("kept", [0, 8, 8 + 15])
def test_a_frame_whose_header_is_cut_off_is_none(kept: int, path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: frame_chunks(data)[4][0] + kept])
    assert _read_index(FileSource(path)).pts.tolist() == STARTS_MS[:4]


def test_without_a_frame_it_is_refused(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: frame_chunks(data)[0][0]])
    with pytest.raises(InputError, match=r"a\.webp is an animation without frames"):
        AnimatedWebp(FileSource(path))


# ---------------------------------------------------------------- pictures


def test_frames_come_in_time_order_and_once(video: AnimatedWebp, path: Path) -> None:
    _, pictures = told(path)
    found = list(video.frames([740, 40, 740, 0]))
    assert [(frame.pts, frame.time_s) for frame in found] == [(0, 0.0), (40, 0.04), (740, 0.74)]
    assert all(np.array_equal(frame.image, pictures[number]) for frame, number in zip(found, (0, 1, 5), strict=True))
    assert list(video.frames([])) == []
    assert [frame.pts for frame in video.frames_near([170])] == [170]


@pytest.mark.parametrize(("side_px", "shape"), [(32, (24, 32, 3)), (128, (96, 128, 3)), (None, (48, 64, 3))])
def test_pictures_have_the_longest_side_that_is_asked_for(side_px: int | None, shape: tuple[int, int, int], video: AnimatedWebp) -> None:
    (frame,) = video.frames([40], longest_side_px=side_px)
    assert frame.image.shape == shape
    if side_px is not None:
        (best,) = video.best_frames([[40]], lambda _: 1.0, longest_side_px=side_px)
        assert best.image.shape == shape


def test_a_part_shows_its_own_pictures_and_so_do_its_twins(path: Path) -> None:
    _, pictures = told(path)
    with AnimatedWebp(FileSource(path), span=TimeRange(0.1, 0.7)) as part, part.reopen(threads=4) as twin:
        for video in (part, twin):
            assert video.index.shown_pts.tolist() == [140, 170, 670]
            for number, frame in zip((2, 3, 4), video.frames(video.index.shown_pts.tolist()), strict=True):
                assert np.array_equal(frame.image, pictures[number])
        info = part.info()
        assert (info.start_time_s, info.end_time_s, info.frames, info.sync_frames) == (0.14, 0.67, 3, 0)


def test_a_twin_is_closed_alone(video: AnimatedWebp) -> None:
    with video.reopen() as twin:
        assert twin.source is video.source
        assert len(list(twin.frames([0]))) == 1
    assert [frame.pts for frame in video.frames([740])] == [740]


def test_windows_without_frames_give_none_and_the_others_theirs(video: AnimatedWebp) -> None:
    seen: list[tuple[int, ...]] = []

    def rate(grey: Picture) -> float:
        seen.append(grey.shape)
        return float(len(seen))

    found = list(video.best_frames([[40, 0], [], [740]], rate, longest_side_px=32))
    assert [frame.pts for frame in found] == [40, 740], "the last is rated highest"
    assert seen == [(24, 32)] * 3


@pytest.mark.parametrize("stamps", [[], [40], [740, 0, 40]])
def test_what_is_asked_for_is_one_group_and_each_frame_as_dear_as_another(stamps: Sequence[int], video: AnimatedWebp) -> None:
    assert video.groups(stamps) == [list(stamps)]
    assert {video.effort(pts) for pts in STARTS_MS} == {1}


# ---------------------------------------------------------------- damage


def damage(path: Path, number: int) -> None:
    """Overwrite what stands behind the headers of a frame and of its picture."""
    data = bytearray(path.read_bytes())
    start, size = frame_chunks(bytes(data))[number]
    data[start + 8 + 30 : start + 8 + size] = b"\xff" * (size - 30)
    path.write_bytes(data)


def test_frames_that_cannot_be_decoded_are_left_out_and_counted_once_each(path: Path) -> None:
    damage(path, 3)
    with AnimatedWebp(FileSource(path)) as video:
        assert video.losses == []
        found = [frame.pts for frame in video.frames(STARTS_MS)]
        assert found[:3] == [0, 40, 140]
        assert 170 not in found
        lost = 6 - len(found)
        list(video.frames(STARTS_MS))
        assert video.losses == [f"{lost} damaged frame{'s were' if lost > 1 else ' was'} passed over."]


def test_a_frame_that_pillow_does_not_know_of_is_left_out_and_counted(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"ANMF" + (16).to_bytes(4, "little") + bytes(16))  # behind the end that the header states
    with AnimatedWebp(FileSource(path)) as video:
        assert video.index.pts.tolist() == [*STARTS_MS, 820]
        assert [frame.pts for frame in video.frames(video.index.shown_pts.tolist())] == STARTS_MS
        assert video.losses == ["1 damaged frame was passed over."]


def test_a_file_of_which_no_frame_can_be_decoded_says_so(path: Path) -> None:
    damage(path, 0)
    with AnimatedWebp(FileSource(path)) as video, pytest.raises(InputError, match="not one frame can be decoded"):
        video.info()


# ---------------------------------------------------------------- what is said of it


def test_what_is_said_of_an_animation_is_its_own(tmp_path: Path) -> None:
    path = animate(tmp_path / "a.webp", [hole(number) for number in range(3)], [40, 60, 80])
    with AnimatedWebp(FileSource(path)) as video:
        info = video.info()
    assert (info.container, info.codec, info.pixel_format) == ("webp", "webp", "RGBA")
    assert (info.width_px, info.height_px, info.rotation_deg, info.pixel_aspect_ratio) == (64, 48, 0, 1)
    assert (info.frame_rate, info.duration_s_from_header) == (None, None), "the file states neither"
    assert (info.start_time_s, info.end_time_s, info.frames, info.sync_frames) == (0.0, 0.1, 3, 1)
    assert (info.path, info.size_bytes, info.modified_ns) == (str(path), path.stat().st_size, path.stat().st_mtime_ns)
    assert info.sha256 == FileSource(path).sha256()


def test_a_file_that_is_gone_is_told(path: Path) -> None:
    with AnimatedWebp(FileSource(path)) as video:
        path.unlink()
        with pytest.raises(InputError, match="not one frame can be decoded"):
            video.info()


@pytest.mark.parametrize("stream", [1, 2, -1])
def test_there_is_no_other_stream(stream: int, path: Path) -> None:
    with pytest.raises(InputError, match=f"has no video stream {stream}: an animated picture is one stream, 0"):
        AnimatedWebp(FileSource(path), stream=stream)


@pytest.mark.parametrize(("orientation", "degrees"), [(1, 0), (3, 180), (6, 90), (8, 270)])
def test_the_size_is_that_of_the_turned_frames(orientation: int, degrees: int, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = animate(tmp_path / "a.webp", [hole(number) for number in range(3)], [40, 40, 40], lossless=True, exif=exif)
    with AnimatedWebp(FileSource(path)) as video:
        info, frame = video.info(), next(video.frames([0]))
        assert (info.height_px, info.width_px) == frame.image.shape[:2]
        assert info.rotation_deg == degrees
