"""Agreement by hand, and intervals that hold the true share."""

from __future__ import annotations

import numpy as np
import pytest

from vip.errors import InputError
from vip.metrics.judge_agreement import correct_share, judge_agreement


def test_agreement_by_hand() -> None:
    # 40 of both yes, 10 of both no, 5 that people alone call correct, 5 that the judge alone does
    judge = [True] * 45 + [False] * 15
    people = [True] * 40 + [False] * 5 + [True] * 5 + [False] * 10
    found = judge_agreement(judge, people)
    by_chance = (45 * 45 + 15 * 15) / 60**2
    assert found.agreement == pytest.approx(50 / 60)
    assert found.kappa == pytest.approx((50 / 60 - by_chance) / (1 - by_chance))
    assert (found.sensitivity, found.specificity, found.base_rate) == (pytest.approx(40 / 45), pytest.approx(10 / 15), pytest.approx(0.75))


def test_a_judge_that_always_says_yes_agrees_often_and_knows_nothing() -> None:
    found = judge_agreement([True] * 20, [True] * 18 + [False] * 2)
    assert (found.agreement, found.kappa) == (0.9, pytest.approx(0.0))
    assert (
        correct_share(1.0, 100, found).no_value == "The judge is no better than chance, so its mean cannot be corrected. Use another judge."
    )


def test_a_perfect_judge_changes_nothing() -> None:
    known = judge_agreement([True, False] * 500, [True, False] * 500)
    found = correct_share(0.3, 1000, known)
    assert found.value == pytest.approx(0.3)
    assert found.low is not None
    assert found.high is not None
    assert 0.26 < found.low < 0.3 < found.high < 0.34


def test_the_correction_by_hand_is_limited_to_shares() -> None:
    known = judge_agreement([True] * 9 + [False] + [False] * 8 + [True] * 2, [True] * 10 + [False] * 10)
    assert correct_share(0.5, 100, known).value == pytest.approx((0.5 + 0.8 - 1) / (0.9 + 0.8 - 1))
    assert correct_share(0.1, 100, known).value == 0.0


def test_one_sided_labels_are_said() -> None:
    assert "People called no answer wrong" in str(correct_share(0.5, 10, judge_agreement([True], [True])).no_value)
    assert "People called no answer correct" in str(correct_share(0.5, 10, judge_agreement([True], [False])).no_value)
    with pytest.raises(InputError, match="No sample has the verdicts of both"):
        judge_agreement([], [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("truth", "sensitivity", "specificity", "labelled"), [(0.5, 0.9, 0.8, 200), (0.2, 0.85, 0.95, 150), (0.8, 0.95, 0.7, 300)]
)
def test_intervals_at_95_percent_hold_the_true_share_in_94_to_98_percent(
    truth: float, sensitivity: float, specificity: float, labelled: int
) -> None:
    random = np.random.default_rng(3)
    held = 0
    for _ in range(3000):
        people = random.random(labelled) < truth
        judge = random.random(labelled) < np.where(people, sensitivity, 1 - specificity)
        share = random.binomial(1000, truth * sensitivity + (1 - truth) * (1 - specificity)) / 1000
        found = correct_share(share, 1000, judge_agreement(judge.tolist(), people.tolist()))
        held += found.low is not None and found.high is not None and found.low <= truth <= found.high
    assert 0.94 <= held / 3000 <= 0.98


def test_the_interval_by_hand() -> None:
    """The steps of Lang and Reiczigel 2014, one after the other, for 9 of 10 and 8 of 10 known, and a share of 0.5 of 100."""
    known = judge_agreement([True] * 9 + [False] + [False] * 8 + [True] * 2, [True] * 10 + [False] * 10)
    found = correct_share(0.5, 100, known)
    z = 1.959963984540054
    p, sensitivity, specificity = (100 * 0.5 + z * z / 2) / (100 + z * z), 10 / 12, 9 / 12
    better = sensitivity + specificity - 1
    middle = (p + specificity - 1) / better
    spread = (
        p * (1 - p) / (100 + z * z)
        + middle**2 * sensitivity * (1 - sensitivity) / 12
        + (1 - middle) ** 2 * specificity * (1 - specificity) / 12
    )
    shift = 2 * z * z * (middle * sensitivity * (1 - sensitivity) / 12 - (1 - middle) * specificity * (1 - specificity) / 12)
    assert found.low is not None
    assert found.high is not None
    assert found.low == pytest.approx(max(0.0, middle + shift - z * spread**0.5 / better))
    assert found.high == pytest.approx(min(1.0, middle + shift + z * spread**0.5 / better))
    assert 0 < found.low < found.high < 1
