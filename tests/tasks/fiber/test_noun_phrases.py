"""Which answers are noun phrases, from parses by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from vip.errors import BackendError
from vip.tasks.fiber.noun_phrases import ParsedToken, is_noun_phrase, judge_answers, load_parser, strip_punctuation


def parse(*words: tuple[str, str, str, str, int]) -> list[ParsedToken]:
    """Return tokens with single spaces between them: text, part of speech, tag, dependency, place of the head."""
    tokens, start = [], 0
    for text, pos, tag, dep, head in words:
        tokens.append(ParsedToken(start, start + len(text), text, pos, tag, dep, head))
        start += len(text) + 1
    return tokens


MAN = [("The", "DET", "DT", "det", 1), ("man", "NOUN", "NN", "nsubj", 2), ("walks", "VERB", "VBZ", "ROOT", 2)]
COORDINATION = [
    *(("cats", "NOUN", "NNS", "nsubj", 3), ("and", "CCONJ", "CC", "cc", 0), ("dogs", "NOUN", "NNS", "conj", 0)),
    ("run", "VERB", "VBP", "ROOT", 3),
]
GERUND = [("Eating", "VERB", "VBG", "csubj", 2), ("well", "ADV", "RB", "advmod", 0), ("helps", "VERB", "VBZ", "ROOT", 2)]
PROGRESSIVE = [("He", "PRON", "PRP", "nsubj", 2), ("is", "AUX", "VBZ", "aux", 2), ("eating", "VERB", "VBG", "ROOT", 2)]
INFINITIVE = [("To", "PART", "TO", "aux", 1), ("eat", "VERB", "VB", "csubj", 2), ("helps", "VERB", "VBZ", "ROOT", 2)]
WH = [
    *(("They", "PRON", "PRP", "nsubj", 1), ("describe", "VERB", "VBP", "ROOT", 1), ("how", "SCONJ", "WRB", "advmod", 4)),
    *(("it", "PRON", "PRP", "nsubj", 4), ("works", "VERB", "VBZ", "ccomp", 1)),
]
IN_ORDER = [
    *(("in", "ADP", "IN", "prep", 0), ("order", "NOUN", "NN", "pobj", 0), ("to", "PART", "TO", "aux", 3)),
    ("win", "VERB", "VB", "acl", 1),
]
TO_ORDER = [("good", "ADJ", "JJ", "amod", 1), *IN_ORDER[1:]]
BARE = [("him", "PRON", "PRP", "ROOT", 0)]
BARE_VERB = [("They", "PRON", "PRP", "nsubj", 1), ("eat", "VERB", "VB", "ROOT", 1)]
CYCLE = [("a", "NOUN", "NN", "dep", 1), ("b", "NOUN", "NN", "dep", 0)]


@pytest.mark.parametrize(
    ("words", "first", "last", "expected"),
    [
        (MAN, 0, 1, True),
        (MAN, 1, 1, True),  # without its article a constituent too: an N-bar
        (MAN, 0, 0, False),  # a determiner
        (MAN, 0, 2, False),  # a sentence
        (MAN, 1, 2, False),
        (COORDINATION, 0, 2, True),
        (COORDINATION, 0, 1, False),  # "cats and"
        (GERUND, 0, 1, True),
        (PROGRESSIVE, 1, 2, False),
        (PROGRESSIVE, 2, 2, False),  # its auxiliary stands outside
        (GERUND, 0, 0, True),
        (BARE_VERB, 1, 1, False),  # no infinitive without its to
        (PROGRESSIVE, 0, 0, True),
        (INFINITIVE, 0, 1, True),
        (INFINITIVE, 1, 1, True),
        (WH, 2, 4, True),
        (WH, 3, 4, False),
        (IN_ORDER, 1, 3, False),
        (TO_ORDER, 1, 3, True),  # no "in" before it
        (BARE, 0, 0, True),
        (CYCLE, 0, 1, False),  # no root
    ],
)
def test_a_constituent_with_the_root_of_a_noun_phrase_is_one(
    words: Sequence[tuple[str, str, str, str, int]], first: int, last: int, expected: bool
) -> None:
    tokens = parse(*words)
    assert is_noun_phrase(tokens, tokens[first].start, tokens[last].end) is expected


def test_a_phrase_that_ends_within_a_token_is_none() -> None:
    tokens = parse(*MAN)
    assert not is_noun_phrase(tokens, 0, 6)
    assert not is_noun_phrase(tokens, 1, 7)
    apart = parse(("men", "NOUN", "NNS", "nsubj", 1), ("walk", "VERB", "VBP", "ROOT", 1))
    assert is_noun_phrase(apart, 0, 3)
    assert not is_noun_phrase(apart, 0, 5), "it ends within walk"
    joined = [ParsedToken(0, 5, "women", "NOUN", "NNS", "nsubj", 1), ParsedToken(6, 9, "men", "NOUN", "NNS", "dep", 1)]
    assert not is_noun_phrase(joined, 2, 9), "it begins within women"
    assert not is_noun_phrase([], 0, 1)


def test_answers_are_judged_in_their_caption_without_punctuation() -> None:
    asked: list[str] = []

    def parser(texts: Any) -> Any:
        for text in texts:
            asked.append(text)
            yield parse(*MAN)

    pairs = [("_____ walks", '"The man!"'), ("_____ walks", "..."), ("_____ walks", "The man walks")]
    assert judge_answers(pairs, parser) == [True, False, False]
    assert asked == ["The man walks", "The man walks walks"]
    assert judge_answers(pairs, None) == [True, False, True]
    assert strip_punctuation(" the-man's. ") == "themans"


def test_a_parser_that_is_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.tasks.fiber.language_models.find_spec", lambda name: None)
    with pytest.raises(BackendError, match="Run `pip install spacy` and `python -m spacy download en_core_web_trf`, or keep every answer"):
        load_parser("spacy:en_core_web_trf")
    with pytest.raises(BackendError, match=r'There is no parser "x"\. There is: spacy:MODEL, none'):
        load_parser("x")
    assert load_parser("none") is None


def test_parses_of_spacy_are_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    class Word:
        def __init__(self, idx: int, text: str, head: Any = None) -> None:
            self.idx, self.text, self.pos_, self.tag_, self.dep_, self.i = idx, text, "NOUN", "NN", "dep", idx // 2
            self.head = head or self

        def __len__(self) -> int:
            return len(self.text)

    class Spacy:
        @staticmethod
        def load(model: str) -> Any:
            if model != "small":
                raise OSError(model)
            root = Word(2, "b")
            return type("Pipeline", (), {"pipe": staticmethod(lambda texts: [[Word(0, "a", root), root] for _ in texts])})

    monkeypatch.setattr("vip.tasks.fiber.language_models.find_spec", lambda name: object())
    monkeypatch.setattr("vip.tasks.fiber.language_models.import_module", lambda name: Spacy)
    parser = load_parser("spacy:small")
    assert parser is not None
    assert list(parser(["a b"])) == [
        [ParsedToken(0, 1, "a", "NOUN", "NN", "dep", 1), ParsedToken(2, 3, "b", "NOUN", "NN", "dep", 1)],
    ]
    with pytest.raises(BackendError, match="has no model large here"):
        load_parser("spacy:large")


def test_only_the_order_that_a_verb_behind_it_hangs_on_is_that_of_in_order_to() -> None:
    capitals = parse(("IN", "ADP", "IN", "prep", 0), ("ORDER", "NOUN", "NN", "pobj", 0), *IN_ORDER[2:])
    assert not is_noun_phrase(capitals, capitals[1].start, capitals[3].end)
    short = parse(*IN_ORDER[:2], ("to", "PART", "TO", "aux", 1), IN_ORDER[3])
    assert is_noun_phrase(short, short[1].start, short[2].end), "nothing stands behind its to"
    turned = parse(*IN_ORDER[:2], ("to", "PART", "TO", "aux", 3), ("win", "VERB", "VB", "acl", 2))
    assert is_noun_phrase(turned, turned[1].start, turned[3].end), "to and win hang on each other"
