"""CIDEr-D: how alike a caption and its references are in n-grams, the rare ones first (Vedantam et al. 2015), as in COCO's code."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vip.metrics.caption_corpus import MOST, TOKENS, CaptionCorpus, CaptionPair, CaptionTokenizer, Floats, score_corpus
from vip.metrics.metric import Result

SIGMA = 6.0
"""Standard deviation of the penalty of lengths that differ, in words."""
SCALE = 10.0


class CiderD:
    """The mean CIDEr-D of predicted captions, 0 to 10. How rare an n-gram is, the references of the scored corpus say.

    Args:
        tokenizer: shared with other metrics that score the same list.
    """

    name = "cider-d"
    needs: tuple[str, ...] = ()

    def __init__(self, *, tokenizer: CaptionTokenizer | None = None) -> None:
        self.tokenizer = tokenizer or CaptionTokenizer()

    @property
    def signature(self) -> str:
        return f"{self.name}|v:1|n:1-{MOST}|sigma:{SIGMA:g}|df:references of the corpus|{TOKENS}"

    def check(self) -> None:
        """Nothing is needed."""

    def score(self, pairs: Sequence[CaptionPair]) -> Result:
        return score_corpus(pairs, self._score, self.signature)

    def _score(self, pairs: Sequence[CaptionPair]) -> tuple[float, Sequence[float]]:
        values = self.tokenizer.tokenize(pairs).values(self.name, cider_d)
        return float(values.mean()), values.tolist()


def cider_d(corpus: CaptionCorpus) -> Floats:
    """Return the CIDEr-D of each predicted caption. (N,)"""
    bigrams = np.maximum(0, corpus.lengths - 1)
    difference = bigrams - bigrams[corpus.prediction_at][corpus.sample_of]
    penalty = np.exp(-(difference**2) / (2 * SIGMA**2))  # (C,)
    of_references = ~corpus.is_prediction
    samples = corpus.sample_of[of_references]
    totals = np.bincount(samples, (corpus.overlap.similarity * penalty)[of_references], corpus.samples)
    return np.asarray(SCALE * totals / MOST / np.bincount(samples, minlength=corpus.samples), np.float64)
