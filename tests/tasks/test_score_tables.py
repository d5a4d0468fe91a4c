"""Tables of scores: a row a file, a column a metric, and the parts of a metric apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tasks.scoring import WordTask, answer, description, joined, result, sample, score_of
from vip.records import NOT_DETERMINED
from vip.tasks.records import Prediction
from vip.tasks.score import score
from vip.tasks.score_tables import score_tables


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
