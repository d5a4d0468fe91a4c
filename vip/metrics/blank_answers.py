"""What fills a blank, against the phrases that people filled it with: exact match and token F1 (Castro et al. 2022, section 4.2).

In: a phrase, and the phrases that are right: the label and the answers of workers. The best of them counts. The paper normalises phrases
for both; the authors' code for corpora leaves them as they are for F1: both are here, under names of their own.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from vip.metrics.metric import Pair, Result, score_mean

_LEFT_OUT = re.compile(rf"\b(?:a|an|the)\b|[{re.escape(string.punctuation)}]")
ARTICLES = frozenset(("a", "an", "the"))
MOST_CACHED = 50_000


@lru_cache(maxsize=MOST_CACHED)
def normalize_phrase(phrase: str) -> str:
    """Return the phrase in lower case, without articles and ASCII punctuation, with single spaces.

    Both go in one pass from left to right, as in the authors' code: `the-man` becomes `man`, `a_b` becomes `ab`.
    """
    text = phrase.lower()
    if _is_plain(text):  # as most are: articles are whole words, and the expression would take five times as long
        return " ".join([word for word in text.split() if word not in ARTICLES])
    return " ".join(_LEFT_OUT.sub("", text).split())


@lru_cache(maxsize=MOST_CACHED)
def phrase_tokens(phrase: str) -> frozenset[str]:
    """Return the different words of a phrase, by white space."""
    return frozenset(phrase.split())


def token_f1(prediction: str, answers: Iterable[str]) -> float:
    """Return the best F1 of the sets of words, as they stand. Two phrases without a word are not alike: 0 (the authors' code fails)."""
    mine, best = phrase_tokens(prediction), 0.0
    for answer in answers if mine else ():
        words = answer.split()
        if shared := len(mine.intersection(words)):
            best = max(best, 2 * shared / (len(mine) + len(set(words))))
            if best == 1:
                break
    return best


def normalized_token_f1(prediction: str, answers: Iterable[str]) -> float:
    """Return the best F1 of the sets of words after normalisation."""
    mine = normalize_phrase(prediction)
    return token_f1(mine, map(normalize_phrase, _with_a_word(phrase_tokens(mine), list(answers))))


def exact_match(prediction: str, answers: Iterable[str]) -> float:
    """Return 1 if the prediction equals an answer after normalisation, else 0; a phrase without a word equals none."""
    mine = normalize_phrase(prediction)
    if not mine:
        return 0.0
    longest = max(mine.split(), key=len)
    return float(mine in map(normalize_phrase, _with_a_word((longest,), list(answers))))


def _with_a_word(words: Iterable[str], answers: Sequence[str]) -> Sequence[str]:
    """Return the answers that may have one of the normalised words, so that the others need not be normalised.

    Of an answer of letters, digits and spaces a word stands in its lower-case text as it is; answers with other signs all stay.
    """
    text = "\n".join(answers).lower()
    found = [word for word in words if word in text]
    if not found and _is_plain(text.replace("\n", "")):
        return ()
    return [answer for answer in answers if any(word in answer.lower() for word in found) or not _is_plain(answer.lower())]


def _is_plain(text: str) -> bool:
    return text.replace(" ", "").isalnum()


class _BestAnswer:
    """The mean over predictions of the score against the answer that fits best."""

    name: str
    needs: tuple[str, ...] = ()
    settings: str
    measure: Callable[[str, Iterable[str]], float]

    @property
    def signature(self) -> str:
        return f"{self.name}|v:1|{self.settings}|empty:0"

    def check(self) -> None:
        """Nothing is needed."""

    def score(self, pairs: Sequence[Pair[str, Sequence[str]]]) -> Result:
        measure = type(self).measure
        return score_mean(pairs, lambda both: [measure(prediction, answers) for prediction, answers in both], self.signature)


class TokenF1(_BestAnswer):
    """The mean token F1 after normalisation, the paper's."""

    name, settings, measure = "token-f1", "sets of words|best answer|normalised", staticmethod(normalized_token_f1)


class RawTokenF1(_BestAnswer):
    """The mean token F1 of phrases as they stand, that of the authors' code for corpora."""

    name, settings, measure = "token-f1-raw", "sets of words|best answer|as they stand", staticmethod(token_f1)


class ExactMatch(_BestAnswer):
    """The share of predictions that equal an answer after normalisation."""

    name, settings, measure = "exact-match", "best answer|normalised", staticmethod(exact_match)
