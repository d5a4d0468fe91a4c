"""A judge against people: how often both agree, and what the judge's mean becomes once its errors are known.

In: verdicts (true: the answer is correct) of a judge and of people on some samples, and the judge's verdicts on all of them. Out:
`JudgeAgreement` and a share with its interval. Agreement says little beside a base rate: a judge that always says yes agrees with people
who nearly always say yes, and its κ is 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from vip.errors import InputError

Z_95 = 1.959963984540054


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAgreement:
    """Verdicts of a judge held against those of people."""

    n: int
    """Samples that both judged."""
    agreement: float
    base_rate: float
    """Share of the samples that people call correct."""
    kappa: float | None
    """Cohen 1960; None where both always give the same verdict."""
    correct: int
    """Samples that people call correct, and that sensitivity is known from."""
    sensitivity: float | None
    """Of what people call correct, the share that the judge calls correct."""
    specificity: float | None
    """Of what people call wrong, the share that the judge calls wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedShare:
    """A share that a judge found, corrected for its errors."""

    value: float | None
    low: float | None
    high: float | None
    no_value: str | None = None
    """Why there is none, as a sentence."""


def judge_agreement(judge: Sequence[bool], people: Sequence[bool]) -> JudgeAgreement:
    """Return how well a judge fits people.

    Raises:
        InputError: there is no sample that both judged.
    """
    pairs = list(zip(judge, people, strict=True))
    if not pairs:
        raise InputError("No sample has the verdicts of both judge and people. Give labels of samples that were predicted.")
    n, correct = len(pairs), sum(people)
    agreement = sum(mine == theirs for mine, theirs in pairs) / n
    by_chance = (sum(judge) * correct + (n - sum(judge)) * (n - correct)) / n**2
    return JudgeAgreement(
        n=n,
        agreement=agreement,
        base_rate=correct / n,
        kappa=None if by_chance == 1 else (agreement - by_chance) / (1 - by_chance),
        correct=correct,
        sensitivity=sum(mine and theirs for mine, theirs in pairs) / correct if correct else None,
        specificity=sum(not mine and not theirs for mine, theirs in pairs) / (n - correct) if correct < n else None,
    )


def correct_share(share: float, n: float, known: JudgeAgreement) -> CorrectedShare:
    """Return (p + specificity - 1) / (sensitivity + specificity - 1), limited to [0, 1] (Rogan and Gladen 1978), with its 95 % interval.

    The interval is that of Lang and Reiczigel 2014, which counts the uncertainty of all three shares.

    Args:
        share: p, of all samples what the judge calls correct.
        n: samples that the share is known from; fewer where they come in clusters: p (1 - p) / its clustered variance.
    """
    if known.sensitivity is None or known.specificity is None:
        missing = "correct" if known.sensitivity is None else "wrong"
        return _no_share(f"People called no answer {missing}, so the errors of the judge are not known. Label more samples.")
    if known.sensitivity + known.specificity <= 1:
        return _no_share("The judge is no better than chance, so its mean cannot be corrected. Use another judge.")
    value = (share + known.specificity - 1) / (known.sensitivity + known.specificity - 1)
    wrong = known.n - known.correct
    z2 = Z_95**2
    many, p = n + z2, (n * share + z2 / 2) / (n + z2)
    sensitivity = (known.correct * known.sensitivity + 1) / (known.correct + 2)
    specificity = (wrong * known.specificity + 1) / (wrong + 2)
    better = sensitivity + specificity - 1
    if better <= 0:
        return _no_share("Too few answers were labelled to tell the judge from chance. Label more samples.")
    middle = (p + specificity - 1) / better
    of_sensitivity = sensitivity * (1 - sensitivity) / (known.correct + 2)
    of_specificity = specificity * (1 - specificity) / (wrong + 2)
    shift = 2 * z2 * (middle * of_sensitivity - (1 - middle) * of_specificity)
    error = math.sqrt(p * (1 - p) / many + middle**2 * of_sensitivity + (1 - middle) ** 2 * of_specificity) / better
    return CorrectedShare(value=_in_unit(value), low=_in_unit(middle + shift - Z_95 * error), high=_in_unit(middle + shift + Z_95 * error))


def _no_share(why: str) -> CorrectedShare:
    return CorrectedShare(value=None, low=None, high=None, no_value=why)


def _in_unit(value: float) -> float:
    return min(1.0, max(0.0, value))
