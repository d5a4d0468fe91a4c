"""Captions of a corpus as numbers: what BLEU, ROUGE-L, CIDEr-D and METEOR of COCO's code have in common.

In: pairs of a predicted caption and its references. Out: Penn Treebank tokens, and how often each n-gram is in each caption. n-grams are
numbers, and are counted by sorting: 60,000 captions with ten references each take seconds.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

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
    """Predicted captions and their references in tokens, which are kept as numbers: as texts they fill the memory.

    Args:
        groups: of each sample the tokens of the prediction, and behind them those of one or more references.
    """

    def __init__(self, groups: Iterable[Sequence[tuple[str, ...]]]) -> None:
        words, lengths, sizes = array("i"), array("q"), array("q")
        numbers: dict[str, int] = {}
        for group in groups:
            sizes.append(len(group))
            for caption in group:
                lengths.append(len(caption))
                words.extend([numbers.setdefault(word, len(numbers)) for word in caption])
        sizes_of = np.frombuffer(sizes, np.int64)
        self.samples = len(sizes)
        self.prediction_at = np.cumsum(sizes_of) - sizes_of
        """The captions that are predictions, each followed by its references. (N,)"""
        self.sample_of = np.repeat(np.arange(self.samples), sizes_of)
        """The sample of each caption. (C,)"""
        self.is_prediction = np.zeros(len(self.sample_of), bool)
        self.is_prediction[self.prediction_at] = True
        self.lengths = np.frombuffer(lengths, np.int64)
        self._starts = np.append(0, np.cumsum(self.lengths))
        self._words = np.frombuffer(words, np.int32)
        self._spelled = list(numbers)
        self._vocabulary = max(1, len(numbers))
        self._values: dict[str, Floats] = {}

    def tokens(self) -> Iterator[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
        """Yield the tokens of each prediction, and of its references."""
        ends = np.append(self.prediction_at[1:], len(self.lengths)).tolist()
        for first, last in zip(self.prediction_at.tolist(), ends, strict=True):
            prediction, *references = map(self._tokens_of, range(first, last))
            yield prediction, references

    def _tokens_of(self, caption: int) -> tuple[str, ...]:
        return tuple(map(self._spelled.__getitem__, self._words[self._starts[caption] : self._starts[caption + 1]].tolist()))

    def values(self, metric: str, compute: Callable[[CaptionCorpus], Floats]) -> Floats:
        """Return one value a sample of a metric, computed once: clips, videos and error bars ask for the same values."""
        if metric not in self._values:
            self._values[metric] = compute(self)
        return self._values[metric]

    def ngrams(self, most: int) -> Iterator[tuple[int, Integers]]:
        """Yield 1 and the 1-gram that begins at each word, 2 and the 2-grams, and so on. (W,)

        Equal n-grams have equal numbers; those that would leave their caption are meaningless.
        """
        numbers, bound = self._words.astype(np.int64), self._vocabulary
        yield 1, numbers
        for n in range(2, most + 1):  # the (n-1)-gram at each place, and the word at its end
            if bound > MOST_NUMBER // self._vocabulary:
                different, numbers = np.unique(numbers, return_inverse=True)
                bound = len(different)
            numbers = numbers * self._vocabulary
            numbers[: max(0, len(numbers) - n + 1)] += self._words[n - 1 :]
            bound *= self._vocabulary
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
            frequencies = self._frequencies(n, numbers)
            for part, frequency in zip(self.count(n, numbers), frequencies, strict=True):  # counted again: they would fill the memory
                overlap = _PartOverlap.of(self, part)
                first, last = part.captions
                matches[n - 1, self.sample_of[first] : self.sample_of[last - 1] + 1] = overlap.matches
                similarity[first:last] += overlap.similarity(np.log(self.samples) - np.log(np.maximum(1, frequency)))
        return NgramOverlap(matches, similarity)

    def _frequencies(self, n: int, numbers: Integers) -> list[npt.NDArray[np.int32]]:
        """Return of the n-grams of each part in how many samples a reference has them."""
        pairs = [(part.kinds, _frequency(self, part)) for part in self.count(n, numbers)]
        if not pairs:
            return []
        ends = np.cumsum([len(kinds) for kinds, _ in pairs])[:-1]
        kinds, counts = np.concatenate([one for one, _ in pairs]), np.concatenate([one for _, one in pairs])
        del pairs  # the 4-grams of 600,000 captions are millions
        order = np.argsort(kinds)
        kinds = kinds[order]
        begins = np.append(True, kinds[1:] != kinds[:-1])[: len(kinds)]
        del kinds
        sums = np.add.reduceat(counts[order], np.flatnonzero(begins)) if len(counts) else counts
        counts[order] = sums[np.cumsum(begins, dtype=np.int32) - 1]
        return np.split(counts, ends)


def _frequency(corpus: CaptionCorpus, counts: NgramCounts) -> npt.NDArray[np.int32]:
    """Return in how many samples of a part a reference has each of its n-grams. (K,)"""
    kinds = max(1, len(counts.kinds))
    of_reference = ~corpus.is_prediction[counts.caption]
    keys = np.sort(corpus.sample_of[counts.caption[of_reference]] * kinds + counts.ngram[of_reference])
    once = keys[np.append(True, keys[1:] != keys[:-1])[: len(keys)]]
    return np.bincount(once % kinds, minlength=len(counts.kinds)).astype(np.int32)


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
        prediction_of = (corpus.prediction_at[samples] - first).astype(np.int32)
        return cls(counts, matches, in_prediction, prediction_of)

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
            predictions = tokenize_captions(pair.prediction or "" for pair in pairs)
            references = tokenize_captions(text for pair in pairs for text in pair.reference)
            self._last = None  # one corpus in memory
            self._last = known, CaptionCorpus([next(predictions), *(next(references) for _ in pair.reference)] for pair in pairs)
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
