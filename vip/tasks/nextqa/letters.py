"""A bias towards a letter: how often each is chosen, and right, when options are shown in an order drawn by a seed (`--shuffle`)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from vip.tasks.nextqa.baselines import options_of
from vip.tasks.nextqa.files import LETTERS
from vip.tasks.nextqa.samples import first_reference
from vip.tasks.records import Prediction, Sample
from vip.tasks.table import Table, TableCell, number_cell


@dataclass(frozen=True, slots=True)
class LetterCounts:
    """How often each place was chosen, held the right option, and both; predictions without an answer are not counted."""

    chosen: tuple[int, ...]
    right: tuple[int, ...]
    hit: tuple[int, ...]

    @property
    def p_value(self) -> float | None:
        """Of Pearson's chi-squared test that each letter is chosen as often as any other; None without an answer.

        Valid where options are shuffled: in the published order some places hold the right option more often.
        """
        total, places = sum(self.chosen), len(self.chosen)
        if not total or places != len(LETTERS):
            return None
        statistic = sum((count - total / places) ** 2 for count in self.chosen) / (total / places)
        return math.exp(-statistic / 2) * (1 + statistic / 2)  # of chi-squared with four degrees of freedom


def count_letters(pairs: Iterable[tuple[Sample, Prediction]]) -> LetterCounts:
    """Return how often each letter was chosen and right.

    Raises:
        InputError: a sample has no options, or no answer.
    """
    chosen, right, hit = Counter[int](), Counter[int](), Counter[int]()
    for sample, prediction in pairs:
        options_of(sample)
        if isinstance(prediction.value, int):
            place = int(str(first_reference(sample)))
            chosen[prediction.value] += 1
            right[place] += 1
            hit[place] += prediction.value == place
    return LetterCounts(*(tuple(counts[place] for place in range(len(LETTERS))) for counts in (chosen, right, hit)))


def letter_table(counts: LetterCounts) -> Table:
    """Return a row a letter: how often it was chosen, was right, and the accuracy where it was."""
    rows = tuple(
        (
            TableCell(letter),
            TableCell(f"{counts.chosen[place]:,}", counts.chosen[place]),
            TableCell(f"{counts.right[place]:,}", counts.right[place]),
            number_cell(100 * counts.hit[place] / counts.right[place] if counts.right[place] else None),
        )
        for place, letter in enumerate(LETTERS)
    )
    p_value = counts.p_value
    note = "No answer was read." if p_value is None else f"Each letter chosen as often as any other: p = {p_value:.4f}."
    return Table(title="Letters", columns=("Letter", "Chosen", "Right", "Accuracy where right"), rows=rows, notes=(note,))
