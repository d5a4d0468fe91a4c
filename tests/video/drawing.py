"""Pictures and animations for tests, written by Pillow, and what Pillow says that they show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.media import card
from vip.records import Image as Picture

SIZE = (64, 48)


def hole(number: int) -> Image.Image:
    """A card with a transparent surround, other than that of the next number."""
    rgba = np.dstack([card(7 * number, *SIZE), np.full(SIZE[::-1], 255, np.uint8)])
    y, x = np.mgrid[0 : SIZE[1], 0 : SIZE[0]]
    rgba[(x - 32) ** 2 + (y - 24) ** 2 > 400 + 40 * number, 3] = 0
    return Image.fromarray(rgba)


def patch(number: int) -> Image.Image:
    """The same card at each number but for a small square; every fourth differs everywhere."""
    picture = card(3 + number if number % 4 == 0 else 3, *SIZE)
    picture[8 * (number % 5) : 8 * (number % 5) + 8, 5 * number : 5 * number + 12] = [250, 10 * number, 0]
    return Image.fromarray(picture)


def animate(path: Path, pictures: Sequence[Image.Image], durations_ms: Sequence[int], **options: Any) -> Path:
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=list(durations_ms), loop=0, **options)
    return path


def told(path: Path) -> tuple[list[int], list[Picture]]:
    """Start in milliseconds and picture over black of each frame, by Pillow decoding from the first to the last."""
    starts, pictures, now = [], [], 0.0
    with Image.open(path) as opened:
        for number in range(getattr(opened, "n_frames", 1)):
            opened.seek(number)
            opened.load()
            rgba = np.asarray(opened.convert("RGBA")).astype(np.uint16)
            pictures.append(np.asarray((rgba[..., :3] * rgba[..., 3:] + 127) // 255, np.uint8))
            starts.append(round(now))
            now += opened.info.get("duration", 0)
    return starts, pictures


def write(path: Path, picture: Picture, *, taken: str | None = None, subsecond: str | None = None, orientation: int | None = None) -> Path:
    """A picture file, with EXIF where something is to stand there."""
    exif = Image.Exif()
    if orientation is not None:
        exif[0x0112] = orientation
    if taken is not None:
        exif.get_ifd(0x8769)[0x9003] = taken
        if subsecond is not None:
            exif.get_ifd(0x8769)[0x9291] = subsecond
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture).save(path, exif=exif)
    return path
