"""How well people agree on what fills a blank: each against the others (Castro et al. 2022, section 3.3, tables 2 and 3).

In: per caption its label and the answers of each worker, the most natural first. Out: means and deviations, as fractions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from vip.metrics.blank_answers import exact_match, normalize_phrase, normalized_token_f1, token_f1

Measure = Callable[[str, Iterable[str]], float]


@dataclass(frozen=True, slots=True)
class BlankAnswers:
    """What people filled one blank with."""

    label: str
    by_worker: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How well people agree. Deviations are those of a population, over captions."""

    f1: float
    f1_deviation: float
    exact_match: float
    exact_match_deviation: float
    n: int
    """Captions, or answers."""


def leave_worker_out(answers: BlankAnswers, measure: Measure) -> list[float]:
    """Return the score of each worker's first answer against the label and all answers of the others; workers without one are
    left out. An answer of articles and punctuation alone is none."""
    scores = []
    for index, own in enumerate(answers.by_worker):
        first = next((answer for answer in own if normalize_phrase(answer)), None)
        if first is not None:
            others = [answer for other, group in enumerate(answers.by_worker) if other != index for answer in group]
            scores.append(measure(first, [answers.label, *others]))
    return scores


def measure_first_answers(captions: Iterable[BlankAnswers]) -> Agreement | None:
    """Return the agreement of first answers: the mean over the workers of a caption, then over captions; None without a worker."""
    rows = []
    for answers in captions:
        f1, exact = (leave_worker_out(answers, measure) for measure in (normalized_token_f1, exact_match))
        if f1:
            rows.append((sum(f1) / len(f1), sum(exact) / len(exact)))
    return _summarize(rows)


def measure_all_answers(captions: Iterable[BlankAnswers]) -> Agreement | None:
    """Return the agreement of all answers, the label counting as one more worker: the mean over answers; None without one."""
    rows = []
    for answers in captions:
        people = [(answers.label,), *answers.by_worker]
        for index, own in enumerate(people):
            others = [answer for other, group in enumerate(people) if other != index for answer in group]
            rows += [(normalized_token_f1(answer, others), exact_match(answer, others)) for answer in own if normalize_phrase(answer)]
    return _summarize(rows)


def measure_captions(captions: Iterable[Sequence[str]], *, normalized: bool = False) -> float | None:
    """Return the mean token F1 of each caption of a video against the others of that video, in float64; None without a second caption.

    The authors print 0.47302809 for the validation split of VATEX: this sum kept in float32.
    """
    measure, scores = normalized_token_f1 if normalized else token_f1, []
    for group in captions:
        if len(group) > 1:
            scores += [measure(caption, [*group[:index], *group[index + 1 :]]) for index, caption in enumerate(group)]
    return math.fsum(scores) / len(scores) if scores else None


def _summarize(rows: Sequence[tuple[float, float]]) -> Agreement | None:
    if not rows:
        return None
    (f1, f1_deviation), (exact, exact_deviation) = (_mean_and_deviation(column) for column in zip(*rows, strict=True))
    return Agreement(f1=f1, f1_deviation=f1_deviation, exact_match=exact, exact_match_deviation=exact_deviation, n=len(rows))


def _mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
