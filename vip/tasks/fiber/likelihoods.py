"""Probabilities and perplexity over predictions that have them (Castro et al. 2022, the authors' code)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from vip.errors import InputError
from vip.metrics.likelihood import mean_perplexity, phrase_probability
from vip.tasks.records import Prediction
from vip.tasks.table import Table, TableCell, number_cell
from vip.untrusted import one_line


@dataclass(frozen=True, slots=True)
class Likelihoods:
    """Means over the predictions that have them."""

    answer_probability: float | None
    label_probability: float | None
    perplexity: float | None
    """Of the label."""
    n: int
    """Predictions with the probabilities of the label."""


def measure_likelihoods(predictions: Iterable[Prediction]) -> Likelihoods:
    """Return the means.

    Raises:
        InputError: a log probability is above 0 or no number, or a label has no token.
    """
    own, label = list[float](), list[tuple[float, ...]]()
    for row in predictions:
        try:
            if row.log_probabilities is not None:
                own.append(phrase_probability(row.log_probabilities))
            if row.label_log_probabilities is not None:
                mean_perplexity([row.label_log_probabilities])
                label.append(row.label_log_probabilities)
        except ValueError as exc:
            raise InputError(f'The prediction of "{one_line(row.sample_id)[:80]}" has wrong likelihoods: {exc}. Predict it again.') from exc
    labels = [phrase_probability(values) for values in label]
    return Likelihoods(_mean(own), _mean(labels), mean_perplexity(label), len(label))


def _mean(values: list[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def likelihood_table(found: dict[str, Likelihoods]) -> Table:
    """Return a row a file of predictions."""
    rows = [
        (
            TableCell(name),
            number_cell(one.answer_probability, digits=4),
            number_cell(one.label_probability, digits=4),
            number_cell(one.perplexity),
            TableCell(f"{one.n:,}", one.n),
        )
        for name, one in found.items()
    ]
    columns = ("Predictions", "P(answer)", "P(label)", "Perplexity of the label", "Samples")
    return Table(title="Likelihoods, means over samples", columns=columns, rows=tuple(rows), notes=("The end of the text is left out.",))
