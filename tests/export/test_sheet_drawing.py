"""Drawing of a contact sheet: the shape of its tiles in pixels, where each tile stands, and what is written where."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image, ImageDraw

from vip.export import fonts, sheet_drawing
from vip.export.fonts import font_for
from vip.export.sheet_drawing import SheetTile, TileShape, draw_sheet, shape_for

Written = tuple[tuple[int, int], str, str, str]
"""Where, what, in which colour, by which anchor."""
SMALL = TileShape(columns=2, width_px=200, picture_height_px=100, text_height_px=76)
TOP = 32 + round(30 * 1.3 + 17 * 1.3) + 20
INK, GREY = sheet_drawing.INK, sheet_drawing.GREY


def plain_picture(colour: tuple[int, int, int], width_px: int = 64, height_px: int = 32) -> bytes:
    """A picture of one colour, RGB."""
    return cv2.imencode(".png", np.full((height_px, width_px, 3), colour[::-1], np.uint8))[1].tobytes()


def tile(number: int = 1, label: str = "", caption: str = "", picture: bytes = b"") -> SheetTile:
    return SheetTile(number, label, caption, picture)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Written]:
    """What is written on the sheets of a test."""
    found: list[Written] = []
    real = ImageDraw.ImageDraw.text

    def text(self: ImageDraw.ImageDraw, at: tuple[int, int], words: str, colour: str, font: Any, anchor: str) -> None:
        found.append((at, words, colour, anchor))
        real(self, at, words, colour, font, anchor=anchor)

    monkeypatch.setattr(ImageDraw.ImageDraw, "text", text)
    return found


def size_of(data: bytes) -> tuple[int, int]:
    with Image.open(BytesIO(data)) as picture:
        assert (picture.format, picture.mode) == ("JPEG", "RGB")
        return picture.size


# ---------------------------------------------------------------- shapes


@pytest.mark.parametrize(
    ("sizes", "shape"),
    [
        ([(1600, 900)] * 4, (4, 369, 208)),
        ([(1600, 900)] * 3, (3, 369, 208)),
        ([(1600, 900)] * 2, (2, 369, 208)),
        ([(1600, 900)], (2, 369, 208)),
        ([(900, 1600)] * 9, (6, 239, 425)),
        ([(900, 1600)] * 5, (5, 239, 425)),
        ([(900, 1600)], (2, 239, 425)),
        ([(85, 100)] * 9, (6, 239, 281)),
        ([(86, 100)] * 9, (4, 369, 429)),
        ([(100, 100)] * 9, (4, 369, 369)),
        ([(1000, 100)] * 9, (4, 369, 154)),
        ([(100, 1000)] * 9, (6, 239, 478)),
        ([(240, 100)] * 9, (4, 369, 154)),
        ([(50, 100)] * 9, (6, 239, 478)),
    ],
)
def test_tiles_are_as_wide_as_their_columns_allow_and_as_high_as_their_pictures(
    sizes: list[tuple[int, int]], shape: tuple[int, int, int]
) -> None:
    found = shape_for(sizes, captions=False)
    assert (found.columns, found.width_px, found.picture_height_px) == shape


@pytest.mark.parametrize(
    ("sizes", "height_px"),
    [([(200, 100), (100, 100), (4000, 10)], 184), ([(200, 100), (200, 100), (100, 400)], 184), ([(200, 100), (100, 100)], 246)],
)
def test_the_shape_is_that_of_the_picture_in_the_middle_and_no_mean(sizes: list[tuple[int, int]], height_px: int) -> None:
    assert shape_for(sizes, captions=False).picture_height_px == height_px


@pytest.mark.parametrize(("captions", "text_px"), [(False, 32), (True, 76)])
def test_two_lines_of_a_caption_have_room_below_the_label_where_there_are_captions(captions: bool, text_px: int) -> None:
    found = shape_for([(1600, 900)] * 4, captions=captions)
    assert (found.text_height_px, found.height_px) == (text_px, 208 + text_px)


# ---------------------------------------------------------------- the grid


@pytest.mark.parametrize(("count", "rows"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3)])
def test_a_sheet_has_as_many_rows_as_its_tiles_need(count: int, rows: int) -> None:
    data = draw_sheet("x", "y", [tile(number) for number in range(count)], SMALL)
    assert size_of(data) == (32 + 200 + 20 + 200 + 32, TOP + rows * 176 + (rows - 1) * 20 + 32)


def test_a_sheet_of_four_columns_is_as_wide_as_all_others() -> None:
    shape = shape_for([(1600, 900)] * 4, captions=True)
    assert size_of(draw_sheet("x", "y", [tile()], shape))[0] == 32 + 4 * 369 + 3 * 20 + 32 == 1600


def test_tiles_go_from_left_to_right_and_then_down() -> None:
    colours = [(250, 20, 20), (20, 220, 20), (20, 20, 250)]
    tiles = [tile(number, picture=plain_picture(colour)) for number, colour in enumerate(colours, 1)]
    with Image.open(BytesIO(draw_sheet("x", "y", tiles, SMALL))) as sheet:
        for (x, y), colour in zip([(32, TOP), (252, TOP), (32, TOP + 196)], colours, strict=True):
            for at in ((x + 8, y + 8), (x + 192, y + 92)):
                assert np.abs(np.subtract(sheet.getpixel(at), colour)).max() < 16  # type: ignore[arg-type]
        empty = sheet.getpixel((260, TOP + 204))
        assert np.abs(np.subtract(empty, (0xFB, 0xFA, 0xF8))).max() < 6, "paper, where there is no tile"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("size", "place"),
    [
        ((64, 32), (32, TOP, 200, 100)),
        ((2000, 1000), (32, TOP, 200, 100)),
        ((100, 100), (82, TOP, 100, 100)),
        ((400, 100), (32, TOP + 25, 200, 50)),
        ((10, 100), (127, TOP, 10, 100)),
        ((4000, 1), (32, TOP + 49, 200, 1)),
        ((1, 4000), (131, TOP, 1, 100)),
    ],
)
def test_a_picture_is_scaled_to_its_field_whole_and_in_its_middle(
    size: tuple[int, int], place: tuple[int, int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    placed: list[tuple[int, int, int, int]] = []
    monkeypatch.setattr(Image.Image, "paste", lambda self, other, at: placed.append((*at, *other.size)))
    draw_sheet("x", "y", [tile(picture=plain_picture((9, 9, 9), *size))], SMALL)
    assert placed == [place]


def test_bars_beside_a_picture_have_the_colour_of_the_field_and_no_pixel_beyond_it() -> None:
    with Image.open(BytesIO(draw_sheet("x", "y", [tile(picture=plain_picture((20, 20, 20), 100, 100))], SMALL))) as sheet:
        for at in ((36, TOP + 50), (228, TOP + 50)):
            assert np.abs(np.subtract(sheet.getpixel(at), (0xE9, 0xE5, 0xDF))).max() < 6  # type: ignore[arg-type]
        for at in ((26, TOP + 50), (238, TOP + 50), (36, TOP + 106)):
            assert np.abs(np.subtract(sheet.getpixel(at), (0xFB, 0xFA, 0xF8))).max() < 6  # type: ignore[arg-type]


@pytest.mark.parametrize("data", [b"", b"no picture", plain_picture((9, 9, 9))[:40]])
def test_of_a_picture_that_cannot_be_read_the_field_says_so_and_the_others_are_drawn(data: bytes, written: list[Written]) -> None:
    tiles = [tile(1, "0:01", "A dog.", data), tile(2, "0:02", "A cat.", plain_picture((250, 20, 20)))]
    with Image.open(BytesIO(draw_sheet("x", "y", tiles, TileShape(2, 300, 150, 76)))) as sheet:
        assert np.abs(np.subtract(sheet.getpixel((400, TOP + 75)), (250, 20, 20))).max() < 16  # type: ignore[arg-type]
    assert [one for one in written if "cannot be read" in one[1]] == [((44, TOP + 12), "This picture cannot be read.", GREY, "la")]
    assert [one[1] for one in written if one[1] in {"0:01", "A dog.", "0:02", "A cat."}] == ["0:01", "A dog.", "0:02", "A cat."]


def test_on_a_narrow_tile_all_of_that_is_said(written: list[Written]) -> None:
    draw_sheet("x", "y", [tile(1, "0:01", "A dog.", b"")], TileShape(1, 239, 400, 76))
    said = [one[1] for one in written if one[0][0] == 44]
    assert " ".join(said) == "This picture cannot be read."


# ---------------------------------------------------------------- words


def test_the_title_the_facts_the_number_the_label_and_the_caption_have_their_places(written: list[Written]) -> None:
    picture = plain_picture((9, 9, 9))
    draw_sheet("My film", "0:12, 2 keyframes", [tile(7, "0:01", "A dog.", picture), tile(8, "0:02", "A cat.", picture)], SMALL)
    words = TOP + 100 + 4
    assert written == [
        ((32, 32), "My film", INK, "la"),
        ((32, 32 + 39), "0:12, 2 keyframes", GREY, "la"),
        ((232, words + 3), "7", GREY, "ra"),
        ((32, words), "0:01", INK, "la"),
        ((32, words + 26), "A dog.", GREY, "la"),
        ((452, words + 3), "8", GREY, "ra"),
        ((252, words), "0:02", INK, "la"),
        ((252, words + 26), "A cat.", GREY, "la"),
    ]


def test_a_long_caption_has_two_lines_and_the_second_ends_with_an_ellipsis(written: list[Written]) -> None:
    draw_sheet("x", "y", [tile(1, "0:01", "A dog leaps for a frisbee over a green field beside a lake.", plain_picture((9, 9, 9)))], SMALL)
    first, second = written[-2:]
    assert (first[0], second[0]) == ((32, TOP + 130), (32, TOP + 130 + 22))
    assert first[1].startswith("A dog leaps")
    assert not first[1].endswith("…")
    assert second[1].endswith("…")


def test_a_label_leaves_room_for_the_number_beside_it(written: list[Written]) -> None:
    draw_sheet("x", "y", [tile(1_000_000, "a_name_that_is_far_too_long_for_this.jpg", picture=plain_picture((9, 9, 9)))], SMALL)
    number, label = written[2:4]
    assert (number[1], label[1][-1]) == ("1000000", "…")
    small, large = font_for(number[1], 17), font_for(label[1], 20)
    assert small is not None
    assert large is not None
    assert label[0][0] + large.getlength(label[1]) <= number[0][0] - small.getlength(number[1]) - 20


@pytest.mark.parametrize("place", ["title", "facts"])
def test_a_title_wider_than_its_sheet_is_cut_at_the_margin(place: str, written: list[Written]) -> None:
    texts = {"title": "x", "facts": "y", place: "A day in May " * 9}
    draw_sheet(texts["title"], texts["facts"], [tile()], SMALL)
    ((at, words, *_),) = [one for one in written if one[1].startswith("A day")]
    font = font_for(words, 30 if place == "title" else 17)
    assert font is not None
    assert words.endswith("…")
    assert 484 - 32 - 60 < at[0] + font.getlength(words) <= 484 - 32


def test_a_text_that_no_font_can_write_is_left_out_and_the_rest_is_drawn(written: list[Written], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "FILES", ())
    draw_sheet("漢字", "0:12", [tile(1, "漢", "A dog.", plain_picture((9, 9, 9)))], SMALL)
    assert [one[1] for one in written] == ["0:12", "1", "A dog."]
