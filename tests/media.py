"""Small video files whose truth is known: every picture carries its number, every file the times it was written with."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest
from av.video.frame import VideoFrame

from vip.records import Image

WIDTH, HEIGHT = 160, 120
BITS = 8
SHARED = Path(__file__).parents[2] / "shared" / "videos"

needs_ffprobe = pytest.mark.skipif(shutil.which("ffprobe") is None, reason="the program ffprobe is not here")
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the real videos are not here")


@dataclass(frozen=True)
class Clip:
    """A file and the time of each picture in it: picture n carries the number n."""

    path: Path
    times_s: tuple[Fraction, ...]


def card(number: int, width: int = WIDTH, height: int = HEIGHT) -> Image:
    """A coloured scene in motion; on top of it stands the number in black and white squares, the lowest bit at the left."""
    y, x = np.mgrid[0:height, 0:width]
    image = np.stack([x * 200 // width + 20, y * 200 // height + 20, (x + 3 * number) % 120 + 60], axis=2).astype(np.uint8)
    cv2.circle(image, (width * (number % 37) // 37, height * 2 // 3), height // 8, (230, 200, 40), -1)
    step = width // BITS
    for bit in range(BITS):
        image[: height // 4, bit * step : (bit + 1) * step] = 235 if number >> bit & 1 else 20
    return image


def number_in(image: Image) -> int:
    """The number that a card carries, at any size."""
    height, width = image.shape[:2]
    row = image[height // 8 - 1 : height // 8 + 2].mean(axis=(0, 2))
    centres = ((np.arange(BITS) + 0.5) * width / BITS).astype(int)
    return sum(1 << bit for bit, column in enumerate(centres) if row[column - 1 : column + 2].mean() > 128)


def write(
    path: Path,
    codec: str = "libx264",
    *,
    frames: int = 40,
    gop: int = 10,
    rate: int = 25,
    ticks: Sequence[int] | None = None,
    time_base: Fraction | None = None,
    pixels: str = "yuv420p",
    picture: Callable[[int], Image] = card,
    aspect: Fraction | None = None,
    options: Mapping[str, str] | None = None,
    muxer: Mapping[str, str] | None = None,
    container: str | None = None,
    **context: Any,
) -> Clip:
    """Encode pictures 0 … frames-1.

    Args:
        ticks: PTS of the pictures in `time_base`; by default 0, 1, 2 … at the rate.
        options: of the encoder; `muxer`: of the container; `context`: attributes of the codec context.
    """
    base = time_base or Fraction(1, rate)
    stamps = list(ticks) if ticks is not None else list(range(frames))
    first = picture(0)
    with av.open(str(path), "w", format=container, container_options=dict(muxer or {})) as output:
        stream: Any = output.add_stream(codec, rate=rate, options={"g": str(gop), **(options or {})})
        stream.width, stream.height, stream.pix_fmt = first.shape[1], first.shape[0], pixels
        stream.codec_context.time_base = stream.time_base = base
        if aspect is not None:
            stream.codec_context.sample_aspect_ratio = aspect
        for name, value in context.items():
            setattr(stream.codec_context, name, value)
        for number, stamp in enumerate(stamps):
            frame = VideoFrame.from_ndarray(picture(number), format="rgb24").reformat(format=pixels)
            frame.pts, frame.time_base = stamp, base
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return Clip(path, tuple(stamp * base for stamp in stamps))
