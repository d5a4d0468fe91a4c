"""Pictures by Pillow: upright, over black, at the size that is asked for; and which of several is the best."""

from __future__ import annotations

import struct
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from tests.media import card
from tests.video.drawing import hole, write
from vip.errors import InputError
from vip.records import Frame
from vip.records import Image as Picture
from vip.video import pillow
from vip.video.pillow import best_of_each, open_picture, orientation_of, shown, shown_size, taken_ms_of

SIZE = (64, 48)
ASCII, SHORT, UNDEFINED, FLOAT = 2, 3, 7, 11  # kinds of values in EXIF


def stored(image: Image.Image, format_: str, **options: Any) -> BytesIO:
    file = BytesIO()
    image.save(file, format_, **options)
    file.seek(0)
    return file


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", ["png", "jpg", "webp"])
def test_a_picture_stands_as_its_camera_was_held(tmp_path: Path, orientation: int, suffix: str) -> None:
    path = write(tmp_path / f"a.{suffix}", card(3, *SIZE), orientation=orientation)
    with Image.open(path) as plain:
        upright = np.asarray(ImageOps.exif_transpose(plain).convert("RGB"))
    with open_picture(path, "a") as opened:
        assert orientation_of(opened) == orientation
        assert shown_size(opened) == (upright.shape[1], upright.shape[0])
        assert np.array_equal(shown(opened), upright)


@pytest.mark.parametrize("value", [0, 9, -1, 65535])
def test_an_orientation_that_is_none_leaves_the_picture_as_it_is(tmp_path: Path, value: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = value & 0xFFFF
    file = stored(Image.fromarray(card(3, *SIZE)), "PNG", exif=exif)
    with open_picture(file, "a") as opened:
        assert orientation_of(opened) == 1
        assert np.array_equal(shown(opened), card(3, *SIZE))


@pytest.mark.parametrize(
    ("kind", "count", "value", "orientation"),
    [
        (SHORT, 1, b"\6\0\0\0", 6),
        (SHORT, 2, b"\6\0\1\0", 6),
        (ASCII, 2, b"6\0\0\0", 1),
        (UNDEFINED, 1, b"\6\0\0\0", 1),
        (FLOAT, 1, struct.pack("<f", 6.5), 1),
    ],
)
def test_an_orientation_that_is_no_number_leaves_the_picture_as_it_is(kind: int, count: int, value: bytes, orientation: int) -> None:
    """EXIF as damage or a careless program leaves it."""
    exif = b"II*\0\x08\0\0\0" + struct.pack("<HHHI", 1, 0x0112, kind, count) + value + bytes(4)
    with open_picture(stored(Image.fromarray(card(3, *SIZE)), "PNG", exif=exif), "a") as opened:
        assert orientation_of(opened) == orientation
        assert shown_size(opened) == (SIZE if orientation == 1 else SIZE[::-1])
        assert np.array_equal(shown(opened), card(3, *SIZE)) == (orientation == 1)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "PA", "P"])
def test_what_can_be_seen_through_lies_over_black(mode: str) -> None:
    if mode == "P":
        image = Image.fromarray(card(3, *SIZE)).quantize(16)
        file = stored(image, "PNG", transparency=image.getpixel((0, 0)))
    else:
        file = stored(hole(1).convert(mode), "TIFF" if mode == "PA" else "PNG")
    with Image.open(file) as plain:
        rgba = np.asarray(plain.convert("RGBA")).astype(np.float64)
    file.seek(0)
    with open_picture(file, "a") as opened:
        picture = shown(opened)
    assert (rgba[..., 3] < 255).any()
    assert np.abs(picture - rgba[..., :3] * rgba[..., 3:] / 255).max() <= 0.5


def test_of_sixteen_bits_the_upper_ones_are_shown() -> None:
    levels = np.array([[0, 255, 256, 511, 32768, 65535]], np.uint16)
    with open_picture(stored(Image.fromarray(levels), "PNG"), "a") as opened:
        assert shown(opened)[0].tolist() == [[level] * 3 for level in (0, 0, 1, 1, 128, 255)]


@pytest.mark.parametrize(
    ("size", "longest_side_px", "wanted"),
    [((64, 48), 32, (32, 24)), ((48, 64), 32, (24, 32)), ((64, 48), 128, (128, 96)), ((300, 1), 30, (30, 1)), ((64, 48), None, (64, 48))],
)
def test_the_longest_side_is_as_long_as_asked(size: tuple[int, int], longest_side_px: int | None, wanted: tuple[int, int]) -> None:
    with open_picture(stored(Image.new("RGB", size, "red"), "PNG"), "a") as opened:
        picture = shown(opened, longest_side_px=longest_side_px)
    assert picture.shape == (wanted[1], wanted[0], 3)
    assert picture.dtype == np.uint8
    assert (picture == (255, 0, 0)).all()


@pytest.mark.parametrize(
    ("data", "said"),
    [(b"", "is not a picture that can be read"), (b"BM" + bytes(60), "is not a picture"), (b"GIF89a", "is not a picture")],
)
def test_what_is_no_picture_is_said(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "a.png").write_bytes(data)
    with pytest.raises(InputError, match=f"^a film {said}"):
        open_picture(tmp_path / "a.png", "a film")
    with pytest.raises(InputError, match=r"^a film does not exist\. Check the path\.$"):
        open_picture(tmp_path / "b.png", "a film")


def test_one_that_is_cut_off_is_damaged_when_it_is_shown(tmp_path: Path) -> None:
    data = stored(Image.fromarray(card(3, *SIZE)), "PNG").getvalue()
    (tmp_path / "a.png").write_bytes(data[: len(data) // 2])
    with open_picture(tmp_path / "a.png", "a") as opened, pytest.raises(InputError, match=r"a\.png is damaged"):
        shown(opened)
    with open_picture(BytesIO(data[: len(data) // 2]), "a") as opened, pytest.raises(InputError, match=r"^The picture is damaged\.$"):
        shown(opened)


def test_one_that_is_too_large_is_refused_and_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Any] = []
    monkeypatch.setattr(Image.Image, "close", lambda opened: closed.append(opened))
    monkeypatch.setattr("vip.video.size.MOST_PIXELS", 64 * 48 - 1)
    path = write(tmp_path / "a.png", card(3, *SIZE))
    with pytest.raises(InputError, match="claims pictures of 64x48 pixels"):
        open_picture(path, "a")
    assert len(closed) == 1


def test_a_png_without_exif_is_not_decoded_to_look_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_picture(stored(Image.fromarray(card(3, *SIZE)), "PNG"), "a") as opened:
        monkeypatch.setattr(opened, "load", lambda: pytest.fail("decoded"))
        assert orientation_of(opened) == 1
        assert taken_ms_of(opened) is None


@pytest.mark.parametrize("error", pillow.BROKEN)
def test_damaged_exif_says_nothing(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    def broken(self: Any, *_: object) -> Any:
        raise error("damaged")

    with open_picture(stored(Image.fromarray(card(3, *SIZE)), "JPEG"), "a") as opened:
        monkeypatch.setattr(Image.Exif, "get_ifd", broken)
        assert taken_ms_of(opened) is None
        monkeypatch.setattr(type(opened), "getexif", broken)
        assert orientation_of(opened) == 1


def grey(level: int, pts: int) -> Frame:
    image: Picture = np.full((4, 4, 3), level, np.uint8)
    return Frame(pts, Fraction(1, 1000), image)


def test_of_each_window_the_first_of_the_best_is_given_and_nothing_of_an_empty_one() -> None:
    windows = [[grey(5, 0), grey(9, 1), grey(9, 2)], [], [grey(3, 3)]]
    glimpses: list[tuple[int, float]] = []
    best = best_of_each(windows, lambda picture: float(picture.max()), lambda frame, rating: glimpses.append((frame.pts, rating)))
    assert [frame.pts for frame in best] == [1, 3]
    assert glimpses == [(0, 5.0), (1, 9.0), (2, 9.0), (3, 3.0)]
    assert [frame.pts for frame in best_of_each(windows, lambda picture: float(picture.max()), None)] == [1, 3]
