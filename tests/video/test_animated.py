"""Which files with the suffix of a picture are animations, by their first bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from vip.video.animated import MOST_CHUNKS, PNG_SIGNATURE, is_animated


def chunk(kind: bytes, size: int = 0) -> bytes:
    return size.to_bytes(4, "big") + kind + bytes(size) + b"sum "


@pytest.mark.parametrize(
    ("chunks", "is_moving"),
    [
        ([chunk(b"IHDR", 13), chunk(b"acTL", 8), chunk(b"IDAT", 5)], True),
        ([chunk(b"IHDR", 13), chunk(b"iCCP", 300), chunk(b"tEXt", 70_000), chunk(b"acTL", 8)], True),
        ([chunk(b"IHDR", 13), chunk(b"IDAT", 5), chunk(b"acTL", 8)], False),  # such a one is to be ignored
        ([chunk(b"IHDR", 13)], False),
        ([chunk(b"IHDR", 13), b"\0\0\0\x08acT"], False),
        ([], False),
        ([chunk(b"tEXt")] * (MOST_CHUNKS - 1) + [chunk(b"acTL", 8)], True),
        ([chunk(b"tEXt")] * MOST_CHUNKS + [chunk(b"acTL", 8)], False),
        ([b"\xff\xff\xff\xfftEXt", chunk(b"acTL", 8)], False),
    ],
)
def test_a_png_is_animated_where_a_chunk_before_its_pixels_says_so(tmp_path: Path, chunks: list[bytes], is_moving: bool) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(PNG_SIGNATURE + b"".join(chunks))
    assert is_animated(path) == is_moving
    path.write_bytes(PNG_SIGNATURE[:-1] + b"\r" + b"".join(chunks))
    assert not is_animated(path)


@pytest.mark.parametrize(("flags", "size", "is_moving"), [(0x02, 21, True), (0x3E, 30, True), (0x3C, 30, False), (0x02, 20, False)])
def test_a_webp_is_animated_where_its_header_says_so(tmp_path: Path, flags: int, size: int, is_moving: bool) -> None:
    data = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0" + bytes([flags]) + bytes(9)
    (tmp_path / "a.webp").write_bytes(data[:size])
    assert is_animated(tmp_path / "a.webp") == is_moving
    (tmp_path / "b.webp").write_bytes(data[:12] + b"VP8L" + data[16:])
    assert not is_animated(tmp_path / "b.webp")


def test_what_cannot_be_read_is_not_animated(tmp_path: Path) -> None:
    assert not is_animated(tmp_path / "gone.png")
    assert not is_animated(tmp_path)
