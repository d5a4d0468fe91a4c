"""ROUGE-L: the F-measure of the longest common subsequence of words (Lin 2004).

Tokens, stems and the F-measure are those of rouge-score. Its table of the longest common subsequence takes 30 s for 10,000 pairs of dense
captions, so the length is computed here with one integer as a row of bits; tests hold it against the library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from vip.metrics.metric import Pair, Result, check_installed, library_version, score_mean


class RougeL:
    """The mean ROUGE-L F-measure of predicted texts. A text without a letter or digit of English scores 0.

    Args:
        stem: compare the Porter stems of words of more than three letters. The figures of the paper fit unstemmed words.
    """

    name = "rouge-l"
    needs = ("the library rouge-score",)

    def __init__(self, *, stem: bool = False) -> None:
        self.stem = stem

    @property
    def signature(self) -> str:
        self.check()
        packages = ("rouge-score", "nltk") if self.stem else ("rouge-score",)
        return f"{self.name}|v:1|f1|stem:{'yes' if self.stem else 'no'}|empty:0|lib:{library_version(*packages)}"

    def check(self) -> None:
        check_installed(self.name, "rouge_score", "rouge-score")

    def score(self, pairs: Sequence[Pair[str, str]]) -> Result:
        signature = self.signature
        tokenize = _tokenizer(self.stem)
        return score_mean(pairs, lambda texts: [_f_measure(tokenize(mine), tokenize(reference)) for mine, reference in texts], signature)


def _tokenizer(stem: bool) -> Callable[[str], list[str]]:
    """Return rouge-score's splitting of a text into words; each word is stemmed once."""
    from rouge_score.tokenize import tokenize

    stemmer = _cached_stemmer() if stem else None
    return lambda text: tokenize(text, stemmer)


def _cached_stemmer() -> Any:
    from nltk.stem.porter import PorterStemmer

    stemmer = PorterStemmer()
    stemmer.stem = lru_cache(maxsize=50_000)(stemmer.stem)
    return stemmer


def _f_measure(prediction: Sequence[str], reference: Sequence[str]) -> float:
    """Return the harmonic mean of the shares of prediction and reference that are in their longest common subsequence."""
    from rouge_score.scoring import fmeasure

    if not prediction or not reference:
        return 0.0
    common = common_subsequence_length(prediction, reference)
    return float(fmeasure(common / len(prediction), common / len(reference)))


def common_subsequence_length(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common subsequence (Hyyrö 2004, "Bit-parallel LCS-length computation revisited").

    Bit i of `row` is 0 where the length of the subsequence grows at token i of `first`.
    """
    return next(common_subsequence_lengths(first, (second,)))


def common_subsequence_lengths(first: Sequence[str], others: Iterable[Sequence[str]]) -> Iterator[int]:
    """Yield the length of the longest common subsequence with each of the others; the first is looked through once."""
    places: dict[str, int] = {}
    for index, token in enumerate(first):
        places[token] = places.get(token, 0) | 1 << index
    full = (1 << len(first)) - 1
    find = places.get
    for second in others:
        row = full
        for token in second:
            if hits := row & find(token, 0):
                row = (row + hits | row - hits) & full
        yield len(first) - row.bit_count()
