"""The pictures of a page: keyframes scaled down, thumbnails out of the run's zip file.

One decoded picture is in memory at a time; what is kept are JPEG bytes, bounded by `PICTURES_BYTES` for the whole page.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from vip.errors import InputError
from vip.files import ZIP_DAMAGE, open_zip
from vip.html.pictures import Jpeg, shrink
from vip.store import THUMBNAILS, KeyframePicture

THUMBNAIL_SIDE_PX = 160
THUMBNAIL_BYTES = 32 * 2**10  # a JPEG of 160x160 noise at quality 90 has 26 kB
THUMBNAILS_BYTES = 4 * 2**20
LONGEST_SIDE_PX = 960
PICTURES_BYTES = 6 * 2**20  # base64 adds a third: 8 MiB of page


@dataclass(frozen=True, slots=True)
class ShownPicture:
    """A keyframe's picture in the two sizes of the page."""

    card: Jpeg
    thumbnail: Jpeg


def shrink_all(keyframes: Sequence[KeyframePicture]) -> list[ShownPicture | None]:
    """Return the pictures of the keyframes; None where the file is missing or damaged."""
    return [_shrink_keyframe(keyframe, count=len(keyframes)) for keyframe in keyframes]


def _shrink_keyframe(keyframe: KeyframePicture, *, count: int) -> ShownPicture | None:
    try:
        image = keyframe.image
    except InputError:
        return None
    side_px = LONGEST_SIDE_PX if count <= 32 else LONGEST_SIDE_PX * 2 // 3 if count <= 100 else LONGEST_SIDE_PX // 2
    card = shrink(image, longest_side_px=side_px, max_bytes=PICTURES_BYTES // count)
    return ShownPicture(card, shrink(image, longest_side_px=THUMBNAIL_SIDE_PX, max_bytes=THUMBNAIL_BYTES // 2))


class Thumbnails:
    """The candidates' thumbnails; a member that is missing, too large or no JPEG is None, and so is all beyond the page's share."""

    def __init__(self, archive: zipfile.ZipFile | None) -> None:
        self._archive = archive
        self._bytes_left = THUMBNAILS_BYTES

    def read(self, index: int) -> bytes | None:
        """Return the JPEG of the candidate with this index."""
        if self._archive is None:
            return None
        try:
            with self._archive.open(f"{index:06d}.jpg") as member:
                data = member.read(THUMBNAIL_BYTES + 1)
        except (KeyError, *ZIP_DAMAGE):
            return None
        if not data.startswith(b"\xff\xd8\xff") or len(data) > min(THUMBNAIL_BYTES, self._bytes_left):
            return None
        self._bytes_left -= len(data)
        return data


@contextmanager
def open_thumbnails(folder: Path) -> Iterator[Thumbnails]:
    """Yield the thumbnails of a run folder; all missing where the file is absent or damaged."""
    with ExitStack() as stack:
        archive: zipfile.ZipFile | None = None
        with suppress(OSError, zipfile.BadZipFile):
            archive = stack.enter_context(open_zip(folder / THUMBNAILS))
        yield Thumbnails(archive)
