"""The words of a query, and how they are asked for in FTS5.

In: what a user typed. Out: expressions of FTS5 in which every word is quoted, so that nothing in a query is an operator.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

UNSPACED = re.compile(r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff])")
"""A letter of a script that is written without spaces between words."""
PHRASE = re.compile(r'"([^"]*)"')
WORD = re.compile(r"\w+")
COMMON = frozenset(
    {"a", "an", "and", "are", "as", "at", "be", "by", "can", "did", "do", "does", "for", "from", "had", "has", "have", "he", "her", "his"}
    | {"how", "i", "in", "is", "it", "its", "my", "of", "on", "or", "our", "she", "someone", "something", "somebody", "that", "the"}
    | {"their", "there", "they", "this", "to", "was", "we", "were", "what", "when", "where", "which", "who", "whom", "whose", "why"}
    | {"will", "with", "you", "your"}
)
"""Words of English queries that say nothing about what is looked for."""


@dataclass(frozen=True, slots=True)
class QueryText:
    """A query by words."""

    words: tuple[str, ...]
    """Those outside of quotation marks that say something, and the phrases inside of them, as FTS5 gets them between quotation marks."""
    text: str
    """All of it as one phrase."""

    def __bool__(self) -> bool:
        return bool(self.words)


def parse_query(given: str) -> QueryText:
    """Return the words of a query; a phrase in quotation marks counts as one word."""
    words: list[str] = []
    for place, piece in enumerate(PHRASE.split(given)):
        found = [_phrase(word) for word in WORD.findall(piece)]
        words += [" ".join(found)] * bool(found) if place % 2 else found
    telling = [word for word in words if word.casefold() not in COMMON]
    return QueryText(tuple(dict.fromkeys(telling or words)), _phrase(" ".join(WORD.findall(given))))


def match(words: Sequence[str], operator: str, fields: Sequence[str]) -> str:
    """Return an expression of FTS5 for these words, in these columns; in all columns where none is named."""
    expression = f" {operator} ".join(f'"{word}"' for word in words)
    return f"{{{' '.join(fields)}}} : ({expression})" if fields else expression


def separated(text: str) -> str:
    """Return the text with spaces around letters of scripts that have none: FTS5 would take a whole sentence for one word."""
    return UNSPACED.sub(r" \1 ", text) if not text.isascii() else text


def _phrase(text: str) -> str:
    return " ".join(separated(text).split())
