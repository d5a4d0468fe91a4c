"""BLEU of captions: the share of predicted n-grams that a reference has, over the corpus (Papineni et al. 2002), as in COCO's code."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from vip.metrics.caption_corpus import TOKENS, CaptionCorpus, CaptionPair, CaptionTokenizer, Floats, Integers, score_corpus
from vip.metrics.metric import Result

SMALL, TINY = 1e-9, 1e-15  # as in COCO's code: no prediction with n words gives 0


class Bleu:
    """BLEU-n of predicted captions: the geometric mean of the precisions of 1-grams to n-grams, less the penalty of short captions.

    Each n-gram counts at most as often as in the reference that has it most often. The length is compared with the reference whose
    length is closest, of two the shorter one.

    Args:
        n: 1 to 4.
        tokenizer: shared with other metrics that score the same list.
    """

    needs: tuple[str, ...] = ()

    def __init__(self, n: int = 4, *, tokenizer: CaptionTokenizer | None = None) -> None:
        self.n, self.name = n, f"bleu-{n}"
        self.tokenizer = tokenizer or CaptionTokenizer()

    @property
    def signature(self) -> str:
        return f"{self.name}|v:1|corpus|length:closest|{TOKENS}"

    def check(self) -> None:
        """Nothing is needed."""

    def score(self, pairs: Sequence[CaptionPair]) -> Result:
        return score_corpus(pairs, lambda part: (self.weighted(part)(np.ones(len(part))), None), self.signature)

    def weighted(self, pairs: Sequence[CaptionPair]) -> Callable[[Floats], float]:
        """Return a function from the weights of the pairs to BLEU, for draws of pairs."""
        corpus = self.tokenizer.tokenize(pairs)
        lengths = corpus.lengths[corpus.prediction_at]
        guesses = [np.maximum(0, lengths - n + 1) for n in range(1, self.n + 1)]
        rows = np.array([*corpus.overlap.matches[: self.n], *guesses, lengths, closest_lengths(corpus)], np.float64)

        def value(weights: Floats) -> float:
            sums = np.einsum("ij,j->i", rows, weights)  # one thread, the same digits everywhere
            matches, guessed, length, closest = sums[: self.n], sums[self.n : -2], sums[-2], sums[-1]
            precisions = (matches + TINY) / (guessed + SMALL)
            ratio = (length + TINY) / (closest + SMALL)
            return float(np.prod(precisions) ** (1 / self.n) * (math.exp(1 - 1 / ratio) if ratio < 1 else 1.0))

        return value


def closest_lengths(corpus: CaptionCorpus) -> Integers:
    """Return for each prediction the length of the reference that is closest in length, of two the shorter one. (N,)"""
    lengths = corpus.lengths[~corpus.is_prediction]
    samples = corpus.sample_of[~corpus.is_prediction]
    most = int(corpus.lengths.max(initial=0)) + 1
    distance = np.abs(lengths - corpus.lengths[corpus.prediction_at][samples])
    first = np.searchsorted(samples, np.arange(corpus.samples))
    return np.asarray(np.minimum.reduceat(distance * most + lengths, first) % most, np.int64)
