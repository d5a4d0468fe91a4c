"""Drawing of a contact sheet: a title, and a grid of pictures with their times and the first words of their captions.

In: a title, tiles, and the shape that all tiles have. Out: one JPEG. One decoded picture is in memory at a time, beside the sheet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from statistics import median

import cv2
from PIL import Image, ImageDraw

from vip.errors import InputError
from vip.export.fonts import font_for, wrap_text
from vip.video.pillow import open_picture, shown

WIDTH_PX = 1600
MARGIN_PX, GAP_PX = 32, 20
COLUMNS, PORTRAIT_COLUMNS = 4, 6
LEAST_COLUMNS = 2  # so that a title has room above one picture
LOWEST_ASPECT, HIGHEST_ASPECT = 0.5, 2.4  # width over height; a banner or a ribbon has bars beside it
TITLE_PX, TEXT_PX, SMALL_PX = 30, 20, 17
LINE = 1.3  # from one line to the next
CAPTION_LINES = 2
JPEG_QUALITY = 88
PAPER, FIELD, INK, GREY = "#fbfaf8", "#e9e5df", "#1d1c1a", "#6a665f"


@dataclass(frozen=True, slots=True)
class SheetTile:
    """A keyframe on the sheet."""

    number: int
    label: str
    """Its time, or the name of its file."""
    caption: str
    """On one line; empty where there is none."""
    picture: bytes
    """The file."""


@dataclass(frozen=True, slots=True)
class TileShape:
    """The size of all tiles of a video."""

    columns: int
    width_px: int
    picture_height_px: int
    text_height_px: int

    @property
    def height_px(self) -> int:
        return self.picture_height_px + self.text_height_px


def shape_for(sizes: Sequence[tuple[int, int]], *, captions: bool) -> TileShape:
    """Return the shape of the tiles for pictures of these widths and heights."""
    aspect = min(HIGHEST_ASPECT, max(LOWEST_ASPECT, median(width / height for width, height in sizes)))
    columns = COLUMNS if aspect > 0.85 else PORTRAIT_COLUMNS
    width_px = (WIDTH_PX - 2 * MARGIN_PX - (columns - 1) * GAP_PX) // columns
    text_px = TEXT_PX * LINE + 6 + (CAPTION_LINES * SMALL_PX * LINE if captions else 0)
    return TileShape(max(LEAST_COLUMNS, min(columns, len(sizes))), width_px, round(width_px / aspect), round(text_px))


def draw_sheet(title: str, facts: str, tiles: Sequence[SheetTile], shape: TileShape) -> bytes:
    """Return the sheet as a JPEG; a picture that cannot be read is a grey field that says so."""
    rows = -(-len(tiles) // shape.columns)
    top = MARGIN_PX + round(TITLE_PX * LINE + SMALL_PX * LINE) + GAP_PX
    width = 2 * MARGIN_PX + shape.columns * (shape.width_px + GAP_PX) - GAP_PX
    sheet = Image.new("RGB", (width, top + rows * (shape.height_px + GAP_PX) - GAP_PX + MARGIN_PX), PAPER)
    drawing = ImageDraw.Draw(sheet)
    _write(drawing, (MARGIN_PX, MARGIN_PX), title, TITLE_PX, INK, width - 2 * MARGIN_PX)
    _write(drawing, (MARGIN_PX, MARGIN_PX + round(TITLE_PX * LINE)), facts, SMALL_PX, GREY, width - 2 * MARGIN_PX)
    for place, tile in enumerate(tiles):
        row, column = divmod(place, shape.columns)
        x, y = MARGIN_PX + column * (shape.width_px + GAP_PX), top + row * (shape.height_px + GAP_PX)
        _draw_picture(sheet, drawing, tile, (x, y), shape)
        _draw_words(drawing, tile, (x, y + shape.picture_height_px + 4), shape)
    file = BytesIO()
    sheet.save(file, "JPEG", quality=JPEG_QUALITY)
    return file.getvalue()


def _draw_picture(sheet: Image.Image, drawing: ImageDraw.ImageDraw, tile: SheetTile, at: tuple[int, int], shape: TileShape) -> None:
    x, y = at
    drawing.rectangle((x, y, x + shape.width_px - 1, y + shape.picture_height_px - 1), fill=FIELD)
    try:
        small = _fit_picture(tile, shape)
    except InputError:
        _write(drawing, (x + 12, y + 12), "This picture cannot be read.", SMALL_PX, GREY, shape.width_px - 24, lines=2)
        return
    sheet.paste(small, (x + (shape.width_px - small.width) // 2, y + (shape.picture_height_px - small.height) // 2))


def _fit_picture(tile: SheetTile, shape: TileShape) -> Image.Image:
    """Return the picture scaled to fit its field.

    Raises:
        InputError: it is damaged or too large.
    """
    opened = open_picture(BytesIO(tile.picture), f"keyframe {tile.number}")
    opened.draft("RGB", (2 * shape.width_px, 2 * shape.width_px))  # a JPEG is decoded at a fraction of its size
    picture = shown(opened)
    height, width = picture.shape[:2]
    scale = min(shape.width_px / width, shape.picture_height_px / height)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return Image.fromarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC))


def _draw_words(drawing: ImageDraw.ImageDraw, tile: SheetTile, at: tuple[int, int], shape: TileShape) -> None:
    x, y = at
    number = str(tile.number)
    room = (
        shape.width_px
        - _write(drawing, (x + shape.width_px, y + TEXT_PX - SMALL_PX), number, SMALL_PX, GREY, shape.width_px, anchor="ra")
        - GAP_PX
    )
    _write(drawing, (x, y), tile.label, TEXT_PX, INK, room)
    _write(drawing, (x, y + round(TEXT_PX * LINE)), tile.caption, SMALL_PX, GREY, shape.width_px, lines=CAPTION_LINES)


def _write(
    drawing: ImageDraw.ImageDraw,
    at: tuple[int, int],
    text: str,
    size_px: int,
    colour: str,
    width_px: int,
    *,
    lines: int = 1,
    anchor: str = "la",
) -> int:
    """Write as much of a text as fits, nothing where no font has its letters, and return the width of the last line."""
    font = font_for(text, size_px)
    width = 0.0
    for number, line in enumerate(wrap_text(text, font, width_px, lines) if font else ()):
        drawing.text((at[0], at[1] + round(number * size_px * LINE)), line, colour, font, anchor=anchor)
        width = drawing.textlength(line, font)
    return round(width)
