"""Texts of others on a terminal, and JSON of others."""

from __future__ import annotations

import csv
import json
import time
import unicodedata
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vip.untrusted import MOST_KEY_PARTS, long_cells, one_line, parse_json, parse_toml, printable, printable_json

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize("piece", ["\x90", "\x90a", "\x9b0", "\x1b]", "\x1b ", "\x9d\x1b", "\x98\x9e", "\u202e", "\ud83d"])
def test_a_long_text_takes_no_longer_than_its_letters(piece: str) -> None:
    start = time.process_time()
    printable(piece * 100_000)
    assert time.process_time() - start < 3


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a dog on a beach", "a dog on a beach"),
        ("two  spaces stay", "two  spaces stay"),
        ("\x1b[31mred\x1b[0m \x1b[2J\x1b[1;1Hgone", "red gone"),
        ("\x9b31mred\x9b0m", "red"),
        ("a\x1b]0;title\x07b\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "ablink"),
        ("\x1b]0;never ends", "0;never ends"),
        ("\x1bPq#0\x1b\\six\x1bcfull reset", "sixfull reset"),
        ("one\nvip: two\r\nthree\u2028four\x85five\vsix", "one vip: two  three four five six"),
        ("\u202egnp.exe\u2069 \u200fx\u061c", "gnp.exe x"),
        ("\ufeffso\u00adft\u200b", "soft"),
        ("می\u200cخواهم 👩\u200d🔬", "می\u200cخواهم 👩\u200d🔬"),
        ("日本語、 naïve café\u0301", "日本語、 naïve café\u0301"),
        ("bell\x07 null\x00 delete\x7f", "bell null delete"),
        ("\udcff.mp4", "\N{REPLACEMENT CHARACTER}.mp4"),
    ],
)
def test_a_text_is_shown_without_what_a_terminal_obeys(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(ANY_TEXT)
def test_nothing_that_is_shown_is_a_control_character_or_turns_the_direction(text: str) -> None:
    shown = printable(text)
    kinds = {unicodedata.category(letter) for letter in shown if letter not in "\u200c\u200d"}
    assert not kinds & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert printable(shown) == shown
    assert one_line(text) == " ".join(shown.split())


@pytest.mark.slow
@given(st.recursive(st.none() | st.booleans() | st.integers() | ANY_TEXT, lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner)))
def test_json_that_is_shown_means_the_same(value: Any) -> None:
    shown = printable_json(value)
    assert json.loads(shown) == value
    assert not {unicodedata.category(letter) for letter in shown} & {"Cc", "Cs", "Zl", "Zp"}
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\x9b")


@pytest.mark.slow
@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(), lambda inner: st.lists(inner)))
def test_json_within_bounds_is_read_as_it_is(value: Any) -> None:
    assert parse_json(json.dumps(value)) == value


@pytest.mark.parametrize(
    "data",
    [
        "[" * 100_000,
        "[" * 300 + "]" * 300,
        '{"a":' * 100_000,
        "1" * 5000,
        "1" * 25,
        "-9223372036854775809",
        "1e999",
        "NaN",
        "-Infinity",
        '[{"a": [18446744073709551616]}]',
        "{",
        "",
        "\x00",
    ],
)
def test_json_beyond_bounds_is_a_value_error(data: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(data)


def test_the_largest_numbers_within_bounds_are_read_as_they_are() -> None:
    integers = [-(2**63), 2**63 - 1]
    assert parse_json(f"{integers}") == parse_toml(f"a = {integers}")["a"] == integers
    assert parse_json('{"a": [1.5e308, -1.5e308]}') == {"a": [1.5e308, -1.5e308]}


def test_half_an_emoji_is_no_json() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        parse_json('"\ud83d"')


def test_json_that_is_too_large_is_not_read() -> None:
    with pytest.raises(ValueError, match="more than 10 bytes"):
        parse_json("[1, 2, 3, 4]", most_bytes=10)


def test_toml_within_bounds_is_read_as_it_is() -> None:
    assert parse_toml(b'[a.b]\nc.d = [1, inf]\ne = "m.e.l.i.n.d.a"') == {"a": {"b": {"c": {"d": [1, float("inf")]}, "e": "m.e.l.i.n.d.a"}}}


@pytest.mark.parametrize(
    "data",
    [
        b"a = \xff",
        b"a = " + b"9" * 5000,
        b"a = 0x" + b"f" * 5000,
        b"a = [[9223372036854775808]]",
        b"a" + b" . a" * MOST_KEY_PARTS + b" = 1",
        b"['a'." + b'"a".' * 200_000 + b"a]",
        b"a = {a." + b"a." * 200_000 + b"a = 1}",
        b"a = " + b"[" * 100_000,
        b"a = " + b"{a = " * 100_000,
    ],
    ids=lambda data: repr(data[:12]),
)
def test_toml_beyond_bounds_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"utf-8|digits|64 bits|parts|too deep"):
        parse_toml(data)


@pytest.mark.parametrize("fails", [False, True])
def test_the_bound_of_cells_is_pythons_again_whatever_happens(fails: bool) -> None:
    before = csv.field_size_limit(1234)
    try:
        with suppress(ZeroDivisionError), long_cells():
            assert csv.field_size_limit() > 10**7
            if fails:
                raise ZeroDivisionError
        assert csv.field_size_limit() == 1234
    finally:
        csv.field_size_limit(before)
