"""How likely a model holds the right phrase: its probability and its perplexity, from log probabilities of its tokens.

In: natural logarithms of the probabilities of the tokens of a phrase, the end of the text left out. Out: figures as the authors' code for
FIBER has them (Castro et al. 2022): perplexity a phrase, then the mean over phrases.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence

MOST = math.log(sys.float_info.max)


def phrase_probability(log_probabilities: Sequence[float]) -> float:
    """Return the product of the probabilities of the tokens; 1 of no token.

    Raises:
        ValueError: one is above 0 or no number.
    """
    _check(log_probabilities)
    return math.exp(_sum(log_probabilities))


def phrase_perplexity(log_probabilities: Sequence[float]) -> float:
    """Return e to the negative mean: 1 where the model is sure of each token; infinite where it rules one out.

    Raises:
        ValueError: there is no token, or one is above 0 or no number.
    """
    _check(log_probabilities)
    if not log_probabilities:
        raise ValueError("a phrase without tokens has no perplexity")
    mean = _sum(log_probabilities) / len(log_probabilities)
    return math.inf if -mean > MOST else math.exp(-mean)


def mean_perplexity(phrases: Iterable[Sequence[float]]) -> float | None:
    """Return the mean perplexity over phrases; None of nothing."""
    values = [phrase_perplexity(phrase) for phrase in phrases]
    return _sum(values) / len(values) if values else None


def _sum(values: Sequence[float]) -> float:
    """Return the exact sum of numbers of one sign; infinite where it is beyond the largest float."""
    try:
        return math.fsum(values)
    except OverflowError:
        return math.copysign(math.inf, values[0])


def _check(log_probabilities: Sequence[float]) -> None:
    if any(math.isnan(value) or value > 0 for value in log_probabilities):
        raise ValueError("a log probability is a number of at most 0")
