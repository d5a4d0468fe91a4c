"""κ and α equal published worked examples; rates count what reviewers did."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("krippendorff")

from tests.review.corpora import action, make_described, open_state
from vip.review.agreement import (
    agreement_by_field,
    cohen_kappa,
    count_values,
    fleiss_kappa,
    krippendorff_alpha,
    measure_agreement,
    raw_agreement,
)
from vip.review.rates import engine_rates
from vip.review.report import make_report, report_lines

PSYCHIATRISTS = """0 0 0 0 14
0 2 6 4 2
0 0 3 5 6
0 3 9 2 0
2 2 8 1 1
7 7 0 0 0
3 2 6 3 0
2 5 3 2 2
6 5 2 1 0
0 2 2 3 7"""
"""Fourteen raters put ten subjects into five classes; κ = 0.210 (the example of Wikipedia's "Fleiss' kappa")."""
FOUR_OBSERVERS = """1 2 3 3 2 1 4 1 2 * * *
1 2 3 3 2 2 4 1 2 5 * 3
* 3 3 3 2 3 4 2 2 5 1 *
1 2 3 3 2 4 4 1 2 5 1 *"""
"""Krippendorff 2011, example C: nominal α = 0.743."""


def units(table: str) -> list[dict[str, str]]:
    rows = [line.split() for line in table.splitlines()]
    return [{f"r{who}": value for who, value in enumerate(column) if value != "*"} for column in zip(*rows, strict=True)]


def test_fleiss_kappa_of_the_published_example() -> None:
    counts = np.array([line.split() for line in PSYCHIATRISTS.splitlines()], np.int64)
    assert fleiss_kappa(counts) == pytest.approx(0.210, abs=5e-4)
    assert raw_agreement(counts) == pytest.approx(0.378, abs=5e-4)


def test_cohen_kappa_of_a_published_example() -> None:
    pairs = [("yes", "yes")] * 20 + [("yes", "no")] * 5 + [("no", "yes")] * 10 + [("no", "no")] * 15
    assert cohen_kappa(pairs) == pytest.approx(0.4)  # p = 0.7, by chance 0.5
    assert cohen_kappa([("yes", "yes")] * 3) is None
    same = [("a", "b"), ("b", "a")]
    assert cohen_kappa(same) == pytest.approx(-1)


@pytest.mark.parametrize(
    ("table", "alpha"),
    [
        ("0 1 0 0 0 0 0 0 1 0\n1 1 1 0 0 1 0 0 0 0", 0.095),  # Krippendorff 2011, example A: binary data, two observers
        ("a a b b d c c c e d d a\nb a b b b c c c e d d d", 0.692),  # example B: nominal data
        (FOUR_OBSERVERS, 0.743),  # example C: any number of observers, missing data
    ],
)
def test_krippendorff_alpha_of_the_published_examples(table: str, alpha: float) -> None:
    counts = count_values([unit for unit in units(table) if len(unit) > 1])
    assert krippendorff_alpha(counts) == pytest.approx(alpha, abs=5e-4)


def test_the_interval_of_alpha_holds_its_value_and_is_the_same_again() -> None:
    row = measure_agreement("x", units(FOUR_OBSERVERS), ["v"] * 12)
    assert row.alpha is not None
    assert row.alpha.low is not None
    assert row.alpha.high is not None
    assert row.alpha.value == pytest.approx(0.743, abs=5e-4)
    assert row.alpha.low < row.alpha.value < row.alpha.high
    assert measure_agreement("x", units(FOUR_OBSERVERS), ["v"] * 12) == row
    assert (row.items, row.reviewers, len(row.cohen)) == (11, 4, 6)  # one of twelve has one judgement


def test_nothing_to_compare_is_no_agreement_of_zero() -> None:
    row = measure_agreement("x", [{"Ann": "good"}], ["v"])
    assert (row.items, row.raw, row.fleiss, row.alpha) == (0, None, None, None)


def test_texts_that_nobody_marked_count_as_right(tmp_path: Path) -> None:
    state = open_state(make_described(tmp_path / "a", 4))
    for who in ("Ann", "Bob"):
        state.record([action(f"k{number}", "verdict", "good", by=who) for number in range(4)])
    state.record([action("k0", "wrong:mood", "wrong"), action("k0", "wrong:mood", "wrong", by="Bob"), action("k1", "wrong:mood", "wrong")])
    rows = {row.field: row for row in agreement_by_field(state)}
    assert rows["verdict"].raw == rows["focus"].raw == 1
    assert rows["mood"].raw == 0.75
    assert rows["mood"].cohen == {"Ann, Bob": pytest.approx(0.5)}  # p = 0.75; by chance 0.5


def test_rejected_claims_and_added_objects_are_counted_by_engine(tmp_path: Path) -> None:
    state = open_state(make_described(tmp_path / "a", 2))
    # each has focus, action, setting and two objects; its mood is not determined
    state.record([action("k0", "verdict", "needs work"), action("k0", "wrong:focus", "wrong"), action("k0", "wrong:mood", "wrong")])
    state.record([action("k0", "objects", "ball\nhat\nshoe", before="rope\nball")])
    (row,) = engine_rates(state)
    assert row.engine == "openai:gpt-5-mini"
    assert row.items == 1  # nobody judged the other
    assert row.hallucination is not None
    assert row.omission is not None
    assert row.hallucination.value == pytest.approx(2 / 5)  # the focus, the rope
    assert row.omission.value == pytest.approx(2 / 3)  # hat and shoe of ball, hat and shoe
    state.record([action("k0", "final:wrong:focus", "right")])
    assert engine_rates(state)[0].hallucination.value == pytest.approx(1 / 5)  # type: ignore[union-attr]


def test_one_of_two_who_call_a_text_wrong_is_enough_but_not_one_of_three(tmp_path: Path) -> None:
    state = open_state(make_described(tmp_path / "a", 1))
    for who in ("Ann", "Bob"):
        state.record([action("k0", "verdict", "good", by=who)])
    state.record([action("k0", "wrong:focus", "wrong")])
    assert engine_rates(state)[0].hallucination.value == pytest.approx(1 / 5)  # type: ignore[union-attr]
    state.record([action("k0", "verdict", "good", by="Eve")])
    assert engine_rates(state)[0].hallucination.value == 0  # type: ignore[union-attr]


def test_the_report_says_the_same_as_data_and_as_lines(tmp_path: Path) -> None:
    state = open_state(make_described(tmp_path / "a", 3))
    for who, verdict in (("Ann", "good"), ("Bob", "unusable")):
        state.record([action("k0", "verdict", "good", by=who), action("k1", "verdict", verdict, by=who)])
    report = make_report(state)
    assert (report["items"], report["disagreements"], report["agreement"][0]["raw"]) == (3, 1, 0.5)
    lines = list(report_lines(state))
    assert "  Ann: 2 judged (2 good, 0 needs work, 0 unusable)" in lines
    assert any(line.startswith("verdict") and " 0.500 " in line for line in lines)
