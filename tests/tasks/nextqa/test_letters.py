"""A model that prefers a letter is told from one that does not."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.tasks.nextqa.published import read, write_csv
from vip.tasks.nextqa.letters import LetterCounts, count_letters, letter_table
from vip.tasks.nextqa.mc import NextqaMultiChoice
from vip.tasks.records import Prediction

TASK = NextqaMultiChoice()


def test_letters_are_counted_where_an_answer_was_read(tmp_path: Path) -> None:
    rows = [(f"v{n}", 1, 1, 1, "q", n % 5, 0, "CW", "a", "b", "c", "d", "e") for n in range(10)]
    samples = read(TASK, write_csv(tmp_path / "v.csv", rows))
    predictions = [Prediction(sample_id=sample.id, value=0) for sample in samples[:9]] + [TASK.parse(samples[9], "?")]
    counts = count_letters(zip(samples, predictions, strict=True))
    assert counts == LetterCounts(chosen=(9, 0, 0, 0, 0), right=(2, 2, 2, 2, 1), hit=(2, 0, 0, 0, 0))
    mixed = [Prediction(sample_id=sample.id, value=(place + place // 5) % 5) for place, sample in enumerate(samples)]
    assert count_letters(zip(samples, mixed, strict=True)) == LetterCounts((2,) * 5, (2,) * 5, (1,) * 5)
    some = letter_table(LetterCounts((4, 0, 1, 0, 0), (2, 0, 3, 0, 0), (2, 0, 1, 0, 0)))
    assert [[cell.text for cell in row] for row in some.rows][:3] == [
        ["A", "4", "2", "100.00"],
        ["B", "0", "0", "–"],
        ["C", "1", "3", "33.33"],
    ]
    table = letter_table(counts)
    assert [cell.text for cell in table.rows[0]] == ["A", "9", "2", "100.00"]
    assert table.notes == ("Each letter chosen as often as any other: p = 0.0000.",)


@pytest.mark.parametrize(
    ("chosen", "p"),
    [((20, 20, 20, 20, 20), 1.0), ((10, 20, 20, 20, 30), 0.0404), ((0, 0, 0, 0, 0), None)],  # chi-squared 0 and 10, by R's pchisq
)
def test_the_p_value_is_that_of_chi_squared(chosen: tuple[int, ...], p: float | None) -> None:
    found = LetterCounts(chosen, chosen, chosen).p_value
    assert found == (None if p is None else pytest.approx(p, abs=5e-5))
    assert found is None or math.isfinite(found)


def test_a_baseline_that_knows_no_letters_has_no_bias_when_options_are_shuffled(tmp_path: Path) -> None:
    rows = [(f"v{n}", 1, 1, 1, "q", 0, 0, "CW", "a b", "b", "c d", "d e", "e f") for n in range(1000)]
    samples = read(TASK, write_csv(tmp_path / "v.csv", rows), shuffle=5)
    counts = count_letters(zip(samples, TASK.baselines["shortest"](lambda: iter(samples), 0), strict=True))
    assert (counts.p_value or 0) > 0.001
    plain = read(TASK, tmp_path / "v.csv")
    counts = count_letters(zip(plain, TASK.baselines["shortest"](lambda: iter(plain), 0), strict=True))
    assert counts.chosen == (0, 1000, 0, 0, 0)
