"""nextqa-mc: the published accuracies come out, letters are read strictly, and predictions of something else are refused."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.metrics.golden import golden
from tests.tasks.nextqa.published import MC_COLUMNS, MC_ROWS, read, write_csv, write_json
from vip.errors import InputError, UsageError
from vip.tasks.nextqa.mc import NextqaMultiChoice
from vip.tasks.records import Choice, Prediction, Reference, Sample
from vip.tasks.task import Task

TASK: Task = NextqaMultiChoice()


@pytest.fixture
def samples(tmp_path: Path) -> list[Sample]:
    return read(TASK, write_csv(tmp_path / "val.csv", MC_ROWS))


def accuracies(samples: list[Sample], predictions: list[Prediction]) -> dict[str, float]:
    """Accuracy × 100 in every group, and over all."""
    result = TASK.metrics[0].score(list(zip(samples, predictions, strict=True)))
    groups = defaultdict(list)
    for sample, value in zip(samples, result.per_sample_or_zero, strict=True):
        for name in (*sample.groups["type"], "all"):
            groups[name].append(value)
    assert result.value == sum(groups["all"]) / len(groups["all"])
    return {name: 100 * sum(values) / len(values) for name, values in groups.items()}


@pytest.mark.slow
def test_the_published_accuracies_of_hga_come_out_in_all_groups() -> None:
    samples = read(TASK, golden("nextqa/mc_val.csv"))
    predictions = list(TASK.read_predictions(golden("nextqa/mc_val_hga.json"), samples))
    published = {"C": 46.26, "T": 50.74, "D": 59.33, "all": 49.74, "CW": 46.99, "CH": 44.22, "TPN": 49.53, "TC": 52.49}
    published |= {"DC": 44.07, "DL": 72.54, "DO": 55.41}
    assert accuracies(samples, predictions) == pytest.approx(published, abs=0.005)


def test_questions_become_samples_with_their_groups(samples: list[Sample]) -> None:
    assert [sample.id for sample in samples] == ["v1_0", "v1_1", "v2_0", "v2_3"]
    assert [sample.groups["type"] for sample in samples] == [("CW", "C"), ("TPN", "T"), ("TPN", "T"), ("DL", "D")]
    assert (samples[0].task, samples[0].video, samples[0].reference) == ("nextqa-mc", "v1", Reference(values=(1,)))
    assert samples[0].ask == Choice(question="why did the dog run", options=MC_ROWS[0][8:])


def test_the_request_shows_options_in_file_order_and_no_answer(samples: list[Sample]) -> None:
    request = TASK.request(samples[0], None)
    assert "Question: why did the dog run\n" in request.text
    assert "A. to sleep\nB. to get the ball\nC. hungry\nD. to the cat\nE. walk\n" in request.text
    assert "You see nothing of the video" in request.text
    assert request.text == TASK.request(samples[0].model_copy(update={"reference": None}), None).text
    with pytest.raises(UsageError, match="NExT-QA has one prompt, not 2"):
        TASK.request(samples[0], None, variant=2)


@pytest.mark.parametrize(
    ("answer", "index"),
    [
        ("B", 1),
        (" b \n", 1),
        ("B.", 1),
        ("(B)", 1),
        ("[B]", 1),
        ("Answer: B", 1),
        ("The answer is B.", None),  # only what is asked for, or nearly
        ("answer is B", 1),
        ("B. to get the ball", 1),
        ("B) To get the ball.", 1),
        ("B: to get the ball", 1),
        ("Option E", 4),
    ],
)
def test_a_letter_alone_or_before_its_own_option_is_read(samples: list[Sample], answer: str, index: int | None) -> None:
    prediction = TASK.parse(samples[0], answer)
    assert (prediction.value, prediction.raw) == (index, answer)
    assert prediction.status == ("unparsed" if index is None else "ok")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "no letter alone"),
        ("to get the ball", "no letter alone"),
        ("A or B", "several letters: A, B"),
        ("A, B", "the words behind A are not those of its option"),
        ("F", "F is the letter of no option"),
        ("B. to sleep", "the words behind B are not those of its option"),
        ("B. the ball", "the words behind B are not those of its option"),
        ("B. to get the ball and walk", "the words behind B are not those of its option"),
        ("A. B.", "the words behind A are not those of its option"),
        ("E. A", "the words behind E are not those of its option"),
        ("I. eat", "I is the letter of no option"),
        ("I think that it is B", "no letter alone"),
        ("A dog runs to get the ball", "no letter alone"),
        ("I cannot answer this question.", "no letter alone"),
        ("1", "no letter alone"),
        ("BB", "no letter alone"),
    ],
)
def test_anything_else_is_unparsed_with_the_reason_and_never_guessed(samples: list[Sample], answer: str, reason: str) -> None:
    prediction = TASK.parse(samples[0], answer)
    assert (prediction.value, prediction.status, prediction.reason) == (None, "unparsed", reason)


def test_an_answer_that_is_not_there_counts_as_wrong_and_apart(samples: list[Sample]) -> None:
    predictions = [TASK.parse(sample, "B") for sample in samples[:2]] + [TASK.parse(samples[2], "?")]
    result = TASK.metrics[0].score(list(zip(samples[:3], predictions, strict=True)))
    assert (result.value, result.value_answered, result.unscored) == (1 / 3, 1 / 2, {"unparsed": 1})


def test_shuffled_options_are_another_order_with_the_right_answer_moved_along(tmp_path: Path, samples: list[Sample]) -> None:
    path = write_csv(tmp_path / "v.csv", MC_ROWS)
    orders = [read(TASK, path, shuffle=seed) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert {sample.task for sample in orders[0]} == {"nextqa-mc-shuffled-1"}
    places = [
        tuple(before.ask.options.index(text) for text in after.ask.options)  # type: ignore[union-attr]
        for before, after in zip(samples, orders[0], strict=True)
    ]
    assert len(set(places)) > 1, "each question has an order of its own"
    assert {sample.task for sample in read(TASK, path, shuffle=0)} == {"nextqa-mc-shuffled-0"}
    for before, after in zip(samples, orders[0], strict=True):
        asks, references = [before.ask, after.ask], [before.reference, after.reference]
        right = [ask.options[int(str(reference.values[0]))] for ask, reference in zip(asks, references, strict=True)]  # type: ignore[union-attr]
        assert right[0] == right[1]
        assert sorted(asks[0].options) == sorted(asks[1].options)  # type: ignore[union-attr]


@pytest.mark.slow
def test_right_answers_are_at_each_place_as_often_when_options_are_shuffled(tmp_path: Path) -> None:
    rows = [(f"v{number}", 1, 1, 1, "q", 0, 0, "CW", "a", "b", "c", "d", "e") for number in range(2000)]
    shuffled = read(TASK, write_csv(tmp_path / "v.csv", rows), shuffle=3)
    counts = [sum(sample.reference == Reference(values=(place,)) for sample in shuffled) for place in range(5)]
    assert sum((count - 400) ** 2 / 400 for count in counts) < 18.5  # chi-squared, four degrees of freedom, p = 0.001


GOOD = {
    "v1_0": {"prediction": 1, "answer": 1},
    "v1_1": {"prediction": 0, "answer": 4},
    "v2_0": {"prediction": 0},
    "v2_3": {"prediction": 2},
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"v9_0": {"prediction": 1}}, "1 prediction is of unknown questions, such as v9_0"),
        ({"v1_0": {"prediction": 5}, "v2_0": {"prediction": -1}}, "2 predictions are no index of an option, such as that of v1_0"),
        ({"v1_0": {"prediction": 1, "answer": 3}}, "the right answers of 1 question are others there, such as of v1_0: another split"),
        (
            {"v1_0": None, "v1_1": None, "v9_0": {"prediction": 9}, "v2_0": {"prediction": 9}},
            r"1 prediction is of unknown questions, .*; 1 prediction is no index .*; 2 of 4 questions have no prediction, such as v1_0",
        ),
    ],
)
def test_predictions_that_do_not_fit_are_refused_with_each_kind_and_its_number(
    tmp_path: Path, samples: list[Sample], change: dict[str, Any], message: str
) -> None:
    rows = {key: row for key, row in (GOOD | change).items() if row is not None}
    with pytest.raises(InputError, match=message):
        list(TASK.read_predictions(write_json(tmp_path / "r.json", rows), samples))


def test_questions_without_a_prediction_are_left_to_the_join(tmp_path: Path, samples: list[Sample]) -> None:
    rows = {key: row for key, row in GOOD.items() if key != "v1_1"}
    found = TASK.read_predictions(write_json(tmp_path / "r.json", rows), samples)
    assert [prediction.sample_id for prediction in found] == ["v1_0", "v2_0", "v2_3"]


def test_doubled_ids_and_another_split_are_refused(tmp_path: Path, samples: list[Sample]) -> None:
    path = write_json(tmp_path / "r.json", GOOD)
    assert [prediction.value for prediction in TASK.read_predictions(path, samples)] == [1, 0, 0, 2]
    path.write_text(path.read_text()[:-1] + ', "v1_0": {"prediction": 1}}')
    with pytest.raises(InputError, match="1 id is there more than once"):
        list(TASK.read_predictions(path, samples))
    write_json(path, {"w1_0": {"prediction": 1}, "w1_1": {"prediction": 1}})
    with pytest.raises(InputError, match="holds 2 predictions, and not one is of these 4 questions: it is of another split"):
        list(TASK.read_predictions(path, samples))


def test_questions_without_answers_can_be_asked_but_not_scored(tmp_path: Path) -> None:
    index = MC_COLUMNS.index("answer")
    rows, columns = [(*row[:index], *row[index + 1 :]) for row in MC_ROWS], (*MC_COLUMNS[:index], *MC_COLUMNS[index + 1 :])
    samples = read(TASK, write_csv(tmp_path / "q.csv", rows, columns))
    assert samples[0].reference is None
    assert TASK.request(samples[0], None).text
    with pytest.raises(InputError, match="The question v1_0 has no answer in its file"):
        TASK.metrics[0].score([(samples[0], TASK.parse(samples[0], "A"))])


def test_samples_need_a_file_of_questions_and_each_question_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no file of questions"):
        read(TASK, tmp_path)
    paths = [write_csv(tmp_path / name, MC_ROWS) for name in ("a.csv", "b.csv")]
    with pytest.raises(InputError, match=r"b\.csv, line 2: the question v1_0 is in .*a\.csv too"):
        read(TASK, *paths)


def test_letters_are_counted_where_options_were_shuffled(tmp_path: Path, samples: list[Sample]) -> None:
    task = NextqaMultiChoice()
    shuffled = read(TASK, write_csv(tmp_path / "v.csv", MC_ROWS), shuffle=1)
    pairs = [(sample, Prediction(sample_id=sample.id, value=0)) for sample in shuffled]
    (table,) = task.answer_tables(pairs, "mine")
    assert (table.title, [cell.text for cell in table.rows[0]][:2]) == ("mine: letters", ["A", "4"])
    assert task.answer_tables([(sample, Prediction(sample_id=sample.id, value=0)) for sample in samples], "mine") == []
    assert task.answer_tables([], "mine") == []


def test_an_answer_that_is_no_index_is_refused(samples: list[Sample]) -> None:
    for value in ("B", ("B",)):
        with pytest.raises(InputError, match="The answer to v1_0 is no index of an option"):
            TASK.metrics[0].score([(samples[0], Prediction(sample_id="v1_0", value=value))])


def test_option_0_is_an_answer_as_any_other(samples: list[Sample]) -> None:
    first = samples[2]  # whose right option is the first
    assert TASK.parse(first, "A").value == 0
    result = TASK.metrics[0].score([(first, Prediction(sample_id=first.id, value=0)), (samples[0], Prediction(sample_id="v1_0", value=0))])
    assert (result.per_sample, result.n) == ((1.0, 0.0), 2)
