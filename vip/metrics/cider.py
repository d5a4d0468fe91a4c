"""CIDEr-D: how alike a caption and its references are in n-grams, the rare ones first (Vedantam et al. 2015), as in COCO's code."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vip.metrics.caption_corpus import (
    TOKENS,
    CaptionCorpus,
    CaptionPair,
    CaptionTokenizer,
    Floats,
    Integers,
    NgramCounts,
    Ngrams,
    score_corpus,
)
from vip.metrics.metric import Result

MOST = 4
"""Words of the longest n-gram."""
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
        values = cider_d(self.tokenizer.tokenize(pairs))
        return float(values.mean()), values.tolist()


def cider_d(corpus: CaptionCorpus) -> Floats:
    """Return the CIDEr-D of each predicted caption. (N,)"""
    bigrams = np.maximum(0, corpus.lengths - 1)
    difference = bigrams - bigrams[corpus.prediction_at][corpus.sample_of]
    penalty = np.exp(-(difference**2) / (2 * SIGMA**2))  # (C,)
    similarity = sum((_similarity(corpus, ngrams) for ngrams in corpus.ngrams(MOST)), np.zeros(len(corpus.lengths)))
    of_references = ~corpus.is_prediction
    samples = corpus.sample_of[of_references]
    totals = np.bincount(samples, (similarity * penalty)[of_references], corpus.samples)
    return np.asarray(SCALE * totals / MOST / np.bincount(samples, minlength=corpus.samples), np.float64)


def _similarity(corpus: CaptionCorpus, ngrams: Ngrams) -> Floats:
    """Return the clipped cosine of each reference and its prediction over n-grams of one length. (C,), 0 for predictions."""
    parts = list(corpus.count(ngrams))
    rarity = np.log(corpus.samples) - np.log(np.maximum(1, _count_samples(corpus, ngrams.kinds, parts)))
    products, squares = np.zeros(len(corpus.lengths)), np.zeros(len(corpus.lengths))
    for part in parts:
        first, last = part.captions
        weights = part.count * rarity[part.ngram]
        squares[first:last] = np.bincount(part.caption - first, weights**2, last - first)
        shared = np.minimum(_of_prediction(corpus, part, weights, ngrams.kinds), weights) * weights
        products[first:last] = np.bincount(part.caption - first, shared, last - first)
    norms = np.sqrt(squares)
    scale = norms * norms[corpus.prediction_at][corpus.sample_of]
    return np.asarray(np.divide(products, scale, out=np.zeros(len(scale)), where=scale != 0), np.float64)


def _count_samples(corpus: CaptionCorpus, kinds: int, parts: Sequence[NgramCounts]) -> Integers:
    """Return in how many samples a reference has each n-gram. (K,)"""
    frequency = np.zeros(kinds, np.int64)
    for part in parts:
        keys = corpus.sample_of[part.caption].astype(np.int64) * kinds + part.ngram
        frequency += np.bincount(np.unique(keys[~corpus.is_prediction[part.caption]]) % kinds, minlength=kinds)
    return frequency


def _of_prediction(corpus: CaptionCorpus, part: NgramCounts, weights: Floats, kinds: int) -> Floats:
    """Return for each row the weight of the same n-gram in the prediction of its sample; 0 where it has none. (M,)"""
    keys = corpus.sample_of[part.caption] * kinds + part.ngram
    is_prediction = corpus.is_prediction[part.caption]
    predicted, theirs = np.append(keys[is_prediction], -1), np.append(weights[is_prediction], 0.0)
    place = np.searchsorted(predicted[:-1], keys)
    return np.where(predicted[place] == keys, theirs[place], 0.0)
