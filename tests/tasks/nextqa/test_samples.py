"""Samples of NExT-QA from any mix of files, and predictions that are refused with each kind of problem and its number."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.report.runs import make_run
from tests.tasks.nextqa.published import MC_ROWS, OE_COLUMNS, OE_ROWS, write_csv, write_json
from vip.config import SampleSettings
from vip.errors import InputError, UsageError
from vip.tasks.nextqa.files import Kind, Question, QuestionType
from vip.tasks.nextqa.samples import (
    check_predictions,
    count_are,
    first_reference,
    groups_of,
    open_source,
    published_id,
    read_samples,
    reject_variant,
    shuffled_order,
)
from vip.tasks.records import Choice, FreeText, Reference, Sample
from vip.tasks.task import SampleSource

RESULT = Path("result.json")


def source(*paths: Path, references: Path | None = None, video_index: Path | None = None, **settings: Any) -> SampleSource:
    return SampleSource(paths=tuple(map(str, paths)), settings=SampleSettings(**settings), references=references, video_index=video_index)


def open_ended(path: Path, *rows: tuple[Any, ...]) -> Path:
    return write_csv(path, rows or OE_ROWS, OE_COLUMNS)


def samples(*paths: Path, task: Kind = "nextqa-oe", **given: Any) -> list[Sample]:
    return list(read_samples(source(*paths, **given), task))


def asked(id_: str, *values: int | str) -> Sample:
    reference = Reference(values=values) if values else None
    return Sample(id=id_, task="nextqa-oe", task_version=1, video="v", ask=FreeText(question="why"), reference=reference)


# ---------------------------------------------------------------- files


def test_files_are_told_apart_by_what_they_are(tmp_path: Path) -> None:
    for name in ("videos.2", "videos.json"):
        (tmp_path / name).mkdir()
    questions, packed = open_ended(tmp_path / "a.csv"), tmp_path / "b.csv.gz"
    index, second = write_json(tmp_path / "index.json", {"v1": "1/v1"}), write_json(tmp_path / "second.json", {"v1": {"0": "hound"}})
    found = open_source(source(second, tmp_path / "videos.2", tmp_path / "videos.json", index, questions, packed))
    assert (found.annotations, found.references) == ((questions, packed), {"v1_0": "hound"})
    assert found.frames is not None
    assert (found.frames.folders, found.frames.places) == ((tmp_path / "videos.2", tmp_path / "videos.json"), {"v1": "1/v1"})


def test_without_a_folder_there_are_no_frames_and_without_references_none(tmp_path: Path) -> None:
    found = open_source(source(open_ended(tmp_path / "a.csv")))
    assert (found.frames, found.references) == (None, {})


def test_references_and_the_index_may_be_given_by_their_options(tmp_path: Path) -> None:
    second, index = write_json(tmp_path / "second.json", {"v1": {"0": "hound"}}), write_json(tmp_path / "index.json", {"v1": "1/v1"})
    (tmp_path / "videos").mkdir()
    found = open_source(source(open_ended(tmp_path / "a.csv"), tmp_path / "videos", references=second, video_index=index))
    assert found.references == {"v1_0": "hound"}
    assert found.frames is not None
    assert found.frames.places == {"v1": "1/v1"}


def test_second_references_of_several_files_are_put_together(tmp_path: Path) -> None:
    first = write_json(tmp_path / "1.json", {"v1": {"0": "hound", "1": "kitten"}})
    second = write_json(tmp_path / "2.json", {"v1": {"1": "tomcat"}, "v2": {"0": "puppy"}})
    assert open_source(source(open_ended(tmp_path / "a.csv"), first, second)).references == {
        "v1_0": "hound",
        "v1_1": "tomcat",
        "v2_0": "puppy",
    }


@pytest.mark.parametrize("given", [(), ("second.json",), ("second.json", "videos")])
def test_without_a_file_of_questions_the_user_is_told_which_to_give(given: tuple[str, ...], tmp_path: Path) -> None:
    write_json(tmp_path / "second.json", {"v1": {"0": "hound"}})
    (tmp_path / "videos").mkdir()
    with pytest.raises(InputError, match=r"There is no file of questions\. Give the val\.csv or test\.csv"):
        open_source(source(*(tmp_path / name for name in given)))


def test_second_references_with_an_id_twice_are_refused(tmp_path: Path) -> None:
    (tmp_path / "second.json").write_text('{"v1": {"0": "a", "0": "b", "1": "c", "1": "d"}}')
    with pytest.raises(InputError, match=r"second\.json has 2 ids more than once"):
        open_source(source(open_ended(tmp_path / "a.csv"), tmp_path / "second.json"))


# ---------------------------------------------------------------- samples


def test_the_second_reference_stands_behind_the_first_and_other_questions_have_one(tmp_path: Path) -> None:
    second = write_json(tmp_path / "second.json", {"v1": {"1": "kitten"}, "v2": {"0": ""}})
    found = samples(open_ended(tmp_path / "a.csv"), second)
    assert [sample.reference and sample.reference.values for sample in found] == [("dog",), ("cat", "kitten"), ("dog", "")]


def test_without_answers_there_is_the_second_reference_or_none(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", [("v1", "why", 0, "CW"), ("v1", "how", 1, "CH")], ("video", "question", "qid", "type"))
    found = samples(path, write_json(tmp_path / "second.json", {"v1": {"1": "so"}}))
    assert [sample.reference and sample.reference.values for sample in found] == [None, ("so",)]


def test_second_references_of_questions_that_are_not_there_are_counted_at_the_end(tmp_path: Path) -> None:
    second = write_json(tmp_path / "second.json", {"v1": {"0": "a", "9": "b"}, "v0": {"x" * 80: "c"}})
    reading = read_samples(source(open_ended(tmp_path / "a.csv"), second), "nextqa-oe")
    assert [next(reading).id for _ in OE_ROWS] == ["v1_0", "v1_1", "v2_0"]
    with pytest.raises(InputError) as raised:
        next(reading)
    assert str(raised.value) == (f"2 of 3 second references are of unknown questions, such as v0_{'x' * 57}. Give those of the same split.")


def test_two_questions_of_one_id_share_the_second_reference(tmp_path: Path) -> None:
    path = open_ended(tmp_path / "a.csv", OE_ROWS[0], (*OE_ROWS[0][:5], "cat", *OE_ROWS[0][6:]))
    found = samples(path, write_json(tmp_path / "second.json", {"v1": {"0": "hound"}}))
    assert [(sample.id, sample.reference and sample.reference.values) for sample in found] == [
        ("v1_0", ("dog", "hound")),
        ("v1_0/2", ("cat", "hound")),
    ]


def test_several_files_are_read_in_their_order_and_a_question_in_two_is_named_with_its_line(tmp_path: Path) -> None:
    first, second = open_ended(tmp_path / "b.csv", OE_ROWS[2]), open_ended(tmp_path / "a.csv", *OE_ROWS[:2])
    assert [sample.id for sample in samples(first, second)] == ["v2_0", "v1_0", "v1_1"]
    parts = [open_ended(tmp_path / f"{number}.csv", row) for number, row in enumerate(OE_ROWS[:2])]
    assert [sample.id for sample in samples(*parts)] == ["v1_0", "v1_1"], "of one video"
    both = open_ended(tmp_path / "c.csv", OE_ROWS[0], OE_ROWS[2])
    with pytest.raises(InputError) as raised:
        samples(first, both)
    assert str(raised.value) == f"{both}, line 3: the question v2_0 is in {first} too. Give one of these files."


def test_an_open_question_is_a_free_text_whatever_the_shuffle(tmp_path: Path) -> None:
    path = open_ended(tmp_path / "a.csv", OE_ROWS[0])
    plain, shuffled = samples(path), samples(path, shuffle=3)
    assert plain == shuffled
    (sample,) = plain
    assert (sample.task, sample.task_version, sample.ask) == ("nextqa-oe", 1, FreeText(question="why did the dog run"))
    assert (sample.video, sample.context, sample.frames_chosen) == ("v1", (), None)
    assert sample.groups == {"type": ("CW", "C")}


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_options_are_shown_in_the_drawn_order_and_the_answer_is_its_new_place(seed: int, tmp_path: Path) -> None:
    found = samples(write_csv(tmp_path / "a.csv", MC_ROWS), task="nextqa-mc", shuffle=seed)
    assert {sample.task for sample in found} == {f"nextqa-mc-shuffled-{seed}"}
    for sample, row in zip(found, MC_ROWS, strict=True):
        order = shuffled_order(sample.id, 5, seed)
        assert isinstance(sample.ask, Choice)
        assert sample.ask.options == tuple(row[8 + place] for place in order)
        assert sample.reference is not None
        assert sample.ask.options[int(str(sample.reference.values[0]))] == row[8 + int(str(row[5]))]


def test_options_without_an_answer_are_shuffled_too(tmp_path: Path) -> None:
    columns = ("video", "question", "qid", "type", "a0", "a1", "a2", "a3", "a4")
    path = write_csv(tmp_path / "a.csv", [("v1", "why", 0, "CW", "a", "b", "c", "d", "e")], columns)
    (plain,), (shuffled,) = samples(path, task="nextqa-mc"), samples(path, task="nextqa-mc", shuffle=1)
    assert plain.reference is shuffled.reference is None
    assert (plain.task, shuffled.task) == ("nextqa-mc", "nextqa-mc-shuffled-1")
    assert isinstance(plain.ask, Choice)
    assert plain.ask.options == ("a", "b", "c", "d", "e")


def test_an_order_is_of_one_question_and_one_seed_and_the_same_on_every_machine() -> None:
    assert shuffled_order("v1_0", 5, 1) == [4, 0, 3, 1, 2], "as results that were written before"
    assert shuffled_order("v1_0", 5, 2) == [0, 4, 3, 1, 2]
    assert len({tuple(shuffled_order(f"v{number}_0", 5, 1)) for number in range(200)}) > 60
    assert shuffled_order("v1_0", 1, 1) == [0]
    assert all(sorted(shuffled_order("x", options, 9)) == list(range(options)) for options in range(6))


def test_a_video_that_is_given_is_shown_with_who_chose_its_frames(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs" / "v1", rules=("kept",) * 2)
    (sample,) = samples(open_ended(tmp_path / "a.csv", OE_ROWS[0]), tmp_path / "runs")
    assert len(sample.context) == len(run.keyframes) == 2
    assert sample.frames_chosen
    with pytest.raises(
        InputError, match=r"no video v2 in .*runs\. Give the folder, and VidOR's map of paths where it keeps VidOR's folders\."
    ):
        samples(open_ended(tmp_path / "b.csv", OE_ROWS[2]), tmp_path / "runs")


@pytest.mark.parametrize(
    ("kind", "groups"),
    [
        ("CW", ("CW", "C")),
        ("CH", ("CH", "C")),
        ("TN", ("TPN", "T")),
        ("TP", ("TPN", "T")),
        ("TC", ("TC", "T")),
        ("DO", ("DO", "D")),
        ("DB", ("DB", "D")),
    ],
)
def test_a_question_is_in_a_column_and_in_its_group(kind: QuestionType, groups: tuple[str, str]) -> None:
    assert groups_of(Question("v1", "0", kind, "why", None, (), None, 2)) == groups


# ---------------------------------------------------------------- predictions


def refused(predicted: Mapping[str, object], *some: Sample, doubled: int = 0, problems: tuple[str, ...] = ()) -> str:
    with pytest.raises(InputError) as raised:
        check_predictions(RESULT, predicted, some, doubled=doubled, problems=problems)
    return str(raised.value)


END = "Give one prediction for each question of one split."


@pytest.mark.parametrize("predicted", [{}, {"v1_0": "x"}, {"v1_0": "x", "v1_1": "y"}])
def test_samples_without_a_prediction_alone_are_no_problem(predicted: dict[str, object]) -> None:
    check_predictions(RESULT, predicted, [asked("v1_0"), asked("v1_0/2"), asked("v1_1")], doubled=0)


def test_predictions_of_no_sample_at_all_are_of_another_split() -> None:
    predicted = dict.fromkeys((f"w{number}_0" for number in range(1200)), "x")
    assert refused(predicted, asked("v1_0"), asked("v1_0/2"), asked("v1_1"), doubled=3) == (
        "result.json holds 1,200 predictions, and not one is of these 2 questions: it is of another split."
        " Give the questions of that split."
    )


def test_some_predictions_of_unknown_questions_are_counted_and_the_first_is_named() -> None:
    assert refused({"v1_0": "x", "w" * 80: "y"}, asked("v1_0")) == (
        f"result.json: 1 prediction is of unknown questions, such as {'w' * 60}. {END}"
    )
    assert refused({"v1_0": "x", "w2": "y", "w1": "z"}, asked("v1_0")) == (
        f"result.json: 2 predictions are of unknown questions, such as w1. {END}"
    )


def test_all_problems_are_told_together_and_then_what_has_no_prediction() -> None:
    told = refused({"v1_0": "x", "w": "y"}, *(asked(f"v1_{number}") for number in (2, 0, 1)), doubled=1, problems=("One is odd", "Two are"))
    assert told == (
        "result.json: 1 prediction is of unknown questions, such as w; 1 id is there more than once; One is odd; Two are;"
        f" 2 of 3 questions have no prediction, such as v1_1. {END}"
    )


@pytest.mark.parametrize(("doubled", "problems", "told"), [(2, (), "2 ids are there more than once"), (0, ("One is odd",), "One is odd")])
def test_one_problem_is_enough(doubled: int, problems: tuple[str, ...], told: str) -> None:
    assert refused({"v1_0": "x"}, asked("v1_0"), doubled=doubled, problems=problems) == f"result.json: {told}. {END}"
    assert refused({}, asked("v1_0"), doubled=doubled, problems=problems) == (
        f"result.json: {told}; 1 of 1 questions have no prediction, such as v1_0. {END}"
    )


@pytest.mark.parametrize(("count", "told"), [(0, "0 ids are"), (1, "1 id is"), (2, "2 ids are"), (1200, "1,200 ids are")])
def test_a_count_and_its_verb_agree(count: int, told: str) -> None:
    assert count_are(count, "id") == told


@pytest.mark.parametrize(("id_", "published"), [("v1_0", "v1_0"), ("v1_0/2", "v1_0"), ("v1_0/2/3", "v1_0")])
def test_the_published_id_is_what_stands_before_the_number(id_: str, published: str) -> None:
    assert published_id(asked(id_)) == published


@pytest.mark.parametrize(("values", "first"), [((0, "x"), 0), (("dog", "hound"), "dog"), (("",), "")])
def test_the_right_answer_is_the_first(values: tuple[int | str, ...], first: int | str) -> None:
    assert first_reference(asked("v1_0", *values)) == first


def test_a_question_whose_answer_is_hidden_cannot_be_scored() -> None:
    with pytest.raises(InputError, match=r"The question v1_7 has no answer in its file"):
        first_reference(asked("v1_7"))


def test_the_first_prompt_is_the_only_one() -> None:
    reject_variant(1)
    for variant in (0, 2, -1):
        with pytest.raises(UsageError, match=f"NExT-QA has one prompt, not {variant}"):
            reject_variant(variant)
