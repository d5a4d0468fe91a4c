"""Pictures in a row as a video: each at its own size, upright, over black; what cannot be read is passed over and said."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from tests.media import card, number_in
from tests.video.drawing import write
from vip.errors import InputError
from vip.video import Reader, open_video, source_of


def opened(given: Path | list[Path], **part: float) -> Reader:
    return open_video(source_of(given), **part)  # type: ignore[arg-type]


@pytest.fixture
def frames(tmp_path: Path) -> Path:
    """Twelve pictures of growing size, img1.png … img12.png: picture n carries n."""
    for number in range(1, 13):
        write(tmp_path / "frames" / f"img{number}.png", card(number, 80 + 8 * number, 60))
    return tmp_path / "frames"


def test_each_picture_is_a_frame_of_its_own_size(frames: Path) -> None:
    with opened(frames) as video:
        shown = list(video.frames(video.index.shown_pts.tolist()))
        assert video.groups(video.index.shown_pts.tolist()) == [[1000 * second] for second in range(12)]
    assert [number_in(frame.image) for frame in shown] == list(range(1, 13))
    assert [frame.image.shape for frame in shown] == [(60, 80 + 8 * number, 3) for number in range(1, 13)]
    assert [frame.time_s for frame in shown] == list(range(12))


def test_pictures_are_scaled_as_frames_are(frames: Path) -> None:
    with opened(frames) as video:
        for frame in video.frames([0, 5000], longest_side_px=40):
            assert max(frame.image.shape) == 40
        (large,) = video.frames([0], longest_side_px=300)
        assert max(large.image.shape) == 300


def test_of_each_window_the_picture_that_is_rated_highest_is_given_and_of_equal_ones_the_first(frames: Path) -> None:
    windows = [[0, 1000, 2000], [4000, 5000], [8000], [9000]]
    with opened(frames) as video:
        for number in (5, 9):
            (frames / f"img{number}.png").write_bytes(b"not a picture any more")
        found = list(video.best_frames(windows, lambda grey: number_in(np.dstack([grey] * 3)) % 2, longest_side_px=80))
        assert [frame.pts for frame in found] == [0, 5000, 9000]
        assert [max(frame.image.shape) for frame in found] == [80] * 3
        assert video.losses == ["2 pictures could not be read and were passed over: img5.png and 1 more."]
        assert list(video.best_frames([], lambda grey: 0.0, longest_side_px=80)) == []


def test_what_is_said_of_pictures(frames: Path) -> None:
    with opened(frames) as video:
        info = video.info()
    assert (info.width_px, info.height_px) == (88, 60)
    assert (info.codec, info.container, info.frames, info.sync_frames) == ("png", "pictures", 12, 12)
    assert (info.start_time_s, info.end_time_s) == (0, 11)
    assert info.path == str(frames)
    assert info.size_bytes == sum(path.stat().st_size for path in frames.iterdir())
    assert info.modified_ns == max(path.stat().st_mtime_ns for path in frames.iterdir())


@pytest.mark.parametrize(("broken", "width", "count"), [((1,), 96, 11), ((1, 2), 104, 10), ((2,), 88, 11), (tuple(range(1, 13)), None, 0)])
def test_what_is_said_is_that_of_the_first_picture_that_can_be_read(
    frames: Path, broken: tuple[int, ...], width: int | None, count: int
) -> None:
    for number in broken:  # their headers are whole
        path = frames / f"img{number}.png"
        path.write_bytes(path.read_bytes()[:200])
    with opened(frames) as video:
        assert len(list(video.frames(video.index.shown_pts.tolist()))) == count
        if width is None:
            with pytest.raises(InputError, match="not one picture can be read"):
                video.info()
        else:
            assert video.info().width_px == width


def test_the_hash_is_that_of_the_pictures_in_their_order(frames: Path) -> None:
    before = source_of(frames).sha256()
    assert source_of(frames).sha256() == before
    (frames / "img3.png").write_bytes((frames / "img4.png").read_bytes())
    assert source_of(frames).sha256() != before


def test_a_part_of_them(frames: Path) -> None:
    with opened(frames, start_s=2.5, end_s=5) as video:
        assert video.index.shown_pts.tolist() == [3000, 4000, 5000]
        info = video.info()
    assert (info.start_time_s, info.end_time_s, info.frames, info.width_px) == (3, 5, 3, 112)
    with pytest.raises(InputError, match=r"has no frame between 0:20\.00 and 0:30\.00: it goes from 0:00\.00 to 0:11\.00"):
        opened(frames, start_s=20, end_s=30)


def test_exif_times_and_turns(tmp_path: Path) -> None:
    write(tmp_path / "a.jpg", card(2), taken="2025:06:01 10:00:03", subsecond="5")
    write(tmp_path / "b.jpg", card(1), taken="2025:06:01 10:00:00", orientation=6)
    with opened(tmp_path) as video:
        first, second = video.frames(video.index.shown_pts.tolist())
        info = video.info()
    assert (first.time_s, second.time_s) == (0, 3.5)
    assert first.image.shape == (160, 120, 3)
    assert (info.width_px, info.height_px, info.rotation_deg) == (120, 160, 90)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_turns_are_those_of_opencv(tmp_path: Path, orientation: int) -> None:
    path = write(tmp_path / "a.png", card(5), orientation=orientation)
    truth = cv2.imread(str(write(tmp_path / "b.jpg", card(5), orientation=orientation)))
    with opened(path) as video:
        (frame,) = video.frames([0])
    assert frame.image.shape == truth.shape
    assert np.abs(frame.image.astype(int) - truth[..., ::-1]).mean() < 8


def test_transparent_pictures_lie_over_black(tmp_path: Path) -> None:
    rgba = np.dstack([card(5, 40, 30), np.full((30, 40), 255, np.uint8)])
    rgba[:, 20:, 3], rgba[:10, :20, 3] = 0, 128
    Image.fromarray(rgba).save(tmp_path / "a.png")
    with opened(tmp_path / "a.png") as video:
        (frame,) = video.frames([0])
    assert not frame.image[:, 20:].any()
    assert np.array_equal(frame.image[10:, :20], rgba[10:, :20, :3])
    assert np.abs(frame.image[:10, :20].astype(int) - rgba[:10, :20, :3] / 2).max() <= 1


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "CMYK", "I;16", "RGBA"])
def test_pictures_of_every_mode_are_rgb(tmp_path: Path, mode: str) -> None:
    grey = Image.fromarray(card(7)).convert("L")
    picture = Image.fromarray(np.asarray(grey).astype(np.uint16) * 257) if mode == "I;16" else Image.fromarray(card(7)).convert(mode)
    picture.save(tmp_path / "a.tif")
    with opened(tmp_path / "a.tif") as video:
        (frame,) = video.frames([0])
    assert number_in(frame.image) == 7
    if mode == "I;16":
        assert np.array_equal(frame.image[..., 0], np.asarray(grey))


# ---------------------------------------------------------------- damage and size


def test_a_picture_that_cannot_be_read_is_passed_over_and_said(frames: Path) -> None:
    (frames / "img2.png").write_text("no picture")
    whole = (frames / "img5.png").read_bytes()
    (frames / "img5.png").write_bytes(whole[: len(whole) // 2])
    with opened(frames) as video:
        assert len(video.index) == 11
        with video.reopen() as twin:
            numbers = [number_in(frame.image) for frame in twin.frames(video.index.shown_pts.tolist())]
        assert numbers == [1, 3, 4, 6, 7, 8, 9, 10, 11, 12]
        assert video.losses == ["2 pictures could not be read and were passed over: img2.png and 1 more."]


@pytest.mark.parametrize("content", [b"", b"no picture", b"\x89PNG\r\n\x1a\n" + bytes(50)])
def test_a_single_picture_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.png is not a picture that can be read\."):
        opened(tmp_path / "a.png")


def test_where_none_can_be_read_the_first_says_why(tmp_path: Path) -> None:
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / name).write_text("no picture")
    with pytest.raises(InputError, match=r"a\.jpg is not a picture"):
        opened(tmp_path)


def png(width: int, height: int) -> bytes:
    """A PNG file with this size in its header, and next to nothing behind it."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [17_000, 20_000, 60_000, 2**31 - 1])
def test_a_picture_of_absurd_size_is_refused_before_it_is_decoded(tmp_path: Path, side: int) -> None:
    (tmp_path / "a.png").write_bytes(png(side, side))
    with pytest.raises(InputError, match=r"a\.png (claims|is not a picture)"):
        opened(tmp_path / "a.png")


def test_among_others_it_is_passed_over(frames: Path) -> None:
    (frames / "img0.png").write_bytes(png(60_000, 60_000))
    with opened(frames) as video:
        assert len(video.index) == 12
        assert video.losses == ["1 picture could not be read and was passed over: img0.png."]


@pytest.mark.parametrize("size", [(12_000, 9_000), (16_320, 12_240)])
def test_the_largest_pictures_of_cameras_and_phones_are_not_refused(tmp_path: Path, size: tuple[int, int]) -> None:
    (tmp_path / "a.png").write_bytes(png(*size))
    with opened(tmp_path / "a.png") as video:
        assert len(video.index) == 1


def test_pictures_have_one_stream(frames: Path) -> None:
    with pytest.raises(InputError, match="has no video stream 2: pictures are one stream, 0"):
        open_video(source_of(frames), stream=2)
