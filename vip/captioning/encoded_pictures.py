"""The picture of a keyframe as an engine gets it: read, made small and encoded once, whatever is asked about it.

In: a keyframe. Out: its `Picture`, and for engines that describe what is measured its `Facts`. A JPEG that is small enough
and says nothing about who took it goes as it lies on the disk.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from vip.captioning.colours import shrink
from vip.captioning.facts import measure
from vip.captioning.view_change import LONGEST_SIDE_PX as VIEW_SIDE_PX
from vip.errors import InputError
from vip.protocols import KeyframeFacts, Picture
from vip.records import NOT_KNOWN, Image
from vip.store import KeyframePicture

JPEG_QUALITY = 90
MOST_BYTES = 250_000  # a larger JPEG is encoded anew: it is of a quality that no model sees, and files of batches are counted in bytes
JPEG_START, JPEG_END = b"\xff\xd8\xff", b"\xff\xd9"
EXIF = b"Exif\x00"  # may turn the picture, and tell where it was taken


@dataclass(frozen=True, slots=True)
class EncodedKeyframe:
    """The result of reading a picture; `facts` only for engines that describe what is measured."""

    picture: Picture
    facts: KeyframeFacts | None = None
    movement: str = NOT_KNOWN
    """See `RichFields.camera_movement`."""


def encode_keyframe(item: KeyframePicture, longest_side_px: int) -> Picture:
    """Return the keyframe as JPEG, its longest side at most that long.

    Raises:
        InputError: the picture is missing or damaged.
    """
    record = item.record
    if item.path.suffix.lower() in {".jpg", ".jpeg"} and max(record.width_px, record.height_px) <= longest_side_px:
        data = item.data
        if len(data) <= MOST_BYTES and data.startswith(JPEG_START) and data.endswith(JPEG_END) and EXIF not in data:
            return Picture(data, "image/jpeg")
    return encode_jpeg(item.image, longest_side_px)


def encode_jpeg(image: Image, longest_side_px: int) -> Picture:
    """Return the picture as JPEG, its longest side at most that long."""
    small = cv2.cvtColor(shrink(image, longest_side_px), cv2.COLOR_RGB2BGR)
    _, data = cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    return Picture(np.asarray(data).tobytes(), "image/jpeg")


class KeyframeReader:
    """A reader that measures pictures in order, and keeps a small copy of the last one to compare the next with."""

    def __init__(self, longest_side_px: int) -> None:
        self.longest_side_px = longest_side_px
        self.last: tuple[str, Image] | None = None

    def at(self, item: KeyframePicture, before: KeyframePicture | None, detector: str | None) -> EncodedKeyframe:
        """Return the picture of a keyframe and its measured facts.

        Args:
            before: the keyframe in front of it; None for the first of a video.
            detector: who made the detections of the record; None when nobody looked.

        Raises:
            InputError: the picture is missing or damaged.
        """
        previous = self._small(before) if before is not None and before.record.video_id == item.record.video_id else None
        self.last = None
        image = item.image
        self.last = str(item.path), shrink(image, VIEW_SIDE_PX)
        return EncodedKeyframe(encode_jpeg(image, self.longest_side_px), measure(image, item.record, previous=previous, detector=detector))

    def _small(self, before: KeyframePicture) -> Image | None:
        """Return the small copy; None where the picture cannot be read, and there is nothing to compare with."""
        if self.last is not None and self.last[0] == str(before.path):
            return self.last[1]
        try:
            return shrink(before.image, VIEW_SIDE_PX)
        except InputError:
            return None
