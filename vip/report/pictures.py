"""Pictures small enough to lie inside the page: keyframes scaled down, thumbnails out of the run's zip file.

One decoded picture is in memory at a time; what is kept are JPEG bytes, bounded by `PICTURES_BYTES` for the whole page.
"""

from __future__ import annotations

import base64
import math
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from vip.errors import InputError
from vip.files import opened_zip
from vip.html.markup import Html, tag
from vip.records import Image
from vip.store import THUMBNAILS, KeyframePicture

THUMBNAIL_SIDE_PX = 160
THUMBNAIL_BYTES = 32 * 2**10  # a JPEG of 160x160 noise at quality 90 has 26 kB
THUMBNAILS_BYTES = 4 * 2**20
LONGEST_SIDE_PX = 960
SHORTEST_LONGEST_SIDE_PX = 96
JPEG_QUALITY = 82
PICTURES_BYTES = 6 * 2**20  # base64 adds a third: 8 MiB of page


@dataclass(frozen=True, slots=True)
class Jpeg:
    """An encoded picture and its size."""

    data: bytes
    width_px: int
    height_px: int

    def __repr__(self) -> str:
        return f"Jpeg({self.width_px}x{self.height_px}, {len(self.data)} bytes)"


@dataclass(frozen=True, slots=True)
class ShownPicture:
    """A keyframe's picture in the two sizes of the page."""

    card: Jpeg
    thumbnail: Jpeg


def shrink_all(keyframes: Sequence[KeyframePicture]) -> list[ShownPicture | None]:
    """The pictures of the keyframes; None where the file is missing or damaged."""
    return [_shown(keyframe, count=len(keyframes)) for keyframe in keyframes]


def _shown(keyframe: KeyframePicture, *, count: int) -> ShownPicture | None:
    try:
        image = keyframe.image
    except InputError:
        return None
    side_px = LONGEST_SIDE_PX if count <= 32 else LONGEST_SIDE_PX * 2 // 3 if count <= 100 else LONGEST_SIDE_PX // 2
    card = shrink(image, longest_side_px=side_px, max_bytes=PICTURES_BYTES // count)
    return ShownPicture(card, shrink(image, longest_side_px=THUMBNAIL_SIDE_PX, max_bytes=THUMBNAIL_BYTES // 2))


def shrink(image: Image, *, longest_side_px: int, max_bytes: int) -> Jpeg:
    """A JPEG no larger than asked, never enlarged; `max_bytes` holds down to a side of 96 px."""
    side_px = min(longest_side_px, max(image.shape[:2]))
    while True:
        jpeg = _encode(image, side_px)
        if len(jpeg.data) <= max_bytes or side_px <= SHORTEST_LONGEST_SIDE_PX:
            return jpeg
        ratio = min(0.9, math.sqrt(max_bytes / len(jpeg.data)))
        side_px = max(SHORTEST_LONGEST_SIDE_PX, int(side_px * ratio))


def _encode(image: Image, side_px: int) -> Jpeg:
    import cv2

    height, width = image.shape[:2]
    scale = side_px / max(height, width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    scaled = image if size == (width, height) else cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    _, data = cv2.imencode(".jpg", cv2.cvtColor(scaled, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    return Jpeg(data.tobytes(), *size)


class Thumbnails:
    """The candidates' thumbnails; a member that is missing, too large or no JPEG is None, and so is all beyond the page's share."""

    def __init__(self, archive: zipfile.ZipFile | None) -> None:
        self._archive = archive
        self._left_bytes = THUMBNAILS_BYTES

    def read(self, index: int) -> bytes | None:
        if self._archive is None:
            return None
        try:
            with self._archive.open(f"{index:06d}.jpg") as member:
                data = member.read(THUMBNAIL_BYTES + 1)
        except (KeyError, OSError, RuntimeError, EOFError, zipfile.BadZipFile):
            return None
        if not data.startswith(b"\xff\xd8\xff") or len(data) > min(THUMBNAIL_BYTES, self._left_bytes):
            return None
        self._left_bytes -= len(data)
        return data


@contextmanager
def open_thumbnails(folder: Path) -> Iterator[Thumbnails]:
    """The thumbnails of a run folder; all missing where the file is absent or damaged."""
    with ExitStack() as stack:
        archive: zipfile.ZipFile | None = None
        with suppress(OSError, zipfile.BadZipFile):
            archive = stack.enter_context(opened_zip(folder / THUMBNAILS))
        yield Thumbnails(archive)


def data_uri(jpeg: bytes) -> str:
    return f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"


def img(jpeg: Jpeg | None, alt: str) -> Html:
    """The picture, or a placeholder that says that there is none."""
    if jpeg is None:
        return missing("picture missing")
    return tag("img", src=data_uri(jpeg.data), width=jpeg.width_px, height=jpeg.height_px, alt=alt)


def missing(text: str) -> Html:
    return tag("span", text, class_="missing")
