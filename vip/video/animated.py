"""Detection of animations among files with the suffix of a picture, by a few bytes of their headers."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from vip.files import open_named

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
MOST_CHUNKS = 64  # a PNG says within its first few chunks that it is animated
ANIMATION_FLAG = 0x02  # in the first byte of the chunk VP8X


def is_animated(path: Path) -> bool:
    """Return whether a WebP or PNG file holds several pictures; False for a file that cannot be read."""
    try:
        with open_named(path) as file:
            return is_animated_webp(file) or _is_animated_png(file)
    except OSError:
        return False


def is_animated_webp(file: IO[bytes]) -> bool:
    file.seek(0)
    start = file.read(21)
    return start[:4] == b"RIFF" and start[8:16] == b"WEBPVP8X" and bool(start[20] & ANIMATION_FLAG) if len(start) == 21 else False


def _is_animated_png(file: IO[bytes]) -> bool:
    file.seek(0)
    if file.read(8) != PNG_SIGNATURE:
        return False
    for _ in range(MOST_CHUNKS):
        head = file.read(8)
        if len(head) < 8 or head[4:] == b"IDAT":
            return False
        if head[4:] == b"acTL":
            return True
        file.seek(int.from_bytes(head[:4], "big") + 4, 1)
    return False
