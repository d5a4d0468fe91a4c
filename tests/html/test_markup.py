"""Markup made in Python: text is escaped, and nothing is shown that must not be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from vip.html.markup import decimal, escape, join, showable, tag


def test_plain_strings_are_escaped_and_markup_is_not() -> None:
    assert tag("p", "<b>", Markup("<i></i>"), title="a\"'<") == '<p title="a&quot;&#x27;&lt;">&lt;b&gt;<i></i></p>'
    assert join(["<", Markup("<br>")]) == "&lt;<br>"
    assert Markup("<i>") + "<b>" == "<i>&lt;b&gt;"  # what is glued to markup is escaped


def test_attributes_that_are_none_or_false_are_left_out() -> None:
    assert tag("input", id=None, checked=False, disabled=True, tabindex=-1, class_="x", aria_label="y") == (
        '<input disabled tabindex="-1" class="x" aria-label="y">'
    )


@given(st.text(st.characters()))
def test_escaped_text_holds_no_markup_and_has_utf8(text: str) -> None:
    escaped = escape(text)
    assert not set(escaped) & set("<>\"'")
    escaped.encode()


@pytest.mark.parametrize(
    "mark", [*"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", *"\x00\x08\x1b\x7f\x85\x9f", "\ud800", "\ufffe"]
)
def test_what_turns_text_around_or_moves_the_cursor_is_not_shown(mark: str) -> None:
    assert showable(f"a{mark}b") == "a\ufffdb"
    assert showable("a\u200d\u0645\t\nb") == "a\u200d\u0645\t\nb", "what joins letters, and right-to-left letters themselves"


@given(st.floats(-1e9, 1e9))
def test_decimals_have_no_exponent(value: float) -> None:
    assert "e" not in decimal(value)
    assert float(decimal(value)) == pytest.approx(value, abs=0.00050001)
