"""Tables of scores: a row a file, a column a metric, and the parts of a metric apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tasks.scoring import WordTask, answer, description, joined, result, sample, score_of
from vip.records import NOT_DETERMINED
from vip.tasks.comparison import Difference
from vip.tasks.records import JudgeCalibration, Prediction, Score
from vip.tasks.score import score
from vip.tasks.score_tables import comparison_table, group_tables, p_cell, result_labels, score_cell, score_tables
from vip.tasks.shown_results import numbered_groups


def texts(table_rows: tuple[tuple[object, ...], ...]) -> list[list[str]]:
    return [[getattr(cell, "text", "") for cell in row] for row in table_rows]


def test_a_file_is_a_row_and_a_metric_a_column() -> None:
    first = result("infilling-1", "one", metrics={"rouge-l": score_of(50.0), "bert-score": score_of(60.0)})
    second = result("infilling-1", "two", metrics={"rouge-l": score_of(40.0)})
    other = result("prediction-1", "one", metrics={"rouge-l": score_of(30.0)})
    table, apart = score_tables([first, second, other])
    assert (table.title, table.columns) == (
        "Scores × 100: infilling-1, famous",
        ("Predictions", "Shown to the model", "ROUGE-L", "BERTScore", "Samples"),
    )
    assert texts(table.rows) == [["one", "text only", "50.00", "60.00", "10"], ["two", "text only", "40.00", "–", "10"]]
    assert [cell.is_best for cell in table.rows[0]] == [False, False, True, False, False]
    assert [cell.link for cell in (table.rows[0][2], table.rows[1][2], apart.rows[0][2])] == ["#r1", "#r2", "#r3"]
    assert "Marked: the best of each column." in table.notes
    assert "Marked: the best of each column." not in apart.notes


def test_parts_stand_in_a_table_of_their_own() -> None:
    parts = {"focus": score_of(20.0), "mood": score_of(80.0)}
    whole, table = score_tables([result("infilling-1", "one", metrics={"rouge-l": score_of(50.0, parts=parts)})])
    assert whole.columns[2:] == ("ROUGE-L", "Samples")
    assert (table.title, table.columns[2:]) == ("Parts of ROUGE-L × 100: infilling-1, famous", ("focus", "mood"))
    assert texts(table.rows) == [["one", "text only", "20.00", "80.00"]]


def test_where_some_have_no_answer_the_value_of_the_others_stands_beside() -> None:
    some = result("infilling-1", "one", metrics={"rouge-l": score_of(40.0, value_answered=50.0), "bert-score": score_of(60.0)})
    (table,) = score_tables([some])
    assert table.columns[2:] == ("ROUGE-L", "ROUGE-L, answered alone", "BERTScore", "Samples")
    assert texts(table.rows)[0][2:] == ["40.00", "50.00", "60.00", "10"]


@pytest.mark.parametrize(("open_ones", "is_said"), [(1, False), (2, True)])
def test_references_that_leave_components_open_are_said(tmp_path: Path, open_ones: int, is_said: bool) -> None:
    samples = [sample(str(place), "dog", video=str(place), famous=True) for place in range(3)]
    for place in range(open_ones):
        assert samples[place].reference is not None
        famous = description("dog", True).famous
        assert famous is not None
        left_open = famous.model_copy(update={"mood": f"{NOT_DETERMINED.capitalize()}."})
        value = (description("dog", True).model_copy(update={"famous": left_open}),)
        samples[place] = samples[place].model_copy(update={"reference": samples[place].reference.model_copy(update={"values": (value,)})})
    predictions: list[Prediction] = [answer(one, "dog") for one in samples]
    scored = score(joined(tmp_path, samples, predictions), WordTask(), WordTask().metrics)
    notes = score_tables([scored.result])[0].notes
    said = [note for note in notes if note.startswith('Most references say "not determined" of mood, and')]
    assert bool(said) == is_said


def test_beside_a_value_stands_half_of_its_interval_which_need_not_be_in_its_middle() -> None:
    assert score_cell(score_of(50.0, low=40.0, high=52.0)).text == "50.00 ± 6.00"
    assert score_cell(score_of(0.0)).text == "0.00"
    assert score_cell(score_of(50.0, low=40.0)).text == "50.00"
    assert (score_cell(score_of(0.0)).number, score_cell(Score(value=None, value_answered=None, n=0, signature="s")).text) == (0.0, "–")


@pytest.mark.parametrize(
    ("p", "text"), [(None, "–"), (0.00009, "< 0.0001"), (0.0001, "0.0001"), (0.0005, "0.0005"), (0.05, "0.0500"), (0.0, "< 0.0001")]
)
def test_small_p_values_are_said_to_be_small(p: float | None, text: str) -> None:
    assert p_cell(p).text == text


def test_the_answered_alone_stand_beside_where_one_file_of_several_lacks_answers() -> None:
    some = result("infilling-1", "one", metrics={"rouge-l": score_of(40.0, value_answered=50.0)})
    (table,) = score_tables([some, result("infilling-1", "two", metrics={"rouge-l": score_of(45.0)})])
    assert table.columns[2:] == ("ROUGE-L", "ROUGE-L, answered alone", "Samples")
    assert [row[2:] for row in texts(table.rows)] == [["40.00", "50.00", "10"], ["45.00", "45.00", "10"]]


def difference(value: float, p: float, corrected: float, **more: object) -> Difference:
    ends = {"low": value - 1, "high": value + 1, "smallest_detectable": 2.5, **more}
    names = {"task": "infilling-1, dense", "metric": "rouge-l", "first": "one", "second": "two"}
    return Difference(**names, value=value, p_value=p, p_corrected=corrected, **ends)  # type: ignore[arg-type]


def test_differences_are_marked_after_holm_and_have_both_p_values() -> None:
    rows = [difference(-1.5, 0.03, 0.06), difference(2.0, 0.01, 0.02), difference(0.0, 0.5, 0.5, low=None, high=None, no_interval="why")]
    table = comparison_table(rows)
    assert texts(table.rows) == [
        ["two against one", "ROUGE-L (infilling-1, dense)", "-1.50", "-2.50 to -0.50", "0.0300", "0.0600", "2.50"],
        ["two against one", "ROUGE-L (infilling-1, dense)", "+2.00", "+1.00 to +3.00", "0.0100", "0.0200", "2.50"],
        ["two against one", "ROUGE-L (infilling-1, dense)", "+0.00", "–", "0.5000", "0.5000", "2.50"],
    ]
    assert [row[2].is_best for row in table.rows] == [False, True, False]
    assert table.notes[-1] == "why"


def test_a_group_is_a_row_with_its_own_number_of_samples() -> None:
    groups = {"domain": {"Games": score_of(10.0, n=3), "Sports": score_of(20.0, n=1200)}}
    one = result("infilling-1", "mine", metrics={"rouge-l": score_of(15.0, groups=groups), "plain": score_of(1.0)})
    (table,) = group_tables(one, label="mine", number=4)
    assert (table.title, table.columns) == ("mine: infilling-1, famous by domain (text only)", ("Domain", "ROUGE-L", "Samples"))
    assert texts(table.rows) == [["Games", "10.00", "3"], ["Sports", "20.00", "1,200"]]
    assert [row[1].link for row in table.rows] == ["#r4-1-1", "#r4-1-2"]
    assert numbered_groups(one) == {"domain": {"Games": 1, "Sports": 2}}


def test_a_group_that_a_metric_lacks_has_no_figure_in_its_column() -> None:
    groups = {"domain": {"Games": score_of(10.0, n=3)}}, {"domain": {"Sports": score_of(20.0, n=4)}}
    one = result("infilling-1", "mine", metrics={name: score_of(1.0, groups=some) for name, some in zip("ab", groups, strict=True)})
    (table,) = group_tables(one, label="mine")
    assert texts(table.rows) == [["Games", "10.00", "–", "3"], ["Sports", "–", "20.00", "4"]]


def test_files_that_have_hundreds_of_metrics_together_share_a_table_of_a_hundred() -> None:
    parts = {str(place): score_of(1.0) for place in range(30)}
    files = [
        result("infilling-1", str(file), metrics={f"{file}-{place}": score_of(1.0, parts=parts) for place in range(50)})
        for file in range(3)
    ]
    whole, *apart = score_tables(files)
    assert len(whole.columns) == 2 + 100 + 1
    assert whole.notes[-1] == "50 metrics more of these files not shown: score fewer files at a time."
    assert len(apart) == 100


def test_parts_of_many_files_that_do_not_fit_into_a_table_are_counted() -> None:
    files = [
        result("infilling-1", str(file), metrics={"f": score_of(1.0, parts={f"{file}-{place}": score_of(1.0) for place in range(30)})})
        for file in range(4)
    ]
    _, parts = score_tables(files)
    assert (len(parts.columns), parts.notes) == (2 + 100, ("20 parts more of these files not shown: score fewer files at a time.",))


def test_results_are_named_by_their_engine_and_where_that_is_not_enough_by_their_file() -> None:
    first, second = result("infilling-1", "one"), result("infilling-1", "two")
    assert result_labels([first, second]) == ["one", "two"]
    assert result_labels([first, result("infilling-2", "one")]) == ["one", "one"], "tables name the task"
    assert result_labels([first, second.model_copy(update={"engine": "one"})]) == ["one.jsonl", "two.jsonl"]
    assert result_labels([first, first]) == ["one.jsonl (1)", "one.jsonl (2)"]
    assert result_labels([first.model_copy(update={"engine": None})]) == ["one.jsonl"]


def test_what_was_left_out_or_has_no_answer_is_said_of_each_file() -> None:
    metrics = {"rouge-l": score_of(40.0, without_value=2, no_interval="Too few videos."), "x": score_of(1.0, notes=("Said once.",))}
    ids = ("a", "b", "c", "d")
    one = result("infilling-1", "one", left_out=3, unscored={"failed": 1, "refused": 1200}, unscored_ids=ids, metrics=metrics)
    notes = score_tables([one, result("infilling-1", "two", metrics={"x": metrics["x"]})])[0].notes
    assert notes[1:] == (
        "one: Too few videos.",
        "one: 1,201 samples without an answer (1 failed, 1,200 refused) counted as wrong, such as a, b, c.",
        "one, rouge-l: 2 answers without a value counted as wrong.",
        "one: 3 samples without a prediction left out; compare with no other score.",
        "Said once.",
    )


def test_a_judge_that_cannot_be_corrected_says_why() -> None:
    known = {"labelled": 1, "agreement": 1.0, "base_rate": 1.0, "kappa": None, "sensitivity": 1.0, "specificity": None}
    found = JudgeCalibration(**known, corrected=None, low=None, high=None, no_correction="People call no answer wrong.")  # type: ignore[arg-type]
    score = score_of(50.0).model_copy(update={"calibration": found, "without_value": 2})
    (table,) = score_tables([result("infilling-1", "one", metrics={"judge:x": score})])
    said = "one, judge:x: agrees with people on 100.0 % of 1 answer (κ not defined, base rate 100.0 %). People call no answer wrong."
    assert said in table.notes
    assert "one, judge:x: 2 answers without a value counted as wrong." in table.notes
