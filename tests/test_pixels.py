"""Pictures as a player shows them, against colours and turns that the test computes itself."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter

from tests.media import Clips, card, decoded, number_in, turn, write
from vip.pixels import UNTURNED, degrees_of, to_grey, to_image, turn_of
from vip.records import Image
from vip.video import Video

BT601, BT709, BT2020 = (0.299, 0.114), (0.2126, 0.0722), (0.2627, 0.0593)  # weights of red and blue in the luma
TAGS = {BT601: 6, BT709: 1, BT2020: 9}  # AVCOL_SPC_…
LIMITED, FULL = 1, 2  # AVCOL_RANGE_…
CARD = ((235, 235, 235), (0, 0, 0), (128, 128, 128), (200, 30, 40), (40, 170, 60), (30, 60, 190), (224, 172, 105), (10, 120, 130))
LEVELS = 3  # of 255: what rounding to YUV and back may cost

Weights = tuple[float, float]


def patches(width: int = 160, height: int = 120) -> Image:
    """Eight flat upright stripes."""
    return np.asarray(np.repeat(np.array(CARD, np.uint8)[None], height, 0).repeat(width // len(CARD), 1), np.uint8)


def seen(image: Image) -> list[tuple[int, ...]]:
    """The colours in the middle of the stripes."""
    height, width = image.shape[:2]
    step = width // len(CARD)
    return [tuple(int(value) for value in image[height // 2, step // 2 + step * number]) for number in range(len(CARD))]


def assert_is_the_card(image: Image, within: int = LEVELS, colours: tuple[tuple[int, int, int], ...] = CARD) -> None:
    apart = np.abs(np.array(seen(image)) - np.array(colours))
    assert apart.max() <= within, f"{seen(image)} instead of {colours}"


def in_yuv(image: Image, weights: Weights, colour_range: int, *, bits: int = 8, subsample: int = 2, tag: bool = True) -> VideoFrame:
    """The picture as Y'CbCr by the formulas of ITU-R BT.601, 709 and 2020."""
    red, blue = weights
    rgb = image.astype(np.float64) / 255
    luma = red * rgb[..., 0] + (1 - red - blue) * rgb[..., 1] + blue * rgb[..., 2]
    chroma = [(rgb[..., 2] - luma) / (2 - 2 * blue), (rgb[..., 0] - luma) / (2 - 2 * red)]
    unit = 2 ** (bits - 8)
    top = 2**bits - 1
    black, white, span = (16 * unit, 219 * unit, 224 * unit) if colour_range == LIMITED else (0, top, top)
    planes = [black + white * luma, *(128 * unit + span * part[::subsample, ::subsample] for part in chroma)]
    kind: Any = np.uint8 if bits == 8 else np.dtype("<u2")
    name = ("yuv420p" if subsample == 2 else "yuv444p") + ("" if bits == 8 else f"{bits}le")
    frame = VideoFrame(image.shape[1], image.shape[0], name)
    for plane, values in zip(frame.planes, planes, strict=True):
        rows = np.zeros((plane.height, plane.line_size // np.dtype(kind).itemsize), kind)
        rows[:, : values.shape[1]] = np.clip(np.rint(values), 0, top)
        plane.update(rows)
    if tag:
        frame.colorspace, frame.color_range = TAGS[weights], colour_range
    return frame


def shown(frame: VideoFrame) -> Image:
    return to_image(frame, Fraction(1), UNTURNED, VideoReformatter())


def first_of(path: Path) -> Image:
    with Video(path) as video:
        return next(video.frames(video.index.shown_pts.tolist())).image


# ---------------------------------------------------------------- colours


@pytest.mark.parametrize("bits", [8, 10])
@pytest.mark.parametrize("colour_range", [LIMITED, FULL])
@pytest.mark.parametrize("weights", TAGS)
def test_colours_come_back_whatever_their_coding(weights: Weights, colour_range: int, bits: int) -> None:
    assert_is_the_card(shown(in_yuv(patches(), weights, colour_range, bits=bits)))
    assert_is_the_card(shown(in_yuv(patches(), weights, colour_range, bits=bits, subsample=1)))


ENCODERS: dict[str, tuple[str, dict[str, str], int]] = {
    "h264.mp4": ("libx264", {"qp": "2"}, 8),
    "h264.ts": ("libx264", {"qp": "2"}, 8),
    "h264_10bit.mkv": ("libx264", {"qp": "2"}, 10),
    "hevc.mp4": ("libx265", {"x265-params": "qp=2:log-level=none"}, 8),
    "hevc_10bit.mp4": ("libx265", {"x265-params": "qp=2:log-level=none"}, 10),
    "vp9.webm": ("libvpx-vp9", {"crf": "2", "b": "0"}, 8),
    "av1.mp4": ("libsvtav1", {"preset": "12", "crf": "2"}, 10),
    "ffv1.mkv": ("ffv1", {}, 8),
}


@pytest.mark.parametrize("colour_range", [LIMITED, FULL])
@pytest.mark.parametrize("weights", [BT601, BT709])
@pytest.mark.parametrize("name", ENCODERS)
def test_colours_survive_the_file(tmp_path: Path, name: str, weights: Weights, colour_range: int) -> None:
    codec, options, bits = ENCODERS[name]
    frame = in_yuv(patches(), weights, colour_range, bits=bits)
    tags = {"colorspace": TAGS[weights], "color_range": colour_range}
    write(tmp_path / name, codec, frames=6, picture=lambda _: frame, pixels=frame.format.name, options=options, **tags)
    assert_is_the_card(first_of(tmp_path / name), within=5)


@pytest.mark.parametrize(("width", "height", "weights"), [(640, 480, BT601), (720, 576, BT601), (1280, 720, BT709), (960, 1280, BT709)])
def test_without_a_tag_the_size_decides_as_in_players(width: int, height: int, weights: Weights) -> None:
    assert_is_the_card(shown(in_yuv(patches(width, height), weights, LIMITED, tag=False)))


@pytest.mark.parametrize("matrix", [3, 8, 10, 11, 14, 99])
@pytest.mark.parametrize(("width", "weights"), [(640, BT601), (1280, BT709)])
def test_a_colour_tag_that_nobody_knows_is_as_none(width: int, weights: Weights, matrix: int) -> None:
    """FFmpeg's scaler refuses such frames, and with them the whole video."""
    frame = in_yuv(patches(width, 480), weights, LIMITED)
    frame.colorspace = matrix
    assert_is_the_card(shown(frame))


def test_grey_pictures_are_shown_in_grey() -> None:
    image = shown(VideoFrame.from_ndarray(card(5)[..., 0].copy(), format="gray"))
    assert np.abs(image.astype(int) - card(5)[..., :1]).max() <= 1


# ---------------------------------------------------------------- lightness


def lightness(frame: VideoFrame, side_px: int = 640) -> Image:
    return to_grey(frame, VideoReformatter(), longest_side_px=side_px)


def assert_is_the_lightness_of_the_card(grey: Image, weights: Weights = BT601) -> None:
    height, width = grey.shape
    step, (red, blue) = width // len(CARD), weights
    expected = [red * r + (1 - red - blue) * g + blue * b for r, g, b in CARD]
    assert np.abs(grey[height // 2, step // 2 :: step] - np.array(expected)).max() <= LEVELS


@pytest.mark.parametrize("bits", [8, 10])
@pytest.mark.parametrize("colour_range", [LIMITED, FULL])
@pytest.mark.parametrize("weights", TAGS)
def test_the_lightness_of_a_frame_goes_from_black_to_white_whatever_its_coding(weights: Weights, colour_range: int, bits: int) -> None:
    grey = lightness(in_yuv(patches(), weights, colour_range, bits=bits))
    assert (grey.shape, grey.dtype) == ((120, 160), np.uint8)
    assert_is_the_lightness_of_the_card(grey, weights if bits == 8 else BT601)  # as its bytes have it


@pytest.mark.parametrize("matrix", [2, 3, 8, 10, 11, 14, 99])
def test_the_lightness_of_a_frame_whose_colour_tag_nobody_knows_is_seen(matrix: int) -> None:
    """FFmpeg's scaler refuses such frames."""
    frame = in_yuv(patches(), BT601, LIMITED)
    frame.colorspace = matrix
    assert_is_the_lightness_of_the_card(lightness(frame))


@pytest.mark.parametrize("name", ["rgb24", "rgba", "gray", "gbrp", "yuv444p", "nv12"])
def test_frames_of_every_format_have_a_lightness(name: str) -> None:
    assert_is_the_lightness_of_the_card(lightness(VideoFrame.from_ndarray(patches(), format="rgb24").reformat(format=name)))


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        ((1920, 1080), (640, 360)),
        ((160, 120), (160, 120)),
        ((3, 5000), (1, 640)),
        ((1280, 6), (640, 3)),
        ((7, 3), (7, 3)),
        ((641, 5), (640, 5)),
    ],
)
def test_the_lightness_is_scaled_down_and_never_up_nor_to_nothing(size: tuple[int, int], shown: tuple[int, int]) -> None:
    assert lightness(VideoFrame(*size, "yuv420p")).shape[::-1] == shown


# ---------------------------------------------------------------- alpha


def half_transparent(number: int) -> VideoFrame:
    """The card; its upper half is opaque, its lower half lets half of what is behind through."""
    rgba = np.dstack([patches(), np.full((120, 160), 255, np.uint8)])
    rgba[60:, :, 3] = 128
    return VideoFrame.from_ndarray(rgba, format="rgba")


@pytest.mark.parametrize(
    ("name", "codec", "pixels"),
    [
        ("a.webm", "libvpx-vp9", "yuva420p"),
        ("tag.webm", "libvpx-vp9", "yuva420p"),
        ("b.webm", "libvpx", "yuva420p"),
        ("a.mov", "png", "rgba"),
        ("a.mkv", "ffv1", "yuva444p"),
        ("b.mov", "prores_ks", "yuva444p10le"),
    ],
)
def test_what_is_transparent_is_seen_over_black(tmp_path: Path, name: str, codec: str, pixels: str) -> None:
    options = {"crf": "4", "b": "2M", "auto-alt-ref": "0"} if codec.startswith("libvpx") else {}
    metadata = {"alpha_mode": "1"} if name == "tag.webm" else {}  # as told in many a recipe; it comes back as ALPHA_MODE
    picture: Callable[[int], VideoFrame] = lambda number: half_transparent(number).reformat(format=pixels)  # noqa: E731
    write(tmp_path / name, codec, frames=3, picture=picture, pixels=pixels, options=options, metadata=metadata)
    with Video(tmp_path / name) as video:
        frames = list(video.frames(video.index.shown_pts.tolist()))
        assert len(frames) == 3
        for frame in frames:
            assert_is_the_card(frame.image[:50], within=8)
            dimmed = tuple((red // 2, green // 2, blue // 2) for red, green, blue in CARD)
            assert_is_the_card(frame.image[70:], within=8, colours=dimmed)


def test_a_palette_may_hold_transparent_colours() -> None:
    palette = np.zeros((256, 4), np.uint8)
    palette[:2] = [(255, 200, 100, 50), (0, 200, 100, 50)]  # alpha, red, green, blue
    numbers = np.zeros((120, 160), np.uint8)
    numbers[:, 80:] = 1
    image = shown(VideoFrame.from_ndarray((numbers, palette), format="pal8"))
    assert image[60, 40].tolist() == [200, 100, 50]
    assert image[60, 120].tolist() == [0, 0, 0]


# ---------------------------------------------------------------- turns

TURNED: dict[tuple[int, int, int, int], tuple[int, Callable[[Image], Image]]] = {
    (1, 0, 0, 1): (0, lambda image: image),
    (0, 1, -1, 0): (90, lambda image: np.rot90(image, -1)),
    (-1, 0, 0, -1): (180, lambda image: np.rot90(image, 2)),
    (0, -1, 1, 0): (270, np.rot90),
    (-1, 0, 0, 1): (180, np.fliplr),
    (1, 0, 0, -1): (0, np.flipud),
    (0, 1, 1, 0): (90, lambda image: image.transpose(1, 0, 2)),
    (0, -1, -1, 0): (270, lambda image: np.rot90(image.transpose(1, 0, 2), 2)),
}
"""Where the stored axes point -> clockwise degrees, and what that makes of a picture."""


@pytest.mark.parametrize("matrix", TURNED)
def test_pictures_stand_upright(clips: Clips, tmp_path: Path, matrix: tuple[int, int, int, int]) -> None:
    path = tmp_path / "turned.mp4"
    turn(clips("h264.mp4").path, path, matrix)
    degrees, change = TURNED[matrix]
    with Video(clips("h264.mp4").path) as stored, Video(path) as video:
        assert video.info().rotation_deg == degrees
        pairs = zip(stored.frames(stored.index.shown_pts.tolist()), video.frames(video.index.shown_pts.tolist()), strict=True)
        for plain, upright in pairs:
            assert np.array_equal(upright.image, change(plain.image))
            assert upright.image.flags.c_contiguous


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="the program ffmpeg is not here")
@pytest.mark.parametrize("matrix", TURNED)
def test_pictures_stand_as_ffmpeg_turns_them(clips: Clips, tmp_path: Path, matrix: tuple[int, int, int, int]) -> None:
    path = tmp_path / "turned.mp4"
    turn(clips("h264.mp4").path, path, matrix)
    command = ["ffmpeg", "-v", "error", "-i", str(path), "-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    data = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout
    image = first_of(path)
    theirs = np.frombuffer(data, np.uint8).reshape(image.shape)
    assert np.abs(theirs.astype(int) - image).mean() < 4


def test_a_turn_is_read_from_the_pictures_own_exif(tmp_path: Path) -> None:
    exif = b"Exif\0\0MM\0*\0\0\0\x08\0\1\x01\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0"  # orientation 6: turn clockwise
    segment = b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif
    upright = np.rot90(card(9))  # stored lying on its left side
    data = cv2.imencode(".jpg", cv2.cvtColor(np.ascontiguousarray(upright), cv2.COLOR_RGB2BGR))[1].tobytes()
    (tmp_path / "a.mjpeg").write_bytes((data[:2] + segment + data[2:]) * 3)
    assert first_of(tmp_path / "a.mjpeg").shape == (120, 160, 3)
    assert number_in(first_of(tmp_path / "a.mjpeg")) == 9


@pytest.mark.parametrize("matrix", TURNED)
def test_degrees_of_a_turn(matrix: tuple[int, int, int, int]) -> None:
    assert degrees_of(np.array(matrix).reshape(2, 2)) == TURNED[matrix][0]


def test_a_frame_without_a_matrix_is_not_turned(clips: Clips) -> None:
    assert np.array_equal(turn_of(next(decoded(clips("h264.mp4").path))), UNTURNED)


# ---------------------------------------------------------------- shapes


@pytest.mark.parametrize(("aspect", "size"), [(Fraction(2), (320, 120)), (Fraction(1, 2), (160, 240)), (Fraction(12, 11), (175, 120))])
def test_pixels_are_made_square_without_throwing_lines_away(aspect: Fraction, size: tuple[int, int]) -> None:
    frame = in_yuv(patches(), BT601, LIMITED)
    image = to_image(frame, aspect, UNTURNED, VideoReformatter())
    assert image.shape[1::-1] == size
    assert_is_the_card(image)
    small = to_image(frame, aspect, UNTURNED, VideoReformatter(), longest_side_px=100)
    assert max(small.shape) == 100
    assert small.shape[1] / small.shape[0] == pytest.approx(size[0] / size[1], rel=0.02)


def test_a_turned_video_of_oblong_pixels_is_stretched_before_it_is_turned(tmp_path: Path) -> None:
    stored = write(tmp_path / "a.mp4", aspect=Fraction(2), frames=2).path
    turn(stored, tmp_path / "b.mp4", (0, 1, -1, 0))
    plain, turned = first_of(stored), first_of(tmp_path / "b.mp4")
    assert turned.shape == (320, 120, 3)
    assert np.array_equal(turned, np.rot90(plain, -1))
    assert number_in(np.rot90(turned)) == 0


def test_odd_sizes_are_kept(tmp_path: Path) -> None:
    write(tmp_path / "a.mkv", "ffv1", frames=2, picture=lambda number: card(number, 161, 99))
    assert first_of(tmp_path / "a.mkv").shape == (99, 161, 3)


def test_interlaced_pictures_are_shown(clips: Clips) -> None:
    frame = next(decoded(clips("h264_interlaced.ts").path))
    assert frame.interlaced_frame
    assert number_in(shown(frame)) == 0
