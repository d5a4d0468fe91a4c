"""κ and α equal published worked examples; rates count what reviewers did."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("krippendorff")

from tests.review.corpora import action, make_described, open_state
from vip.review.agreement import (
    MOST_PAIRED,
    agreement_by_field,
    cohen_kappa,
    count_values,
    fleiss_kappa,
    krippendorff_alpha,
    measure_agreement,
    raw_agreement,
)
from vip.review.rates import engine_rates
from vip.review.report import make_report, report_lines, report_page
from vip.review.state import Queue

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
    assert cohen_kappa(Counter(pairs)) == pytest.approx(0.4)  # p = 0.7, by chance 0.5
    assert cohen_kappa({("yes", "yes"): 3}) is None
    same = [("a", "b"), ("b", "a")]
    assert cohen_kappa(Counter(same)) == pytest.approx(-1)


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


def test_a_list_that_is_marked_and_that_nobody_corrected_is_wrong_in_each_entry(tmp_path: Path) -> None:
    state = open_state(make_described(tmp_path / "a", 1))
    state.record([action("k0", "verdict", "needs work"), action("k0", "wrong:objects", "wrong")])
    assert engine_rates(state)[0].hallucination.value == pytest.approx(2 / 5)  # type: ignore[union-attr]
    state.record([action("k0", "objects", "rope", before="rope\nball")])
    assert engine_rates(state)[0].hallucination.value == pytest.approx(1 / 5)  # type: ignore[union-attr]


def test_one_of_two_who_call_a_text_wrong_is_enough_but_not_one_of_three(tmp_path: Path) -> None:
    state = open_state(make_described(tmp_path / "a", 1))
    for who in ("Ann", "Bob"):
        state.record([action("k0", "verdict", "good", by=who)])
    state.record([action("k0", "wrong:focus", "wrong")])
    assert engine_rates(state)[0].hallucination.value == pytest.approx(1 / 5)  # type: ignore[union-attr]
    state.record([action("k0", "verdict", "good", by="Eve")])
    assert engine_rates(state)[0].hallucination.value == 0  # type: ignore[union-attr]


def test_an_object_in_other_letters_is_neither_rejected_nor_added(tmp_path: Path) -> None:
    state = open_state(make_described(tmp_path / "a", 1, text=" ÄX"))
    written = state.value("k0", "objects")
    assert written is not None
    assert "Ä" in written
    state.record([action("k0", "verdict", "good"), action("k0", "objects", written.swapcase(), before=written)])
    (row,) = engine_rates(state)
    assert (row.hallucination.value, row.omission.value) == (0, 0)  # type: ignore[union-attr]


def test_marks_of_those_who_gave_no_verdict_do_not_count(tmp_path: Path) -> None:
    state = open_state(make_described(tmp_path / "a", 1))
    state.record(
        [action("k0", "verdict", "good"), action("k0", "verdict", "good", by="Eve"), action("k0", "wrong:focus", "wrong", by="Bob")]
    )
    assert engine_rates(state)[0].hallucination.value == 0  # type: ignore[union-attr]
    state.record([action("k0", "verdict", "needs work", by="Bob")])
    assert engine_rates(state)[0].hallucination.value == 0  # type: ignore[union-attr]  # one of three
    state.record([action("k0", "verdict", None, by="Eve", before="good")])
    assert engine_rates(state)[0].hallucination.value == pytest.approx(1 / 5)  # type: ignore[union-attr]  # one of two


def test_the_report_says_the_same_as_data_and_as_lines(tmp_path: Path) -> None:
    state = open_state(make_described(tmp_path / "a", 3))
    for who, verdict in (("Ann", "good"), ("Bob", "unusable")):
        state.record([action("k0", "verdict", "good", by=who), action("k1", "verdict", verdict, by=who)])
    report = make_report(state)
    assert (report["items"], report["disagreements"], report["agreement"][0]["raw"]) == (3, 1, 0.5)
    lines = list(report_lines(state))
    assert "  Ann: 2 judged (2 good, 0 needs work, 0 unusable)" in lines
    assert any(line.startswith("verdict") and " 0.500 " in line for line in lines)


@settings(max_examples=50, deadline=None)
@given(table=st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=2, max_size=12))
def test_fleiss_kappa_is_that_of_statsmodels(table: list[list[int]]) -> None:
    """Of each row the number of judges is made the same: what is missing goes to the first class."""
    inter_rater = pytest.importorskip("statsmodels.stats.inter_rater")
    most = max(2, *(sum(row) for row in table))
    counts = np.array([[row[0] + most - sum(row), *row[1:]] for row in table], np.int64)
    mine = fleiss_kappa(counts)
    if mine is None:
        return
    assert mine == pytest.approx(inter_rater.fleiss_kappa(counts), abs=1e-9)


@settings(max_examples=50, deadline=None)
@given(pairs=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=30))
def test_cohens_kappa_is_that_of_statsmodels(pairs: list[tuple[str, str]]) -> None:
    inter_rater = pytest.importorskip("statsmodels.stats.inter_rater")
    mine = cohen_kappa(Counter(pairs))
    if mine is None:
        return
    table = np.array([[pairs.count((one, other)) for other in "abc"] for one in "abc"])
    assert mine == pytest.approx(inter_rater.cohens_kappa(table, return_results=False), abs=1e-9)


def test_fleiss_takes_the_usual_number_of_judgements_not_the_largest() -> None:
    pair, three = {"Ann": "good", "Bob": "bad"}, {"Ann": "good", "Bob": "good", "Eve": "good"}
    row = measure_agreement("x", [pair, pair, pair, three], ["v", "w", "x", "y"])
    assert (row.items, row.fleiss_items, row.fleiss) == (4, 3, pytest.approx(-1.0))
    row = measure_agreement("x", [pair, three], ["v", "w"])
    assert row.fleiss_items == 1
    assert row.fleiss is None, "of as many of each, the items with more judgements"


def test_items_of_one_video_are_drawn_together() -> None:
    """Reviewers agree on all of one video and on nothing of the other: with two clusters the interval is far wider than with forty."""
    agreed = [{"Ann": value, "Bob": value} for value in ("good", "bad") * 10]
    units = [*agreed, *({"Ann": value, "Bob": other} for value, other in (("good", "bad"), ("bad", "good")) * 10)]
    by_video = measure_agreement("x", units, ["v"] * 20 + ["w"] * 20).alpha
    alone = measure_agreement("x", units, [str(number) for number in range(40)]).alpha
    one_video = measure_agreement("x", units, ["v"] * 40).alpha
    assert by_video is not None
    assert alone is not None
    assert one_video is not None
    assert None not in (by_video.low, by_video.high, alone.low, alone.high)
    assert by_video.high - by_video.low > 1.5 * (alone.high - alone.low)  # type: ignore[operator]
    assert (one_video.low, one_video.high) == (alone.low, alone.high), "of one video, items are all there is to draw"


def test_reviewers_who_judged_no_item_together_are_no_pair() -> None:
    units = [{"Ann": "good", "Bob": "good"}, {"Bob": "good", "Eve": "bad"}, {"Bob": "bad", "Eve": "bad"}]
    assert list(measure_agreement("x", units, ["v", "v", "w"]).cohen) == ["Ann, Bob", "Bob, Eve"]


def test_only_the_reviewers_with_most_judgements_are_compared_in_pairs() -> None:
    """A log of a stranger with 1,200 names cost minutes and a gigabyte; the other figures are over all of them."""
    everybody = [f"p{number:04}" for number in range(1200)]
    busy = everybody[-MOST_PAIRED:]
    units = [{name: "good" if int(name[1:]) % 2 else "bad" for name in people} for people in (everybody, busy)]
    row = measure_agreement("x", units, ["v", "w"])
    assert (row.reviewers, row.cohen_left_out) == (1200, 1150)
    assert {name for pair in row.cohen for name in pair.split(", ")} == set(busy)
    assert len(row.cohen) == MOST_PAIRED * (MOST_PAIRED - 1) // 2
    assert row.raw == pytest.approx((2 * 600 * 599 + 2 * 25 * 24) / (1200 * 1199 + 50 * 49))


def test_a_report_of_very_many_reviewers_is_made_in_one_pass_and_says_whom_it_leaves_out(tmp_path: Path) -> None:
    state = open_state(make_described(tmp_path / "a", 2))
    names = [f"p{number:03}" for number in range(MOST_PAIRED + 10)]
    state.record([action("k0", "verdict", ("good", "unusable")[place % 2], by=name) for place, name in enumerate(names)])
    state.record([action("k1", "verdict", "good", by=name) for name in names[:2]])
    note = "Cohen's κ: only of pairs of the 50 reviewers with most judgements; 10 others are left out of it."
    assert note in list(report_lines(state))
    assert note.replace("'", "&#39;") in report_page(state, title="a", token="t")
    report = make_report(state)
    assert report["agreement"][0]["cohen_left_out"] == 10
    assert report["reviewers"] == {name: state.progress(Queue(reviewer=name)) for name in names}
    assert report["reviewers"]["p001"] == {"total": 2, "done": 2, "good": 1, "needs work": 0, "unusable": 1}


def test_the_report_of_a_few_reviewers_leaves_nobody_out(tmp_path: Path) -> None:
    state = open_state(make_described(tmp_path / "a", 1))
    state.record([action("k0", "verdict", "good", by=name) for name in ("Ann", "Bob")])
    assert not any("left out" in line for line in report_lines(state))
