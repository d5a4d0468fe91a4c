"""Only letters that a font has are drawn, and only as many as there is room for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageFont

from vip.export import fonts
from vip.export.fonts import font_for, wrap_text
from vip.untrusted import one_line


@pytest.fixture
def _only_english(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system without fonts."""
    monkeypatch.setattr(fonts, "FILES", ())


def drawn(text: str, font: ImageFont.FreeTypeFont) -> bytes:
    picture = Image.new("L", (60, 60))
    ImageDraw.Draw(picture).text((20, 20), text, 255, font)
    return np.asarray(picture).tobytes()


@pytest.mark.usefixtures("_only_english")
def test_english_needs_no_font_of_the_system() -> None:
    font = font_for("A man's bike - 2 people, 50 % (and “more”)…", 20)
    assert font
    assert font.size == 20
    assert len({drawn(letter, font) for letter in "abcdefghijklmnopqrstuvwxyz"}) == 26


@pytest.mark.usefixtures("_only_english")
@pytest.mark.parametrize("text", ["größe", "漢字", "أحمر", "красный", "a 😀", "a\uffffb"])
def test_a_text_with_letters_that_no_font_has_gets_none(text: str) -> None:
    assert font_for(text, 20) is None


def test_other_letters_are_drawn_with_a_font_of_the_system_that_has_them() -> None:
    try:
        ImageFont.truetype("DejaVuSans.ttf", 20)
    except OSError:
        pytest.skip("DejaVu Sans is not installed")
    font = font_for("größe красный", 20)
    assert font
    assert font.getname()[0] == "DejaVu Sans"
    assert len({drawn(letter, font) for letter in "ößкрасный"}) == len(set("ößкрасный"))


@pytest.mark.slow
@given(st.text(max_size=20).map(one_line))
def test_no_letter_is_drawn_as_the_box_of_a_missing_one(text: str) -> None:
    font = font_for(text, 20)
    if font:
        box = drawn("\uffff", font)
        assert not any(drawn(letter, font) == box for letter in text)


def lines_and_widths(text: str, width_px: int, lines: int) -> Iterator[tuple[str, float]]:
    font = font_for("", 20)
    assert font
    yield from ((line, font.getlength(line)) for line in wrap_text(text, font, width_px, lines))


@pytest.mark.slow
@given(st.text("abc dW.,", max_size=800).map(one_line), st.integers(60, 600), st.integers(1, 3))
def test_a_text_is_cut_to_its_room(text: str, width_px: int, lines: int) -> None:
    found = list(lines_and_widths(text, width_px, lines))
    assert len(found) <= lines
    assert all(width <= width_px for _, width in found)
    read = "".join(line for line, _ in found).replace(" ", "")
    whole = text.replace(" ", "")
    assert read == whole if not read.endswith("…") else whole.startswith(read.removesuffix("…"))


@pytest.mark.parametrize(("length", "is_cut"), [(fonts.MOST_LETTERS, False), (fonts.MOST_LETTERS + 1, True)])
def test_a_text_of_more_letters_than_are_looked_at_is_cut_however_wide_its_room_is(length: int, is_cut: bool) -> None:
    ((line, _),) = lines_and_widths("x" * length, 10**6, 1)
    assert line == "x" * fonts.MOST_LETTERS + "…" * is_cut


def test_a_text_is_broken_between_words() -> None:
    lines = [line for line, _ in lines_and_widths("The colours are muted, and the picture is sharp.", 160, 2)]
    assert lines == ["The colours are", "muted, and the…"]
    assert [line for line, _ in lines_and_widths("short", 160, 2)] == ["short"]
    assert list(lines_and_widths("", 160, 2)) == []
