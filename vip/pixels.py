"""Conversion of a decoded frame to the picture that a player shows: upright, square pixels, full-range RGB, alpha over black."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, cast

import cv2
import numpy as np
import numpy.typing as npt
from av.video.frame import VideoFrame
from av.video.reformatter import ColorRange, Colorspace, Interpolation, VideoReformatter

from vip.records import Image

MATRICES = frozenset({0, 1, 4, 5, 6, 7, 9})  # AVCOL_SPC_… that swscale knows; it refuses frames with any other, as with "reserved"
HD_WIDTH_PX, HD_HEIGHT_PX = 1280, 577  # untagged video from this size on is BT.709 to players, below it BT.601
LONG_PX = 128
WITH_LIGHTNESS = frozenset({"yuv420p", "yuvj420p", "yuv422p", "yuvj422p", "yuv444p", "yuvj444p", "nv12", "gray"})  # as 8 bits in plane 0
FROM_LIMITED = ((np.arange(256) - 16) * 255 / 219).round().clip(0, 255).astype(np.uint8)  # level -> level from 0 to 255

Turn = npt.NDArray[np.int64]  # (2, 2): where the stored x and y axes point on the screen, entries -1, 0, 1

UNTURNED: Turn = np.eye(2, dtype=np.int64)


def turn_of(frame: VideoFrame) -> Turn:
    """Return the display matrix as the nearest quarter turn, mirrored or not; the identity where there is none.

    PyAV's side data and its frame refer to each other: a frame that was asked stays in memory until the next garbage
    collection. Ask one frame a video, and the others for their `rotation`.
    """
    try:
        matrix = cast(Any, frame.side_data)["DISPLAYMATRIX"]
    except KeyError:
        return UNTURNED
    except ValueError:  # PyAV does not know another side data of this frame (EXIF), and then hands out none
        return np.rint(_rotation(frame.rotation)).astype(np.int64)
    a, b, _, c, d = np.frombuffer(bytes(matrix), np.int32)[:5].astype(np.int64)
    if max(abs(a), abs(d)) >= max(abs(b), abs(c)):
        return np.array([[np.sign(a) or 1, 0], [0, np.sign(d) or 1]], np.int64)
    return np.array([[0, np.sign(b) or 1], [np.sign(c) or 1, 0]], np.int64)


def _rotation(degrees_anticlockwise: int) -> npt.NDArray[np.float64]:
    cosine, sine = (f(np.radians(-round(degrees_anticlockwise / 90) * 90)) for f in (np.cos, np.sin))
    return np.array([[cosine, sine], [-sine, cosine]])


def degrees_of(turn: Turn) -> int:
    """Return the clockwise rotation in the turn, a mirroring left aside: 0, 90, 180 or 270."""
    return {(1, 0): 0, (0, 1): 90, (-1, 0): 180, (0, -1): 270}[int(turn[0, 0]), int(turn[0, 1])]


def shown_size(frame: VideoFrame, pixel_aspect: Fraction, turn: Turn) -> tuple[int, int]:
    """Return (width, height) in pixels as displayed. Like players, stretch the short axis and never throw lines away."""
    width, height = _square_pixel_size(frame, pixel_aspect)
    return (height, width) if turn[0, 0] == 0 else (width, height)


def to_image(
    frame: VideoFrame, pixel_aspect: Fraction, turn: Turn, reformatter: VideoReformatter, *, longest_side_px: int | None = None
) -> Image:
    """Return uint8 (H, W, 3) RGB at the displayed size, or with its longest side scaled to `longest_side_px`."""
    width, height = _square_pixel_size(frame, pixel_aspect)
    if longest_side_px is not None:
        scale = longest_side_px / max(width, height)
        width, height = (side if side == longest_side_px else _fourfold(side) for side in (round(width * scale), round(height * scale)))
    shrinks, grows = width < frame.width or height < frame.height, width > frame.width or height > frame.height
    at_own_size = Interpolation.BICUBIC if grows else Interpolation.BILINEAR  # then only chroma grows, by two
    scaling = Interpolation.AREA if shrinks else at_own_size
    has_alpha = any(component.is_alpha for component in frame.format.components) or frame.format.name == "pal8"
    picture = np.asarray(
        reformatter.reformat(
            frame,
            width,
            height,
            "rgba" if has_alpha else "rgb24",
            src_colorspace=_colorspace_of(frame),
            interpolation=scaling | Interpolation.ACCURATE_RND,
            threads=1,
        ).to_ndarray(),
        np.uint8,
    )
    return _rotate(_blend_over_black(picture) if has_alpha else picture, turn)


def to_grey(frame: VideoFrame, reformatter: VideoReformatter, *, longest_side_px: int) -> npt.NDArray[np.uint8]:
    """Return the lightness of a frame as it is stored, uint8 (H, W), its longest side scaled down to `longest_side_px` if it is longer.

    It takes a third of the time of `to_image`, and a tenth where lightness has bytes of its own.
    """
    scale = min(1.0, longest_side_px / max(frame.width, frame.height))
    width, height = (_fourfold(round(side * scale)) for side in (frame.width, frame.height))
    plane = frame.planes[0]
    if frame.format.name in WITH_LIGHTNESS and plane.line_size >= plane.width:  # below zero where the lowest row comes first
        stored = np.frombuffer(memoryview(plane), np.uint8).reshape(plane.height, plane.line_size)[:, : plane.width]
        grey = np.asarray(cv2.resize(stored, (width, height), interpolation=cv2.INTER_AREA), np.uint8)
        return grey if _is_full_range(frame) else np.asarray(cv2.LUT(grey, FROM_LIMITED), np.uint8)
    scaled = reformatter.reformat(
        frame, width, height, "gray", src_colorspace=_colorspace_of(frame), interpolation=Interpolation.AREA, threads=1
    )
    return np.asarray(scaled.to_ndarray(), np.uint8)


def _is_full_range(frame: VideoFrame) -> bool:
    return frame.format.name == "gray" or frame.format.name.startswith("yuvj") or frame.color_range == ColorRange.JPEG


def _colorspace_of(frame: VideoFrame) -> Colorspace | None:
    """Return what players take for the tag of a frame that swscale would refuse; None where it knows the tag."""
    if frame.colorspace in MATRICES:
        return None
    return Colorspace.ITU709 if frame.width >= HD_WIDTH_PX or frame.height >= HD_HEIGHT_PX else Colorspace.ITU601


def _fourfold(side: int) -> int:
    """Return a multiple of four where that changes little: such a picture is scaled to a half or a quarter in a fifth of the time."""
    return 4 * round(side / 4) if side >= LONG_PX else max(1, side)


def _square_pixel_size(frame: VideoFrame, pixel_aspect: Fraction) -> tuple[int, int]:
    if pixel_aspect > 1:
        return round(frame.width * pixel_aspect), frame.height
    return frame.width, round(frame.height / pixel_aspect)


def _blend_over_black(rgba: npt.NDArray[np.uint8]) -> Image:
    alpha = rgba[..., 3:].astype(np.uint16)
    return np.asarray((rgba[..., :3] * alpha + 127) // 255, np.uint8)


def _rotate(image: Image, turn: Turn) -> Image:
    if turn[0, 0] == 0:
        image = image.transpose(1, 0, 2)
        flip_x, flip_y = turn[1, 0] < 0, turn[0, 1] < 0
    else:
        flip_x, flip_y = turn[0, 0] < 0, turn[1, 1] < 0
    image = image[:: -1 if flip_y else 1, :: -1 if flip_x else 1]
    return np.ascontiguousarray(image)
