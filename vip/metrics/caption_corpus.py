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


MOST_SAMPLES = 1000  # counted at once: sorting many short lists takes less time and memory than sorting a long one


@dataclass(frozen=True, slots=True)
class Ngrams:
    """The n-grams of a corpus as numbers."""

    numbers: Integers  # (W,): of the n-gram that begins at each word; those that would leave their caption are meaningless
    kinds: int
    """Different numbers, from 0 on."""
    n: int


@dataclass(frozen=True, slots=True)
class NgramCounts:
    """How often each n-gram is in each caption of some samples; sorted by caption, then by n-gram."""

    captions: tuple[int, int]
    """The first caption, and the one behind the last."""
    caption: npt.NDArray[np.int32]  # (M,)
    ngram: npt.NDArray[np.int32]  # (M,)
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

    def ngrams(self, most: int) -> Iterator[Ngrams]:
        """Yield the 1-grams, 2-grams and so on up to `most`."""
        numbers, kinds = self._words, self._vocabulary
        yield Ngrams(numbers, kinds, 1)
        for n in range(2, most + 1):  # the (n-1)-gram at each place, and the word at its end
            last = np.append(self._words[n - 1 :], np.zeros(n - 1, np.int64))[: len(numbers)]
            different, renumbered = np.unique(numbers * self._vocabulary + last, return_inverse=True)
            numbers, kinds = renumbered.reshape(-1), max(1, len(different))
            yield Ngrams(numbers, kinds, n)

    def count(self, ngrams: Ngrams) -> Iterator[NgramCounts]:
        """Yield the counts of all captions, some samples at a time."""
        for first in range(0, self.samples, MOST_SAMPLES):
            captions = slice(*self._caption_range(first))
            words = slice(self._starts[captions.start], self._starts[captions.stop])
            owner = np.repeat(np.arange(captions.start, captions.stop), self.lengths[captions])
            inside = np.arange(words.start, words.stop) + ngrams.n <= self._starts[owner + 1]
            keys, count = np.unique((owner * ngrams.kinds + ngrams.numbers[words])[inside], return_counts=True)
            yield NgramCounts(
                (captions.start, captions.stop),
                (keys // ngrams.kinds).astype(np.int32),
                (keys % ngrams.kinds).astype(np.int32),
                count.astype(np.int32),
            )

    def _caption_range(self, first: int) -> tuple[int, int]:
        """Return the first caption of a sample, and the one behind the last of those that are counted with it."""
        behind = first + MOST_SAMPLES
        return int(self.prediction_at[first]), int(self.prediction_at[behind]) if behind < self.samples else len(self.lengths)

    @cached_property
    def matches(self) -> Integers:
        """How many 1-grams to 4-grams of each prediction a reference has, none counted more often than in one reference. (4, N)"""
        return np.array([sum(self._count_matches(part, ngrams.kinds) for part in self.count(ngrams)) for ngrams in self.ngrams(4)])

    def _count_matches(self, counts: NgramCounts, kinds: int) -> Integers:
        keys = self.sample_of[counts.caption] * kinds + counts.ngram
        is_prediction = self.is_prediction[counts.caption]
        wanted, place = np.unique(keys[~is_prediction], return_inverse=True)
        limits = np.zeros(len(wanted) + 1, np.int64)
        np.maximum.at(limits, place.reshape(-1), counts.count[~is_prediction])
        predicted = keys[is_prediction]
        found = np.searchsorted(wanted, predicted)
        is_known = np.append(wanted, -1)[found] == predicted
        matches = np.minimum(counts.count[is_prediction], limits[found]) * is_known
        return np.bincount(self.sample_of[counts.caption[is_prediction]], matches, self.samples).astype(np.int64)


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
