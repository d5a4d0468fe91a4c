"""Which answers are noun phrases: judged in the caption that they fill, by its parse (Castro et al. 2022, section 3.2).

In: a caption with a blank, an answer, and a parser: spaCy's, or one that another package adds by an entry point of the group
`vip.parsers`, a class without arguments that is called with texts. Out: whether the answer is a noun phrase, a wh-phrase, a gerund or an
infinitive there. The paper keeps 95 % of the answers.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from vip.tasks.fiber.language_models import load_added, load_spacy
from vip.tasks.fiber.records import BLANK
from vip.wording import option

GROUP = "vip.parsers"
DEFAULT_PARSER = "spacy:en_core_web_trf"
NONE = "none"
NOUNS = frozenset({"NOUN", "PRON", "PROPN"})
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True)
class ParsedToken:
    """A token of a parsed text."""

    start: int
    """First letter in the text."""
    end: int
    text: str
    pos: str
    """Universal part of speech: `NOUN`."""
    tag: str
    """Penn Treebank tag: `VBG`."""
    dep: str
    """Dependency on its head: `nsubj`."""
    head: int
    """Place of its head among the tokens; that of the root is its own."""


Parser = Callable[[Iterable[str]], Iterable[Sequence[ParsedToken]]]
"""Yields the tokens of each text."""


def strip_punctuation(answer: str) -> str:
    """Return the answer without ASCII punctuation, which misleads parsers."""
    return answer.translate(_NO_PUNCTUATION).strip()


def judge_answers(pairs: Sequence[tuple[str, str]], parser: Parser | None) -> list[bool]:
    """Return for each masked caption and answer whether the answer is a noun phrase in the caption.

    Args:
        parser: None: every answer with a word is one.
    """
    words = [strip_punctuation(answer) for _, answer in pairs]
    if parser is None:
        return [bool(text) for text in words]
    places = [place for place, text in enumerate(words) if text]
    parsed = parser(pairs[place][0].replace(BLANK, words[place]) for place in places)
    judged = [False] * len(pairs)
    for place, tokens in zip(places, parsed, strict=True):
        start = pairs[place][0].index(BLANK)
        judged[place] = is_noun_phrase(tokens, start, start + len(words[place]))
    return judged


def is_noun_phrase(tokens: Sequence[ParsedToken], start: int, end: int) -> bool:
    """Return whether the letters from start to end are a constituent with the root of a noun phrase; one that begins or ends within a
    token is none."""
    inside = [place for place, token in enumerate(tokens) if start <= token.start and token.end <= end]
    if not inside or tokens[inside[0]].start != start or tokens[inside[-1]].end != end:
        return False
    members = set(inside)
    roots = [place for place in inside if tokens[place].head not in members or tokens[place].head == place]
    if len(roots) != 1 or tokens[inside[-1]].dep == "cc":
        return False
    return _is_nominal(tokens, inside[0], roots[0]) and not _is_in_order_to(tokens, inside)


def _is_nominal(tokens: Sequence[ParsedToken], first: int, root: int) -> bool:
    word = tokens[root]
    if word.pos in NOUNS or tokens[first].tag.startswith("W"):
        return True
    if word.tag == "VBG":
        return not any(token.dep == "aux" for place, token in enumerate(tokens) if token.head == root and place != root)
    return word.tag == "VB" and root > 0 and tokens[root - 1].tag == "TO"


def _is_in_order_to(tokens: Sequence[ParsedToken], inside: Sequence[int]) -> bool:
    """Return whether the phrase is "order to …" of "in order to …", a preposition of several words."""
    first = inside[0]
    if len(inside) < 3 or first == 0 or [tokens[first + step].text.lower() for step in (-1, 0, 1)] != ["in", "order", "to"]:
        return False
    place, seen = first + 1, set[int]()
    while place not in seen and tokens[place].head != place:
        seen.add(place)
        place = tokens[place].head
        if place == first:
            return True
    return False


def load_parser(name: str) -> Parser | None:
    """Return a parser: `spacy:en_core_web_trf`, or one that a package adds; None for `none`.

    Raises:
        BackendError: it is not installed, or broken.
    """
    kind, _, model = name.partition(":")
    if name == NONE:
        return None
    if kind == "spacy":
        pipeline = load_spacy(model, otherwise=f", or keep every answer: {option('parser', NONE)}")
        return lambda texts: _tokens_of(pipeline.pipe(texts))
    added: Parser = load_added("parser", name, group=GROUP, known=("spacy:MODEL", NONE))
    return added


def _tokens_of(documents: Iterable[Any]) -> Iterator[list[ParsedToken]]:
    for document in documents:
        yield [
            ParsedToken(token.idx, token.idx + len(token.text), token.text, token.pos_, token.tag_, token.dep_, token.head.i)
            for token in document
        ]
