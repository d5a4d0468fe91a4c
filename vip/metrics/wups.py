"""WUPS: how near the words of a short answer are to those of the right one (Malinowski and Fritz 2014; NExT-QA, Eq. 1).

The score of a prediction P with the reference R is `min(h(P, R), h(R, P))`, where h(A, B) is the product over the words a of A of the
largest similarity of Wu and Palmer of a and a word of B. Answers to yes-or-no questions and to questions for a number are right or wrong.

`published` leaves factors of 0 out, as the authors' program does and the figures of the paper show; `strict` follows the letter of Eq. 1;
`at-0.9` is `published` with a tenth of every similarity below 0.9.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal, get_args

from vip.metrics.answer_words import AnswerNormalizer
from vip.metrics.metric import Pair, Result, check_installed, score_mean
from vip.metrics.perceptron_tagger import load_tagger
from vip.metrics.wordnet import WordNet, find_wordnet

Variant = Literal["published", "strict", "at-0.9"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)
Answer = str | tuple[str, ...]
"""A raw answer, or the tokens it was normalised to."""
THRESHOLD, BELOW = 0.9, 0.1


@dataclass(frozen=True, slots=True)
class AnswerReference:
    """What is right.

    Args:
        answers: raw, or tokens, as the prediction is; the nearest counts.
        exact: whether the words must be equal: the types DB and DC of NExT-QA.
    """

    answers: tuple[Answer, ...]
    exact: bool = False


class Wups:
    """The mean WUPS of answers. Raw answers need the data of NLTK's tagger; tokens need WordNet alone. An answer without a word scores 0.

    Args:
        variant: `published`, `strict` or `at-0.9`.
        wordnet: the folder of WordNet 3.0; by default where NLTK or Debian has it.
        tagger: the folder of the tagger's data, or of NLTK data; by default where NLTK has it.
        tokens: answers are tokens already.
    """

    def __init__(
        self, variant: Variant = "published", *, wordnet: Path | None = None, tagger: Path | None = None, tokens: bool = False
    ) -> None:
        if variant not in VARIANTS:
            raise ValueError(f"expected one of {', '.join(VARIANTS)}, got {variant}")
        self.variant = variant
        self.name = "wups" if variant == "published" else f"wups-{variant}"
        self.needs = ("WordNet 3.0",) if tokens else ("WordNet 3.0", "the data of NLTK's tagger", "the library nltk")
        self.tokens = tokens
        self._wordnet_folder, self._tagger_folder = wordnet, tagger
        self._similarities: dict[tuple[str, str], float] = {}

    @property
    def signature(self) -> str:
        rules = {"published": "zeros:left out", "strict": "zeros:kept", "at-0.9": "zeros:left out|below 0.9:x0.1"}[self.variant]
        words = "given" if self.tokens else "ptb+averaged_perceptron_tagger+morphy nltk-3.3+stop nextqa"
        return f"{self.name}|v:1|{rules}|wup:nltk-3.3|wordnet:{self._wordnet.version}|words:{words}"

    def check(self) -> None:
        _ = self._wordnet
        if not self.tokens:
            check_installed(self.name, "nltk", "nltk")
            _ = self._normalize

    def score(self, pairs: Sequence[Pair[Answer, AnswerReference]]) -> Result:
        self.check()
        return score_mean(pairs, lambda rows: [self.score_answer(answer, reference) for answer, reference in rows], self.signature)

    def score_answer(self, answer: Answer, reference: AnswerReference) -> float:
        """Return the score of one answer, between 0 and 1: the best over the references."""
        mine = self.words(answer)
        return max((self._score_words(mine, self.words(right), exact=reference.exact) for right in reference.answers), default=0.0)

    def words(self, answer: Answer) -> tuple[str, ...]:
        """Return the words that are compared.

        Raises:
            BackendError: it is a raw answer, and the tagger's data is missing.
        """
        return self._normalize(answer) if isinstance(answer, str) else answer

    def _score_words(self, prediction: tuple[str, ...], reference: tuple[str, ...], *, exact: bool) -> float:
        if exact:
            return float(prediction == reference)
        return min(self._one_way(prediction, reference), self._one_way(reference, prediction))

    def _one_way(self, words: tuple[str, ...], others: tuple[str, ...]) -> float:
        """Return h(words, others)."""
        factors = [max((self.similarity(word, other) for other in others), default=0.0) for word in words]
        if self.variant != "strict":
            factors = [factor for factor in factors if factor > 0]
        return math.prod(factors) if factors else 0.0

    def similarity(self, first: str, second: str) -> float:
        """Return WUP(first, second): 1 for equal words, 0 where WordNet does not know one of them."""
        if first == second:
            return 1.0
        if (first, second) not in self._similarities:
            synsets = self._wordnet.first_synset(first), self._wordnet.first_synset(second)
            value = self._wordnet.wup(synsets[0], synsets[1]) if synsets[0] and synsets[1] else 0.0
            self._similarities[first, second] = value * BELOW if self.variant == "at-0.9" and value < THRESHOLD else value
        return self._similarities[first, second]

    @cached_property
    def _normalize(self) -> AnswerNormalizer:
        return _open_normalizer(find_wordnet(self._wordnet_folder), self._tagger_folder)

    @cached_property
    def _wordnet(self) -> WordNet:
        return _open_wordnet(find_wordnet(self._wordnet_folder))


@lru_cache(maxsize=2)
def _open_wordnet(folder: Path) -> WordNet:
    """Return the WordNet of a folder, one for all variants: it takes 60 MB."""
    return WordNet(folder)


@lru_cache(maxsize=1)
def _open_normalizer(wordnet: Path, tagger: Path | None) -> AnswerNormalizer:
    """Return the normalizer, one for all variants: the tagger takes 150 MB."""
    return AnswerNormalizer(_open_wordnet(wordnet), load_tagger(tagger))
