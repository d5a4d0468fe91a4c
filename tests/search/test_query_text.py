"""What a query becomes: quoted words, so that nothing in it is an operator of FTS5."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vip.search.query_text import match, parse_query, separated


@pytest.mark.parametrize(
    ("query", "words", "text"),
    [
        ("pours milk", ("pours", "milk"), "pours milk"),
        ("who pours the milk?", ("pours", "milk"), "who pours the milk"),
        ('the "boiling point" of water', ("boiling point", "water"), "the boiling point of water"),
        ("to be or not", ("not",), "to be or not"),
        ("who is it", ("who", "is", "it"), "who is it"),
        ('"the who"', ("the who",), "the who"),
        ("milk milk", ("milk",), "milk milk"),
        ('unclosed "quote', ("unclosed", "quote"), "unclosed quote"),
        ("牛奶 milk", ("牛 奶", "milk"), "牛 奶 milk"),
        ("?!", (), ""),
        ("", (), ""),
    ],
)
def test_words_and_phrases_of_a_query(query: str, words: tuple[str, ...], text: str) -> None:
    parsed = parse_query(query)
    assert (parsed.words, parsed.text, bool(parsed)) == (words, text, bool(words))


@given(st.text(max_size=60))
def test_whatever_is_typed_is_no_syntax(query: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE texts USING fts5(caption, words, tokenize = 'porter unicode61')")
        connection.execute("INSERT INTO texts VALUES (?, '')", (separated(query),))
        if words := parse_query(query).words:
            for fields in ((), ("caption",)):
                connection.execute("SELECT * FROM texts WHERE texts MATCH ?", (match(words, "OR", fields),)).fetchall()


@pytest.mark.parametrize(
    "query", ["milk* OR", "caption : milk", 'NEAR("milk" "x")', "milk AND NOT", "^milk", "-milk", "{caption} : milk", "%milk%"]
)
def test_operators_are_words(query: str) -> None:
    assert "milk" in parse_query(query).words
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE texts USING fts5(caption)")
        connection.execute("INSERT INTO texts VALUES ('milk')")
        assert connection.execute("SELECT count(*) FROM texts WHERE texts MATCH ?", (match(["milk"], "AND", ()),)).fetchone() == (1,)
