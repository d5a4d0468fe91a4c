"""Pictures by Pillow: opened without decoding, refused where they are absurdly large, shown upright and over black."""

from __future__ import annotations

import math
import struct
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import cv2
import numpy as np
from PIL import ExifTags, Image, UnidentifiedImageError
from PIL.Image import Exif
from PIL.Image import Image as Opened

from vip.errors import InputError
from vip.protocols import Glance
from vip.records import Frame, GreyPicture
from vip.records import Image as Picture
from vip.video.order import taken_ms
from vip.video.size import MOST_PIXELS, check_size

Image.MAX_IMAGE_PIXELS = MOST_PIXELS  # Pillow would warn from 89 million pixels on, which pictures of phones have; `check_size` refuses

BROKEN = (OSError, ValueError, SyntaxError, EOFError, IndexError, KeyError, TypeError, struct.error, zlib.error, MemoryError)
"""What Pillow's readers raise for a damaged file, beside its own errors."""
TRANSPOSED = frozenset({5, 6, 7, 8})  # EXIF orientations that swap width and height
ROTATIONS = {3: 180, 4: 180, 5: 90, 6: 90, 7: 270, 8: 270}  # clockwise; a mirroring left aside


def open_picture(source: Path | BytesIO, name: str) -> Opened:
    """Return a picture file whose header was read and no pixel.

    Raises:
        InputError: it is missing, damaged, no picture, or too large.
    """
    try:
        opened = Image.open(source)
    except FileNotFoundError as exc:
        raise InputError(f"{name} does not exist. Check the path.") from exc
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as exc:
        raise InputError(f"{name} claims a picture of more than {MOST_PIXELS // 10**6} million pixels. Scale it down first.") from exc
    except (UnidentifiedImageError, *BROKEN) as exc:
        raise InputError(f"{name} is not a picture that can be read.") from exc
    try:
        check_size(name, *opened.size)
    except InputError:
        opened.close()
        raise
    return opened


def shown(opened: Opened, *, longest_side_px: int | None = None) -> Picture:
    """Return uint8 (H, W, 3) RGB as a viewer shows it, or with its longest side scaled to `longest_side_px`.

    Raises:
        InputError: the file is damaged.
    """
    try:
        picture = _apply_orientation(_rgb(opened), orientation_of(opened))
    except (Image.DecompressionBombError, *BROKEN) as exc:
        raise InputError(f"{getattr(opened, 'filename', '') or 'The picture'} is damaged.") from exc
    if longest_side_px is None:
        return picture
    scale = longest_side_px / max(picture.shape[:2])
    size = max(1, round(picture.shape[1] * scale)), max(1, round(picture.shape[0] * scale))
    return np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC), np.uint8)


def _rgb(opened: Opened) -> Picture:
    if opened.mode.startswith("I;16"):
        grey = (np.asarray(opened, np.uint16) >> 8).astype(np.uint8)
        return np.repeat(grey[..., None], 3, axis=2)
    if opened.mode in {"RGBA", "LA", "PA", "RGBa", "La"} or "transparency" in opened.info:
        rgba = np.asarray(opened.convert("RGBA"), np.uint8)
        return np.asarray((rgba[..., :3].astype(np.uint16) * rgba[..., 3:] + 127) // 255, np.uint8)
    return np.array(opened.convert("RGB"), np.uint8)


def exif_of(opened: Opened) -> Exif:
    """Return the EXIF of a picture; empty where there is none or it is damaged. Nothing is decoded for it."""
    if opened.format == "PNG" and "exif" not in opened.info:  # Pillow would decode the picture to look for it behind the pixels
        return Image.Exif()
    try:
        return opened.getexif()
    except BROKEN:
        return Image.Exif()


def orientation_of(opened: Opened) -> int:
    with _without_warnings():
        value = exif_of(opened).get(ExifTags.Base.Orientation, 1)
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def taken_ms_of(opened: Opened) -> int | None:
    """Return when it was taken as EXIF says, in milliseconds of any clock; None where it does not say."""
    with _without_warnings():
        try:
            tags = exif_of(opened).get_ifd(ExifTags.IFD.Exif)
            return taken_ms(tags.get(ExifTags.Base.DateTimeOriginal), tags.get(ExifTags.Base.SubsecTimeOriginal))
        except BROKEN:
            return None


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Keep Pillow from printing warnings of tags that have more values than one; the first of them counts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def best_of_each(windows: Iterable[Iterable[Frame]], rate: Callable[[GreyPicture], float], glance: Glance | None) -> Iterator[Frame]:
    """Yield of each window of frames the one that is rated highest by its lightness; of equal ones the first. `glance` is given all."""
    for frames in windows:
        best: Frame | None = None
        highest = -math.inf
        for frame in frames:
            rating = rate(frame.image.mean(axis=2).astype(np.uint8))
            if glance is not None:
                glance(frame, rating)
            if rating > highest:
                best, highest = frame, rating
        if best is not None:
            yield best


def shown_size(opened: Opened) -> tuple[int, int]:
    """Return (width, height) in pixels as displayed."""
    width, height = opened.size
    return (height, width) if orientation_of(opened) in TRANSPOSED else (width, height)


def _apply_orientation(picture: Picture, orientation: int) -> Picture:
    if orientation in TRANSPOSED:
        picture = picture.transpose(1, 0, 2)
    flip_x, flip_y = orientation in {2, 3, 6, 7}, orientation in {3, 4, 7, 8}
    return np.ascontiguousarray(picture[:: -1 if flip_y else 1, :: -1 if flip_x else 1])
