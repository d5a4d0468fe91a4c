"""Fonts for text in pictures. Pillow has one for English; other letters need a font of the system.

In: a text and a size. Out: the first font that has all of its letters, and the text cut to a width.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache

from PIL import ImageFont
from PIL.ImageFont import FreeTypeFont

FILES = (
    *("DejaVuSans.ttf", "NotoSans-Regular.ttf", "LiberationSans-Regular.ttf", "arial.ttf", "Arial.ttf"),
    *(
        "Arial Unicode.ttf",
        "NotoSansCJK-Regular.ttc",
        "NotoSansCJKsc-Regular.otf",
        "wqy-zenhei.ttc",
        "msyh.ttc",
        "YuGothM.ttc",
        "malgun.ttf",
    ),
)
"""Names on Linux, macOS and Windows; Pillow looks for them in the font folders of the system."""
ELLIPSIS = "…"
NO_LETTER = "\uffff"  # no font has it, so this shows what a font draws for a missing letter
MOST_LETTERS = 500  # of a text that is cut


def font_for(text: str, size_px: int) -> FreeTypeFont | None:
    """Return the first font that has the letters of a text; None where there is none."""
    letters = frozenset(text)
    return next(
        (font for name in ("", *FILES) if (font := _font(name, size_px)) and all(_has_glyph(name, letter) for letter in letters)), None
    )


def wrap_text(text: str, font: FreeTypeFont, width_px: int, lines: int = 1) -> list[str]:
    """Return the text in at most so many lines, broken between words, with an ellipsis where it was cut."""
    found: list[str] = []
    rest = text[:MOST_LETTERS]
    while rest and len(found) < lines:
        is_last = len(found) == lines - 1
        if font.getlength(rest) <= width_px and len(text) <= MOST_LETTERS:
            return [*found, rest]
        more = ELLIPSIS if is_last else ""
        fits = bisect_left(range(1, len(rest) + 1), True, key=lambda count: font.getlength(rest[:count] + more) > width_px)
        space = rest.rfind(" ", 0, fits + 1)
        end = space if space > 0 else max(1, fits)
        found.append(rest[:end].rstrip(" .,;:") + more if is_last else rest[:end])
        rest = rest[end:].lstrip()
    return found


@lru_cache(maxsize=64)
def _font(name: str, size_px: int) -> FreeTypeFont | None:
    """Return Pillow's own font for "", or one of the system; None where it is not installed."""
    if not name:
        built_in = ImageFont.load_default(size_px)
        return built_in if isinstance(built_in, FreeTypeFont) else None
    try:
        return ImageFont.truetype(name, size_px)
    except OSError:
        return None


@lru_cache(maxsize=100_000)
def _has_glyph(name: str, letter: str) -> bool:
    font = _font(name, 20)
    return font is not None and (letter == " " or _render(font, letter) != _render(font, NO_LETTER))


def _render(font: FreeTypeFont, letter: str) -> tuple[tuple[int, int], bytes]:
    mask = font.getmask(letter)
    return mask.size, bytes(mask)
