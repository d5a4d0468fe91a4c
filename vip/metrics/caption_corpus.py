"""Captions of a corpus as numbers: what BLEU, ROUGE-L, CIDEr-D and METEOR of COCO's code have in common.

In: pairs of a predicted caption and its references. Out: Penn Treebank tokens, and how often each n-gram is in each caption. n-grams are
numbers, and are counted by sorting: 60,000 captions with ten references each take seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt

from vip.metrics.metric import Pair, Result, check_pairs, count_unscored
from vip.metrics.penn_treebank import VERSION, tokenize_captions

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
CaptionPair = Pair[str, Sequence[str]]
TOKENS = f"tokens:{VERSION}, ascii, lower case"

MOST = 4
"""Words of the longest n-gram."""
MOST_NUMBER = 2**62
MOST_SAMPLES = 1000  # counted at once: sorting many short lists takes less time and memory than sorting a long one


@dataclass(frozen=True, slots=True)
class NgramCounts:
    """How often each n-gram is in each caption of some samples; sorted by caption, then by n-gram."""

    captions: tuple[int, int]
    """The first caption, and the one behind the last."""
    kinds: Integers  # (K,): the n-grams of these samples, ascending
    caption: npt.NDArray[np.int32]  # (M,)
    ngram: npt.NDArray[np.int32]  # (M,): place in `kinds`
    count: npt.NDArray[np.int32]  # (M,)


class CaptionCorpus:
    """Predicted captions and their references in tokens.

    Args:
        predictions: the tokens of one caption a sample.
        references: the tokens of one or more captions a sample.
    """

    def __init__(self, predictions: Sequence[tuple[str, ...]], references: Sequence[Sequence[tuple[str, ...]]]) -> None:
        self.predictions, self.references = predictions, references
        self.samples = len(predictions)
        sizes = np.fromiter((1 + len(group) for group in references), np.int64, self.samples)
        self.prediction_at = np.cumsum(sizes) - sizes
        """The captions that are predictions, each followed by its references. (N,)"""
        self.sample_of = np.repeat(np.arange(self.samples), sizes)
        """The sample of each caption. (C,)"""
        self.is_prediction = np.zeros(len(self.sample_of), bool)
        self.is_prediction[self.prediction_at] = True
        captions = list(chain.from_iterable((prediction, *group) for prediction, group in zip(predictions, references, strict=True)))
        self.lengths = np.fromiter(map(len, captions), np.int64, len(captions))
        self._starts = np.append(0, np.cumsum(self.lengths))
        numbers: dict[str, int] = {}
        self._words = np.fromiter((numbers.setdefault(word, len(numbers)) for word in chain.from_iterable(captions)), np.int64)
        self._vocabulary = max(1, len(numbers))
        self._values: dict[str, Floats] = {}

    def values(self, metric: str, compute: Callable[[CaptionCorpus], Floats]) -> Floats:
        """Return one value a sample of a metric, computed once: clips, videos and error bars ask for the same values."""
        if metric not in self._values:
            self._values[metric] = compute(self)
        return self._values[metric]

    def ngrams(self, most: int) -> Iterator[tuple[int, Integers]]:
        """Yield 1 and the 1-gram that begins at each word, 2 and the 2-grams, and so on. (W,)

        Equal n-grams have equal numbers; those that would leave their caption are meaningless.
        """
        numbers, bound = self._words, self._vocabulary
        yield 1, numbers
        for n in range(2, most + 1):  # the (n-1)-gram at each place, and the word at its end
            if bound > MOST_NUMBER // self._vocabulary:
                different, numbers = np.unique(numbers, return_inverse=True)
                bound = len(different)
            last = np.append(self._words[n - 1 :], np.zeros(n - 1, np.int64))[: len(numbers)]
            numbers, bound = numbers * self._vocabulary + last, bound * self._vocabulary
            yield n, numbers

    def count(self, n: int, numbers: Integers) -> Iterator[NgramCounts]:
        """Yield the counts of all captions, some samples at a time."""
        for first in range(0, self.samples, MOST_SAMPLES):
            captions = slice(*self._caption_range(first))
            words = slice(self._starts[captions.start], self._starts[captions.stop])
            owner = np.repeat(np.arange(captions.start, captions.stop), self.lengths[captions])
            inside = np.arange(words.start, words.stop) + n <= self._starts[owner + 1]
            kinds, local = np.unique(numbers[words][inside], return_inverse=True)
            rows, count = np.unique(owner[inside] * max(1, len(kinds)) + local, return_counts=True)
            yield NgramCounts(
                (captions.start, captions.stop),
                kinds,
                (rows // max(1, len(kinds))).astype(np.int32),
                (rows % max(1, len(kinds))).astype(np.int32),
                count.astype(np.int32),
            )

    def _caption_range(self, first: int) -> tuple[int, int]:
        """Return the first caption of a sample, and the one behind the last of those that are counted with it."""
        behind = first + MOST_SAMPLES
        return int(self.prediction_at[first]), int(self.prediction_at[behind]) if behind < self.samples else len(self.lengths)

    @cached_property
    def overlap(self) -> NgramOverlap:
        """What predictions and references have in common: all that BLEU and CIDEr-D need, counted once."""
        matches, similarity = np.zeros((MOST, self.samples), np.int64), np.zeros(len(self.lengths))
        for n, numbers in self.ngrams(MOST):
            parts = [_PartOverlap.of(self, part) for part in self.count(n, numbers)]
            if parts:
                matches[n - 1] = np.concatenate([part.matches for part in parts])
            for part, rarity in zip(parts, self._rarities(parts), strict=True):
                first, last = part.counts.captions
                similarity[first:last] += part.similarity(rarity)
        return NgramOverlap(matches, similarity)

    def _rarities(self, parts: Sequence[_PartOverlap]) -> list[Floats]:
        """Return how rare the n-grams of each part are: the logarithm of all samples over those with a reference that has it."""
        if not parts:
            return []
        kinds = np.concatenate([part.counts.kinds for part in parts])
        order = np.argsort(kinds)
        kinds = kinds[order]
        begins = np.append(True, kinds[1:] != kinds[:-1])[: len(kinds)]
        del kinds  # the 4-grams of 600,000 captions are millions
        counts = np.concatenate([part.frequency for part in parts])[order]
        frequency = np.add.reduceat(counts, np.flatnonzero(begins)) if len(counts) else counts
        rarity = (np.log(self.samples) - np.log(np.maximum(1, frequency)))[np.cumsum(begins, dtype=np.int32) - 1]
        unsorted = np.empty(len(order))
        unsorted[order] = rarity
        return np.split(unsorted, np.cumsum([len(part.counts.kinds) for part in parts])[:-1])


@dataclass(frozen=True, slots=True)
class NgramOverlap:
    """What predictions and their references have in common, over 1-grams to 4-grams."""

    matches: Integers  # (4, N): n-grams of each prediction that a reference has, none counted more often than in one reference
    similarity: Floats
    """Sum over n of the clipped cosine of each reference and its prediction, n-grams weighted by rarity. (C,), 0 for predictions."""


@dataclass(frozen=True, slots=True)
class _PartOverlap:
    """Counts of some samples, with the place that the prediction of a sample has of each of its n-grams."""

    counts: NgramCounts
    matches: Integers  # (S,): of each sample
    frequency: npt.NDArray[np.int32]  # (K,): samples with a reference that has the n-gram
    in_prediction: npt.NDArray[np.int32]
    """Of each row the row of the same n-gram in the prediction of its sample; -1 where it has none. (M,)"""
    prediction_of: npt.NDArray[np.int32]
    """Of each caption its prediction, both counted from the first of the part."""

    @classmethod
    def of(cls, corpus: CaptionCorpus, counts: NgramCounts) -> _PartOverlap:
        kinds = max(1, len(counts.kinds))
        first, last = counts.captions
        samples = corpus.sample_of[first:last]
        is_prediction = corpus.is_prediction[counts.caption]
        sample = corpus.sample_of[counts.caption]
        keys = sample * kinds + counts.ngram
        rows = np.flatnonzero(is_prediction)  # sorted by sample, then by n-gram, as captions are
        predicted = keys[rows]
        place = np.searchsorted(predicted, keys)
        found = np.append(predicted, -1)[place] == keys
        in_prediction = np.where(found, np.append(rows, -1)[place], -1).astype(np.int32)
        shared = np.flatnonzero(found & ~is_prediction)
        limits = np.zeros(len(predicted), np.int32)
        np.maximum.at(limits, place[shared], counts.count[shared])
        met = np.minimum(counts.count[rows], limits)
        begin, number = int(samples[0]), int(samples[-1] - samples[0]) + 1
        matches = np.bincount(sample[rows] - begin, met, number).astype(np.int64)
        of_references = np.sort(keys[~is_prediction])
        once = of_references[np.append(True, of_references[1:] != of_references[:-1])[: len(of_references)]]
        frequency = np.bincount(once % kinds, minlength=len(counts.kinds)).astype(np.int32)
        prediction_of = (corpus.prediction_at[samples] - first).astype(np.int32)
        return cls(counts, matches, frequency, in_prediction, prediction_of)

    def similarity(self, rarity: Floats) -> Floats:
        """Return the clipped cosine of each reference of the part and its prediction.

        Args:
            rarity: of each n-gram of the part.
        """
        counts, (first, last) = self.counts, self.counts.captions
        caption = counts.caption - first
        weights = counts.count * rarity[counts.ngram]
        norms = np.sqrt(np.bincount(caption, weights**2, last - first))
        theirs = np.where(self.in_prediction >= 0, weights[self.in_prediction], 0.0)
        products = np.bincount(caption, np.minimum(theirs, weights) * weights, last - first)
        scale = norms * norms[self.prediction_of]
        return np.asarray(np.divide(products, scale, out=np.zeros(len(scale)), where=scale != 0), np.float64)


class CaptionTokenizer:
    """Turns pairs of captions into a corpus, and remembers the last one: several metrics score the same list."""

    def __init__(self) -> None:
        self._last: tuple[tuple[CaptionPair, ...], CaptionCorpus] | None = None

    def tokenize(self, pairs: Sequence[CaptionPair]) -> CaptionCorpus:
        """Return the corpus; a prediction without an answer is an empty caption.

        Raises:
            ValueError: a pair has no reference.
        """
        known = tuple(pairs)
        if self._last is None or self._last[0] != known:
            if not all(pair.reference for pair in pairs):
                raise ValueError("a caption without a reference cannot be scored")
            predictions = list(tokenize_captions(pair.prediction or "" for pair in pairs))
            tokens = tokenize_captions(text for pair in pairs for text in pair.reference)
            self._last = known, CaptionCorpus(predictions, [[next(tokens) for _ in pair.reference] for pair in pairs])
        return self._last[1]


def score_corpus(
    pairs: Sequence[CaptionPair],
    score: Callable[[Sequence[CaptionPair]], tuple[float, Sequence[float] | None]],
    signature: str,
) -> Result:
    """Return the result of a metric of captions. A prediction without an answer is an empty caption; `value_answered` leaves it out.

    Args:
        score: returns the value of a list of pairs, and one value a pair where there is such.
    """
    answered = check_pairs(pairs)
    value, per_sample = score(pairs) if pairs else (None, ())
    value_answered = value
    if len(answered) < len(pairs):
        value_answered = score([pairs[index] for index, _ in answered])[0] if answered else None
    return Result(
        value=value,
        value_answered=value_answered,
        per_sample=None
        if per_sample is None
        else tuple(None if pair.prediction is None else float(one) for pair, one in zip(pairs, per_sample, strict=True)),
        n=len(answered),
        unscored=count_unscored(pairs),
        signature=signature,
    )
