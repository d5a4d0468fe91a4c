"""Pictures as they lie inside a page: JPEG, scaled down, in the address of the image."""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass

from vip.records import Image

SHORTEST_LONGEST_SIDE_PX = 96
JPEG_QUALITY = 82


@dataclass(frozen=True, slots=True)
class Jpeg:
    """An encoded picture and its size."""

    data: bytes
    width_px: int
    height_px: int

    def __repr__(self) -> str:
        return f"Jpeg({self.width_px}x{self.height_px}, {len(self.data)} bytes)"


def shrink(image: Image, *, longest_side_px: int, max_bytes: int) -> Jpeg:
    """Return a JPEG no larger than asked, never enlarged; `max_bytes` holds down to a side of 96 px."""
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


def data_uri(jpeg: bytes) -> str:
    """Return the address that holds the picture itself."""
    return f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"
