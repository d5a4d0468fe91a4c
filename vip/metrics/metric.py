"""What every metric takes and gives, and the mean over pairs that most of them are.

A metric sees the whole list, because some values are no mean: CIDEr weighs words by how many references have them, BLEU adds counts up.
A prediction without an answer is never guessed. One value counts it as a wrong one, as the papers do, and one leaves it out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from vip.errors import BackendError

Status = Literal["ok", "unparsed", "refused", "failed", "missing"]
"""Whether there is an answer; else whether it could not be parsed, the model refused, it could not be asked, or the file has none."""

PredictionT = TypeVar("PredictionT")
ReferenceT = TypeVar("ReferenceT")


class Pair(NamedTuple, Generic[PredictionT, ReferenceT]):
    """A prediction and what it should have been."""

    prediction: PredictionT | None
    """None where there is no answer."""
    reference: ReferenceT
    """What the metric compares with: a text, an option, a set of texts that are all right."""
    status: Status = "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The outcome of one metric on one list of pairs. Values are fractions, not percent."""

    value: float | None
    """Over all pairs, where a prediction without an answer counts as a wrong one; None for an empty list."""
    value_answered: float | None
    """Over the pairs with an answer alone; None where there is none."""
    per_sample: tuple[float | None, ...] | None = field(repr=False)
    """One value a pair, in the order of the pairs, None for those without an answer. None where the metric has no such values."""
    n: int
    """Pairs with an answer."""
    unscored: Mapping[Status, int]
    """Pairs without an answer, by their status."""
    signature: str
    """Two values with the same signature were computed in the same way."""
    parts: Mapping[str, Result] = field(default_factory=dict, repr=False)
    """What the value is made of, where it is made of parts: the components of FAMOuS, recall at 1, 5 and 10."""
    notes: tuple[str, ...] = ()
    """Sentences for people about what the value is worth on this list."""

    @property
    def per_sample_or_zero(self) -> tuple[float, ...]:
        """One value a pair, 0 for those without an answer: what error bars of `value` are made from.

        Raises:
            ValueError: the metric has no values of samples; `vip.metrics.statistics.bootstrap` does without.
        """
        if self.per_sample is None:
            raise ValueError(f"{self.signature.partition('|')[0]} has no values of samples")
        return tuple(0.0 if value is None else value for value in self.per_sample)


class Metric(Protocol[PredictionT, ReferenceT]):
    """A measure of how well predictions fit their references."""

    @property
    def name(self) -> str:
        """As tables name it: `rouge-l`."""

    @property
    def needs(self) -> tuple[str, ...]:
        """What must be installed or in the cache, in words for people; empty where vip alone suffices."""

    @property
    def signature(self) -> str:
        """The name and what a value depends on, as `rouge-l|v:1|stem:no|empty:0|lib:rouge-score 0.1.2`.

        Raises:
            BackendError: as `check` does.
        """

    def check(self) -> None:
        """Refuse the metric where it lacks something, within 2 s and without loading a model.

        Raises:
            BackendError: a library, weights or a device is missing.
        """

    def score(self, pairs: Sequence[Pair[PredictionT, ReferenceT]]) -> Result:
        """Return the result over the whole list.

        Raises:
            BackendError: as `check` does, or what it needs is damaged.
        """


def score_mean(
    pairs: Sequence[Pair[PredictionT, ReferenceT]],
    score: Callable[[Sequence[tuple[PredictionT, ReferenceT]]], Sequence[float]],
    signature: str,
) -> Result:
    """Return the result of a metric that is the mean of one value a pair. A prediction without an answer counts 0.

    Args:
        score: returns the values of predictions and references, in order.
    """
    answered, values = check_pairs(pairs), list[float | None]([None] * len(pairs))
    scored = score([(prediction, pairs[index].reference) for index, prediction in answered]) if answered else ()
    for (index, _), value in zip(answered, scored, strict=True):
        values[index] = float(value)
    total = math.fsum(value for value in values if value is not None)
    return Result(
        value=total / len(pairs) if pairs else None,
        value_answered=total / len(answered) if answered else None,
        per_sample=tuple(values),
        n=len(answered),
        unscored=count_unscored(pairs),
        signature=signature,
    )


def check_pairs(pairs: Sequence[Pair[PredictionT, ReferenceT]]) -> list[tuple[int, PredictionT]]:
    """Return the predictions that are an answer, each with its index.

    Raises:
        ValueError: a prediction and its status contradict each other.
    """
    answered = []
    for index, pair in enumerate(pairs):
        if (pair.prediction is None) == (pair.status == "ok"):
            raise ValueError(f'pair {index} has the status "{pair.status}" and the prediction {pair.prediction!r:.50}')
        if pair.prediction is not None:
            answered.append((index, pair.prediction))
    return answered


def count_unscored(pairs: Sequence[Pair[PredictionT, ReferenceT]]) -> dict[Status, int]:
    """Return how many pairs have no answer, by their status."""
    return dict(Counter(pair.status for pair in pairs if pair.status != "ok"))


def check_installed(metric: str, module: str, package: str) -> None:
    """Refuse a metric whose library is missing; nothing is imported.

    Raises:
        BackendError: the library is not installed.
    """
    if find_spec(module) is None:
        raise BackendError(f"The metric {metric} needs {package}. Run `pip install 'vip-keyframes[eval]'`.")


def library_version(*packages: str) -> str:
    """Return `rouge-score 0.1.2` of installed packages, as a part of a signature."""
    return ", ".join(f"{package} {version(package)}" for package in packages)
