"""Results of HITs, row by row: what counts, what is left out for which reason, and which of two rows wins."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.tasks.fiber.made import record
from tests.tasks.fiber.worked import assignment, task_answers, write_results
from vip.errors import InputError
from vip.tasks.fiber.records import FiberRecord
from vip.tasks.fiber.results import (
    COMMENT,
    NEEDED,
    HitResults,
    LeftOut,
    describe_left_out,
    is_unavailable,
    parse_fields,
    read_results,
)

TWO = [record("a dog", "x"), record("the man", "y")]
FOUR = [*TWO, record("a cat", "z"), record("a cow", "w")]
REJECTED = {"RejectionTime": "Mon Jan 04 10:00:00 PST 2021"}
ASKED = {"Input.question1": "A _____.", "Input.label1": "dog", "Input.video1_id": "v"}
TIMES = {"Input.video1_start_time": "5", "Input.video1_end_time": "15"}


def read(folder: Path, *files: Sequence[Mapping[str, Any]]) -> HitResults:
    """Read files of these assignments, named 1.csv, 2.csv, …; two HITs of two blanks."""
    return read_results([write_results(folder / f"{number}.csv", FOUR, rows) for number, rows in enumerate(files, 1)])


def read_row(folder: Path, **cells: str) -> HitResults:
    """Read one row with these columns besides the needed ones."""
    row = {"HITId": "H", "AssignmentId": "A", "WorkerId": "W", "Answer.taskAnswers": task_answers({1: ["dog"]}), **ASKED, **TIMES, **cells}
    path = folder / "one.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(row))
        writer.writeheader()
        writer.writerow(row)
    return read_results([path])


def answers_of(results: HitResults) -> dict[str, dict[int, tuple[str, ...]]]:
    return {name: dict(one.answers) for name, one in results.assignments.items()}


def left_out(results: HitResults) -> list[tuple[str, str]]:
    return [(row.assignment, row.reason) for row in results.left_out]


# ---------------------------------------------------------------- which row counts


def test_the_same_row_in_two_exports_counts_once_and_as_it_came_first(tmp_path: Path) -> None:
    results = read(
        tmp_path, [assignment("W", {1: ["dog"]})], [assignment("V", {1: ["cat"]}), assignment("W", {1: ["dog"]}, ApprovalTime="now")]
    )
    assert [(one.worker, one.file, one.row, one.is_approved) for one in results.assignments.values()] == [
        ("W", "1.csv", 1, True),
        ("V", "2.csv", 1, False),
    ]
    assert [(row.file, row.row, row.reason, row.question) for row in results.left_out] == [
        ("2.csv", 2, "the assignment is there already", None)
    ]


@pytest.mark.parametrize("other", [{"Answer.taskAnswers": task_answers({1: ["cat"]})}, {"WorkerId": "V"}, {"hit": 1}])
def test_an_assignment_with_other_answers_worker_or_hit_than_before_is_left_out_and_the_first_stays(
    other: dict[str, Any], tmp_path: Path
) -> None:
    results = read(tmp_path, [assignment("W", {1: ["dog"]}), {**assignment("W", {1: ["dog"]}, ApprovalTime="now"), **other}])
    (kept,) = results.assignments.values()
    assert (kept.worker, kept.hit, kept.answers, kept.is_approved) == ("W", "H0", {1: ("dog",)}, False)
    assert left_out(results) == [("A-W-0", "the assignment is there already, with other answers")]


def test_a_worker_answers_each_hit_once_and_several_hits(tmp_path: Path) -> None:
    again = {**assignment("W", {1: ["cat"]}), "AssignmentId": "A-again"}
    rows = [assignment("W", {1: ["dog"]}), again, assignment("W", {1: ["cow"]}, hit=1), assignment("V", {1: ["hen"]}), again]
    results = read(tmp_path, rows)
    assert answers_of(results) == {"A-W-0": {1: ("dog",)}, "A-W-1": {1: ("cow",)}, "A-V-0": {1: ("hen",)}}
    assert left_out(results) == [("A-again", "the worker answered this HIT already")] * 2
    assert results.taken == {("H0", "W"): "A-W-0", ("H1", "W"): "A-W-1", ("H0", "V"): "A-V-0"}


@pytest.mark.parametrize("how", [REJECTED, {"AssignmentStatus": "Rejected"}])
def test_what_was_rejected_is_out_whole_and_takes_nothing_of_others_with_it(how: dict[str, str], tmp_path: Path) -> None:
    rows = [assignment("W", {1: ["dog"]}), assignment("V", {1: ["cat"]}), assignment("W", {1: ["cow"]}, hit=1)]
    results = read(tmp_path, rows, [assignment("W", {1: ["dog"]}, **how)])
    assert answers_of(results) == {"A-V-0": {1: ("cat",)}, "A-W-1": {1: ("cow",)}}
    assert results.rejected_workers == {"W"}
    (row,) = results.left_out
    assert (row.reason, row.worker, row.text) == ("rejected on Mechanical Turk", "W", task_answers({1: ["dog"]}))


def test_a_rejected_second_answer_leaves_the_hit_to_the_first(tmp_path: Path) -> None:
    first, second, third = (
        {**assignment("W", {1: [word]}), "AssignmentId": name} for name, word in (("A1", "dog"), ("A2", "cat"), ("A3", "cow"))
    )
    results = read(tmp_path, [first, {**second, **REJECTED}, third])
    assert answers_of(results) == {"A1": {1: ("dog",)}}
    assert left_out(results)[1:] == [("A3", "the worker answered this HIT already")]


def test_a_rejection_that_was_taken_back_is_approved(tmp_path: Path) -> None:
    results = read(tmp_path, [assignment("W", {1: ["dog"]}, AssignmentStatus="Approved", **REJECTED)])
    assert results.assignments["A-W-0"].is_approved
    assert (results.rejected_workers, results.left_out) == (set(), [])


@pytest.mark.parametrize("status", ["Approved", "Submitted", "", "rejected?"])
def test_another_status_rejects_nothing(status: str, tmp_path: Path) -> None:
    results = read(tmp_path, [assignment("W", {1: ["dog"]}, AssignmentStatus=status)])
    assert list(results.assignments) == ["A-W-0"]
    assert results.rejected_workers == set()


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"HITId": "", "AssignmentId": "", "WorkerId": ""}, "no HITId"),
        ({"AssignmentId": " ", "WorkerId": ""}, "no AssignmentId"),
        ({"WorkerId": "\t"}, "no WorkerId"),
        ({"WorkerId": "", **REJECTED}, "no WorkerId"),
    ],
)
def test_a_row_that_lacks_who_or_what_it_is_of_is_kept_whole(cells: dict[str, str], reason: str, tmp_path: Path) -> None:
    results = read(tmp_path, [{**assignment("W", {1: ["dog"]}), **cells}])
    (row,) = results.left_out
    assert (row.reason, row.text, row.question, row.row) == (reason, task_answers({1: ["dog"]}), None, 1)
    assert not results.assignments
    assert not results.rejected_workers
    assert not results.questions


def test_a_row_that_cannot_be_read_says_nothing_about_the_next_one_of_its_hit(tmp_path: Path) -> None:
    results = read(tmp_path, [assignment("W", "no JSON"), {**assignment("W", {1: ["dog"]}), "AssignmentId": "A-new"}])
    assert answers_of(results) == {"A-new": {1: ("dog",)}}
    assert left_out(results) == [("A-W-0", "the answers are no JSON")]


def test_an_assignment_that_is_taken_out_later_leaves_its_answers_with_the_reason(tmp_path: Path) -> None:
    results = read(tmp_path, [assignment("W", {1: ["dog", "wolf"], 2: ["man"]}), assignment("V", {1: ["cat"]})])
    results.leave_out(results.assignments["A-W-0"], "the worker is disqualified")
    assert list(results.assignments) == ["A-V-0"]
    assert results.taken == {("H0", "W"): "A-W-0", ("H0", "V"): "A-V-0"}, "the worker has answered it all the same"
    about = {"file": "1.csv", "row": 1, "assignment": "A-W-0", "worker": "W", "reason": "the worker is disqualified"}
    assert results.left_out == [LeftOut(**about, question=question, text=text) for question, text in ((1, "dog"), (1, "wolf"), (2, "man"))]
    assert results.reasons() == {"the worker is disqualified": 3}


# ---------------------------------------------------------------- files


HEAD = [*NEEDED, *TIMES, "Input.label1"]


def sheet(path: Path, *rows: Sequence[str], head: Sequence[str] = HEAD, start: bytes = b"") -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *rows])
    path.write_bytes(start + path.read_bytes())
    return path


def row_of(worker: str, *more: str) -> list[str]:
    return ["H", f"A-{worker}", worker, '{"answer-1-0": "dog"}', "A _____.", "v", "5", "15", "dog", *more]


def test_rows_are_numbered_as_they_stand_and_empty_ones_are_no_assignment(tmp_path: Path) -> None:
    path = sheet(
        tmp_path / "r.csv", row_of("W"), [], ["", "", ""], row_of("V", "a cell", "too many"), row_of("U")[:2], start=b"\xef\xbb\xbf"
    )
    results = read_results([path])
    assert [(one.id, one.row) for one in results.assignments.values()] == [("A-W", 1), ("A-V", 4)]
    assert [(row.assignment, row.row, row.reason, row.text) for row in results.left_out] == [("A-U", 5, "no WorkerId", "")]


@pytest.mark.parametrize("needed", NEEDED)
def test_each_needed_column_is_missed(needed: str, tmp_path: Path) -> None:
    head = [name if name != needed else "other" for name in HEAD]
    with pytest.raises(InputError, match=rf"r\.csv has no column {needed}\. Give the results"):
        read_results([sheet(tmp_path / "r.csv", row_of("W"), head=head)])


def test_a_file_without_rows_is_no_error_beside_one_that_has_some(tmp_path: Path) -> None:
    empty, full = sheet(tmp_path / "empty.csv"), sheet(tmp_path / "full.csv", row_of("W"))
    assert list(read_results([empty, full]).assignments) == ["A-W"]
    with pytest.raises(InputError, match=r"empty\.csv, .*empty\.csv: there is no assignment"):
        read_results([empty, empty])
    with pytest.raises(InputError, match="there is no assignment"):
        read_results([sheet(tmp_path / "blank.csv", [], ["", ""])])


def test_a_cell_that_no_csv_may_have_is_named_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.untrusted.MOST_CELL_LETTERS", 50)
    before = csv.field_size_limit()
    with pytest.raises(InputError, match=r"r\.csv, line 3: it is no CSV \(field larger"):
        read_results([sheet(tmp_path / "r.csv", row_of("W"), row_of("V" * 60))])
    assert csv.field_size_limit() == before


# ---------------------------------------------------------------- what the page sent


@pytest.mark.parametrize(
    ("cell", "fields"),
    [
        ('{"a": "x"}', {"a": "x"}),
        ('[{"a": "x"}]', {"a": "x"}),
        ('[{"a": "x", "b": 1}, {"c": "z", "a": "y"}]', {"a": "y", "b": 1, "c": "z"}),
        ("[{}]", {}),
        ("{}", {}),
    ],
)
def test_fields_are_those_of_one_object_or_of_several(cell: str, fields: dict[str, object]) -> None:
    assert parse_fields(cell) == fields


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        *[(cell, "no JSON object") for cell in ("[]", "1", "null", '"x"', '[{"a": 1}, 2]', '[["a"]]')],
        *[(cell, "no JSON$") for cell in ("", "{", '{"a": NaN}', "{'a': 1}")],
    ],
)
def test_another_form_is_refused(cell: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_fields(cell)


def test_answers_stand_by_their_number_with_the_box_last_and_questions_by_theirs(tmp_path: Path) -> None:
    fields = {"answer-input-2": "box", "answer-2-11": "k", "answer-2-9": "i", "answer-1-0": "first", "answer-2-10": "j"}
    assert answers_of(read(tmp_path, [assignment("W", json.dumps([fields]))])) == {"A-W-0": {1: ("first",), 2: ("i", "j", "k", "box")}}


@pytest.mark.parametrize(
    "name",
    ["answer-1", "answer-1-", "answer--1", "xanswer-1-0", "answer-1-0x", "answer-input-1-0", "answer-12345-0", "answer-1-1234567", "agree"],
)
def test_a_field_of_another_name_is_no_answer(name: str, tmp_path: Path) -> None:
    results = read(tmp_path, [assignment("W", json.dumps({name: "dog"}))])
    assert answers_of(results) == {"A-W-0": {}}
    assert left_out(results) == []


@pytest.mark.parametrize(
    ("field", "value", "question", "reason", "text"),
    [
        ("answer-3-0", "dog", 3, "an answer to no question", "dog"),
        ("answer-input-3", "dog", 3, "an answer to no question", "dog"),
        ("answer-0-0", "dog", 0, "an answer to no question", "dog"),
        ("answer-2-0", 7, 2, "no text", "7"),
        ("answer-2-0", ["dog"], 2, "no text", "['dog']"),
        ("answer-2-0", "x" * 501, 2, "more than 500 letters", "x" * 501),
        ("answer-2-0", "a  -- the!", 2, "no word", "a -- the!"),
        ("comments", "Nice <b>task</b>.", None, COMMENT, "Nice <b>task</b>."),
        ("answer-1-1", "The  DOG!", 1, "the worker's answer is there already", "The DOG!"),
    ],
)
def test_an_answer_that_is_none_is_kept_with_its_question_and_the_others_count(
    field: str, value: object, question: int | None, reason: str, text: str, tmp_path: Path
) -> None:
    results = read(tmp_path, [assignment("W", json.dumps({"answer-1-0": "dog", field: value}))])
    assert [(row.question, row.reason, row.text, row.assignment, row.row) for row in results.left_out] == [
        (question, reason, text, "A-W-0", 1)
    ]
    assert {number: texts for number, texts in answers_of(results)["A-W-0"].items() if texts} == {1: ("dog",)}


def test_two_answers_are_the_same_whatever_their_articles_case_and_marks_and_the_first_stays_as_it_was_typed(tmp_path: Path) -> None:
    results = read(tmp_path, [assignment("W", {1: ["The DOG!", "a dog", "dog", "wolf"]})])
    assert answers_of(results) == {"A-W-0": {1: ("The DOG!", "wolf")}}
    assert [row.text for row in results.left_out] == ["a dog", "dog"]


@pytest.mark.parametrize("field", ["answer-1-1", "answer-9-0", "answer-input-1", "comments"])
@pytest.mark.parametrize("value", ["", " \n "])
def test_an_empty_field_is_nothing(field: str, value: str, tmp_path: Path) -> None:
    results = read(tmp_path, [assignment("W", json.dumps({"answer-1-0": "dog", field: value}))])
    assert answers_of(results) == {"A-W-0": {1: ("dog",)}}
    assert results.left_out == []


@pytest.mark.parametrize(("letters", "counts"), [(500, True), (501, False)])
def test_an_answer_has_as_many_letters_as_the_page_lets_one_type(letters: int, counts: bool, tmp_path: Path) -> None:
    results = read(tmp_path, [assignment("W", {1: ["x" * letters]})])
    assert answers_of(results) == {"A-W-0": {1: ("x" * letters,)} if counts else {}}


def test_the_same_words_may_answer_two_questions_and_come_from_two_workers(tmp_path: Path) -> None:
    rows = [assignment("W", {1: ["dog"], 2: ["dog"]}), assignment("V", {1: ["dog"]})]
    assert answers_of(read(tmp_path, rows)) == {"A-W-0": {1: ("dog",), 2: ("dog",)}, "A-V-0": {1: ("dog",)}}


# ---------------------------------------------------------------- what was asked


def test_a_question_is_read_back_as_it_was_masked(tmp_path: Path) -> None:
    cells = {"Input.question1": "He &lt;b&gt; sees _____.", "Input.label1": "'=dog", "Input.video1_id": "a&amp;b"}
    times = {"Input.video1_start_time": "5.6", "Input.video1_end_time": "14.4"}
    assert read_row(tmp_path, **cells, **times).questions == {
        "H": {
            1: FiberRecord(
                video_id="a&b",
                video_start_time=6,
                video_end_time=14,
                caption="He <b> sees =dog.",
                masked_caption="He <b> sees _____.",
                label="=dog",
            )
        }
    }


def test_a_question_that_was_left_empty_takes_no_number_away(tmp_path: Path) -> None:
    more = {f"Input.{name}": cell for name, cell in (("video3_id", "w"), ("video3_start_time", "1"), ("video3_end_time", "2"))}
    third = {"Input.question3": "B _____.", "Input.label3": "cat", **more}
    results = read_row(tmp_path, **third, **{"Input.question2": " ", "Answer.taskAnswers": task_answers({3: ["cat"]})})
    assert {number: one.video_id for number, one in results.questions["H"].items()} == {1: "v", 3: "w"}
    assert answers_of(results) == {"A": {3: ("cat",)}}


@pytest.mark.parametrize(("number", "is_read"), [(20, True), (21, False)])
def test_a_hit_has_twenty_questions_at_most(number: int, is_read: bool, tmp_path: Path) -> None:
    cells = {
        f"Input.{name}{number}{more}": cell
        for name, more, cell in (("question", "", "B _____."), ("label", "", "cat"), ("video", "_id", "w"))
    }
    times = {f"Input.video{number}_{end}_time": "1" for end in ("start", "end")}
    assert list(read_row(tmp_path, **cells, **times).questions["H"]) == ([1, number] if is_read else [1])


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"Input.question1": ""}, "no question"),
        ({"Input.question1": " &nbsp; "}, "no question"),
        *[
            (cells, "question 1 has no blank, no label or no times")
            for cells in (
                {"Input.question1": "A dog."},
                {"Input.question1": "_____ _____"},
                {"Input.video1_start_time": ""},
                {"Input.video1_end_time": "nan"},
                {"Input.video1_end_time": "inf"},
                {"Input.video1_end_time": "1e99"},
                {"Input.label1": "x" * 10_001},
            )
        ],
    ],
)
def test_a_row_without_whole_questions_is_left_out(cells: dict[str, str], reason: str, tmp_path: Path) -> None:
    results = read_row(tmp_path, **cells)
    assert left_out(results) == [("A", reason)]
    assert (results.questions, results.assignments, results.taken) == ({}, {}, {})


# ---------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("unavailable video", True),
        ("This VIDEO is Unavailable!", True),
        ("unavailable", False),
        ("a video", False),
        ("available video", False),
        ("", False),
    ],
)
def test_a_video_is_gone_where_both_words_are_said(answer: str, expected: bool) -> None:
    assert is_unavailable(answer) is expected


def test_reasons_are_told_most_frequent_first_without_comments() -> None:
    about = {"file": "r.csv", "row": 1, "assignment": "A", "worker": "W", "text": ""}
    reasons = ["no word", *["no\n text"] * 1200, *[COMMENT] * 5000, *["no HITId"] * 3]
    results = HitResults(left_out=[LeftOut(**about, reason=reason) for reason in reasons])
    assert describe_left_out(results) == ["1,200 left out: no text", "3 left out: no HITId", "1 left out: no word"]
    assert describe_left_out(HitResults()) == []
