"""vip.review.mturk_results: rows of every shape, and which worker's words end where"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.review.corpora import make_described, open_state
from tests.review.test_blanks import open_blanks
from tests.review.test_mturk import answered, rows_of, write_results
from vip.errors import InputError
from vip.review.blanks import BlankState
from vip.review.mturk import PAPER
from vip.review.mturk_log import OF_ANOTHER, REJECTED
from vip.review.mturk_results import import_blank_results, import_keyframe_results
from vip.review.state import ReviewState
from vip.tasks.fiber.hits import write_hits
from vip.tasks.fiber.policy import WorkerPolicy

QUIET = {"wrong-mood": {"wrong": False}, "comments": ""}


@pytest.fixture
def state(tmp_path: Path) -> ReviewState:
    return open_state(make_described(tmp_path / "a", 3))


def said(state: ReviewState, number: int, field: str) -> dict[str, str]:
    return state.said(state.index.items[number].id, field)


# ---------------------------------------------------------------- files and rows


def test_a_file_with_a_byte_order_mark_has_its_first_column(tmp_path: Path, state: ReviewState) -> None:
    row = answered(state, 0, "S1")
    text = ",".join(names := ["AssignmentId", "WorkerId", "Input.item", "Answer.taskAnswers"])
    cells = ",".join('"' + row[name].replace('"', '""') + '"' for name in names)
    (tmp_path / "r.csv").write_bytes(f"\ufeff{text}\r\n{cells}\r\n".encode())
    assert import_keyframe_results(state, [tmp_path / "r.csv"], PAPER).assignments == 1


@pytest.mark.parametrize(("cells", "reason"), [(2, "a keyframe or a description that is not here"), (6, "the answers are no JSON")])
def test_a_row_that_ends_early_is_counted_and_the_next_one_read(cells: int, reason: str, tmp_path: Path, state: ReviewState) -> None:
    head, whole = write_results(tmp_path / "r.csv", answered(state, 0, "S1")).read_text(encoding="utf-8").splitlines()
    (tmp_path / "r.csv").write_text("\n".join([head, ",".join(whole.split(",")[:cells]), whole]), encoding="utf-8")
    found = import_keyframe_results(state, [tmp_path / "r.csv"], PAPER)
    assert (found.assignments, dict(found.left_out)) == (1, {reason: 1})


def test_cells_may_be_longer_than_csv_reads_by_default(tmp_path: Path, state: ReviewState) -> None:
    before = csv.field_size_limit()
    row = answered(state, 0, "S1", fields={"padding": "x" * (before + 1)})
    assert import_keyframe_results(state, [write_results(tmp_path / "r.csv", row)], PAPER).written == 3
    assert csv.field_size_limit() == before


@pytest.mark.parametrize("names", [("r.csv", "empty.csv"), ("empty.csv", "r.csv")])
def test_one_of_several_files_may_have_no_row(names: tuple[str, ...], tmp_path: Path, state: ReviewState) -> None:
    write_results(tmp_path / "r.csv", answered(state, 0, "S1"))
    write_results(tmp_path / "empty.csv")
    assert import_keyframe_results(state, [tmp_path / name for name in names], PAPER).assignments == 1


def test_files_without_a_row_are_refused(tmp_path: Path, state: ReviewState) -> None:
    empty = write_results(tmp_path / "empty.csv")
    with pytest.raises(InputError, match="There is no assignment"):
        import_keyframe_results(state, [empty, empty], PAPER)


def test_a_second_file_that_lacks_columns_is_refused_by_its_name_and_nothing_is_written(tmp_path: Path, state: ReviewState) -> None:
    first = write_results(tmp_path / "r.csv", answered(state, 0, "S1"))
    (tmp_path / "other.csv").write_text("AssignmentId,WorkerId\nS,A\n")
    with pytest.raises(InputError, match=r"other\.csv has no column Input\.item, Answer\.taskAnswers\."):
        import_keyframe_results(state, [first, tmp_path / "other.csv"], PAPER)
    assert list(state.log.read()) == []


@pytest.mark.parametrize("order", [("said", "rejected"), ("rejected", "said")])
def test_a_rejection_holds_whichever_file_is_read_first(order: tuple[str, ...], tmp_path: Path, state: ReviewState) -> None:
    files = {
        "said": write_results(tmp_path / "said.csv", answered(state, 0, "S1")),
        "rejected": write_results(tmp_path / "rejected.csv", answered(state, 0, "S1", RejectionTime="Mon")),
    }
    found = import_keyframe_results(state, [files[name] for name in order], PAPER)
    assert (found.written, found.taken_back, dict(found.left_out)) == (3, 3, {REJECTED: 1})
    assert said(state, 0, "verdict") == {}


def test_an_old_download_does_not_bring_back_what_was_rejected_since(tmp_path: Path, state: ReviewState) -> None:
    old = write_results(tmp_path / "r.csv", answered(state, 0, "S1"))
    import_keyframe_results(state, [old], PAPER)
    import_keyframe_results(state, [write_results(tmp_path / "later.csv", answered(state, 0, "S1", RejectionTime="Mon"))], PAPER)
    assert import_keyframe_results(state, [old], PAPER).written == 0
    assert (said(state, 0, "verdict"), said(state, 0, "wrong:mood"), said(state, 0, "comment")) == ({}, {}, {})


def test_rejecting_one_worker_leaves_what_others_said_of_the_same_keyframe(tmp_path: Path, state: ReviewState) -> None:
    both = [answered(state, 0, "S1", "A1"), answered(state, 0, "S2", "A2")]
    import_keyframe_results(state, [write_results(tmp_path / "r.csv", *both)], PAPER)
    found = import_keyframe_results(state, [write_results(tmp_path / "later.csv", both[1] | {"RejectionTime": "Mon"})], PAPER)
    assert found.taken_back == 3
    assert said(state, 0, "verdict") == {"mturk:A1": "needs work"}
    assert said(state, 0, "comment") == {"mturk:A1": "dark"}


def test_only_what_is_new_is_counted_where_a_log_has_rows_already(tmp_path: Path, state: ReviewState) -> None:
    first, second = answered(state, 0, "S1"), answered(state, 1, "S2", fields=QUIET)
    import_keyframe_results(state, [write_results(tmp_path / "r.csv", first)], PAPER)
    found = import_keyframe_results(state, [write_results(tmp_path / "r.csv", first, second)], PAPER)
    assert (found.assignments, found.written) == (2, 1)


def test_reasons_are_counted_over_all_rows(tmp_path: Path, state: ReviewState) -> None:
    rows = [answered(state, 0, "S1", WorkerId=""), answered(state, 1, "S2"), answered(state, 2, "S3", WorkerId=" ")]
    rows += [answered(state, 0, name, RejectionTime="Mon") for name in ("S4", "S5")]
    found = import_keyframe_results(state, [write_results(tmp_path / "r.csv", *rows)], PAPER)
    assert (found.assignments, dict(found.left_out)) == (1, {"no id of a worker": 2, REJECTED: 2})


# ---------------------------------------------------------------- ids of assignments


@pytest.mark.parametrize("is_in_one_file", [True, False])
@pytest.mark.parametrize(("number", "worker"), [(0, "A2"), (1, "A1")])
def test_an_id_of_another_worker_or_hit_is_counted_and_writes_nothing(
    number: int, worker: str, is_in_one_file: bool, tmp_path: Path, state: ReviewState
) -> None:
    """Its verdict was dropped and its assignment counted as present."""
    first, second = answered(state, 0, "S1", fields=QUIET), answered(state, number, "S1", worker)
    for rows in [(first, second)] if is_in_one_file else [(first,), (second,)]:
        found = import_keyframe_results(state, [write_results(tmp_path / "r.csv", *rows)], PAPER)
    assert (found.assignments, dict(found.left_out)) == (int(is_in_one_file), {OF_ANOTHER: 1})
    assert [(row.reviewer, row.field) for row in state.log.read()] == [("mturk:A1", "verdict")]


@pytest.mark.parametrize("values", [{}, {"RejectionTime": "Mon"}])
def test_rows_without_an_id_are_counted(values: dict[str, str], tmp_path: Path, state: ReviewState) -> None:
    rows = [answered(state, 0, "", "A1", **values), answered(state, 0, " ", "A2", **values), answered(state, 0, "S1", "A3")]
    found = import_keyframe_results(state, [write_results(tmp_path / "r.csv", *rows)], PAPER)
    assert (found.assignments, dict(found.left_out)) == (1, {"no AssignmentId": 2})
    assert said(state, 0, "verdict") == {"mturk:A3": "needs work"}


def test_a_rejection_of_another_worker_takes_nothing_back(tmp_path: Path, state: ReviewState) -> None:
    rows = [answered(state, 0, "S1"), answered(state, 0, "S1", "A2", RejectionTime="Mon")]
    found = import_keyframe_results(state, [write_results(tmp_path / "r.csv", *rows)], PAPER)
    assert (found.assignments, found.taken_back, dict(found.left_out)) == (1, 0, {REJECTED: 1})
    assert said(state, 0, "verdict") == {"mturk:A1": "needs work"}


@pytest.mark.parametrize("approved", [{"AssignmentStatus": "Approved", "RejectionTime": "Mon"}, {"ApprovalTime": "Tue"}])
def test_an_assignment_that_was_rejected_and_approved_since_comes_back(
    approved: dict[str, str], tmp_path: Path, state: ReviewState
) -> None:
    def read(**values: str) -> tuple[int, int, int, dict[str, int]]:
        found = import_keyframe_results(state, [write_results(tmp_path / "r.csv", answered(state, 0, "S1", **values))], PAPER)
        return found.assignments, found.written, found.taken_back, dict(found.left_out)

    assert read() == (1, 3, 0, {})
    assert read(AssignmentStatus="Rejected") == (0, 0, 3, {REJECTED: 1})
    assert read() == (0, 0, 0, {REJECTED: 1}), "an old download"
    assert read(**approved) == (1, 3, 0, {})
    assert [said(state, 0, field) for field in ("verdict", "wrong:mood", "comment")] == [
        {"mturk:A1": "needs work"},
        {"mturk:A1": "wrong"},
        {"mturk:A1": "dark"},
    ]
    assert read(**approved) == (1, 0, 0, {})
    assert read(AssignmentStatus="Rejected") == (0, 0, 0, {}), "an older download: what was approved is not rejected"
    assert said(state, 0, "verdict") == {"mturk:A1": "needs work"}


def test_of_two_downloads_the_one_that_says_approved_counts(tmp_path: Path, state: ReviewState) -> None:
    for order in ("ar", "ra"):
        files = {
            "a": write_results(tmp_path / "a.csv", answered(state, 0, "S1", AssignmentStatus="Approved")),
            "r": write_results(tmp_path / "r.csv", answered(state, 0, "S1", AssignmentStatus="Rejected")),
        }
        found = import_keyframe_results(state, [files[name] for name in order], PAPER)
        assert (found.assignments, found.taken_back, dict(found.left_out)) == (1, 0, {})


# ---------------------------------------------------------------- what a row says


@pytest.mark.parametrize(
    ("fields", "verdict", "wrong", "comment"),
    [
        ({"verdict": "unusable"}, "unusable", (), None),
        ({"verdict": {"good": False, "needs work": False, "unusable": True}}, "unusable", (), None),
        ({"verdict": "good", "wrong-dense_caption": {"wrong": True}}, "good", ("dense_caption",), None),
        ({"verdict": "good", "wrong-setting": "wrong", "wrong-focus": {"wrong": True}}, "good", ("focus", "setting"), None),
        ({"verdict": "good", "wrong-focus": {"right": True}, "wrong-mood": True}, "good", (), None),
        ({"verdict": "good", "wrong-shot_size": {"wrong": True}, "wrong-": "wrong"}, "good", (), None),  # no text that workers saw
        ({"verdict": "good", "comments": " \n\t"}, "good", (), None),
        ({"verdict": "good", "comments": ["dark"]}, "good", (), None),
        ({"verdict": "good", "comments": "  dark\r\nroom "}, "good", (), "dark\nroom"),
    ],
)
def test_what_was_chosen_and_written_is_in_the_log_and_nothing_else(
    fields: dict[str, Any], verdict: str, wrong: tuple[str, ...], comment: str | None, tmp_path: Path, state: ReviewState
) -> None:
    row = answered(state, 1, "S1") | {"Answer.taskAnswers": json.dumps([fields])}
    found = import_keyframe_results(state, [write_results(tmp_path / "r.csv", row)], PAPER)
    expected = {("verdict", verdict), *((f"wrong:{name}", "wrong") for name in wrong), *([("comment", comment)] if comment else [])}
    assert {(one.field, one.after) for one in state.log.read()} == expected
    assert {one.item for one in state.log.read()} == {state.index.items[1].id}
    assert (found.written, dict(found.left_out)) == (len(expected), {})


@pytest.mark.parametrize("fields", [{}, {"verdict": {}}, {"verdict": {"good": False}}, {"verdict": None}, {"verdict": ["good"]}])
def test_without_a_verdict_marks_and_comments_do_not_count(fields: dict[str, Any], tmp_path: Path, state: ReviewState) -> None:
    row = answered(state, 0, "S1") | {"Answer.taskAnswers": json.dumps([{"wrong-mood": "wrong", "comments": "dark", **fields}])}
    found = import_keyframe_results(state, [write_results(tmp_path / "r.csv", row)], PAPER)
    assert (found.written, dict(found.left_out)) == (0, {"no verdict": 1})


@pytest.mark.parametrize(
    ("worker", "reviewer"),
    [
        ("A1", "mturk:A1"),
        (" A1\n", "mturk:A1"),
        ("mturk:A1", "mturk:A1"),  # as vip exports what it has read
        ("engine:x", "mturk:engine:x"),  # no worker writes as an engine
        ("x" * 54, f"mturk:{'x' * 54}"),  # 60 letters
        ("x" * 55, None),
        (" ", None),
    ],
)
def test_a_worker_is_a_reviewer_with_one_prefix(worker: str, reviewer: str | None, tmp_path: Path, state: ReviewState) -> None:
    import_keyframe_results(state, [write_results(tmp_path / "r.csv", answered(state, 0, "S1", WorkerId=worker))], PAPER)
    assert list(said(state, 0, "verdict")) == ([reviewer] if reviewer else [])


# ---------------------------------------------------------------- blanks


class Hit:
    """The first HIT of a file of five blanks, and rows of workers who answered it."""

    def __init__(self, folder: Path) -> None:
        self.state: BlankState = open_blanks(folder, 5)
        self.folder = folder
        write_hits(folder / "hits", [item.record for item in self.state.items])
        (self.cells,) = rows_of(folder / "hits/hits.csv")

    def row(self, assignment: str, worker: str, fields: dict[str, str], **values: str) -> dict[str, str]:
        about = {"HITId": "H", "AssignmentId": assignment, "WorkerId": worker, "AssignmentStatus": "Submitted"}
        inputs = {f"Input.{name}": cell for name, cell in self.cells.items()}
        return about | inputs | {"Answer.taskAnswers": json.dumps([fields])} | values

    def write(self, *rows: dict[str, str]) -> Path:
        path = self.folder / "r.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, list(rows[0]))
            table.writeheader()
            table.writerows(rows)
        return path

    def said(self, number: int, field: str = "answers") -> dict[str, str]:
        return self.state.said(self.state.items[number].id, field)


@pytest.fixture
def hit(tmp_path: Path) -> Hit:
    return Hit(tmp_path)


CATS = {"answer-2-0": "a cat", "answer-2-1": "a kitten"}


def test_a_comment_on_blanks_is_that_of_its_own_worker_and_stands_at_the_first_one_answered(hit: Hit) -> None:
    rows = [hit.row("S1", "A1", CATS), hit.row("S2", "A2", {**CATS, "answer-4-0": "a hat", "comments": "fine"})]
    found = import_blank_results(hit.state, [hit.write(*rows)], WorkerPolicy())
    assert (found.assignments, found.written, dict(found.left_out)) == (2, 4, {})
    assert [hit.said(number, "comment") for number in range(5)] == [{}, {"mturk:A2": "fine"}, {}, {}, {}]
    assert hit.said(1) == {"mturk:A1": "a cat\na kitten", "mturk:A2": "a cat\na kitten"}
    assert hit.said(3) == {"mturk:A2": "a hat"}


def test_rejected_answers_to_blanks_are_taken_back_and_counted_each(hit: Hit) -> None:
    rows = [hit.row(f"S{number}", f"A{number}", {**CATS, "comments": "fine"}) for number in range(3)]
    import_blank_results(hit.state, [hit.write(*rows)], WorkerPolicy())
    rows[0]["AssignmentStatus"] = rows[2]["AssignmentStatus"] = "Rejected"
    found = import_blank_results(hit.state, [hit.write(*rows)], WorkerPolicy())
    assert (found.assignments, found.written, found.taken_back, dict(found.left_out)) == (1, 0, 4, {REJECTED: 2})
    assert hit.said(1) == {"mturk:A1": "a cat\na kitten"}
    assert hit.said(1, "comment") == {"mturk:A1": "fine"}


def test_blanks_of_a_disqualified_worker_are_left_out_and_those_of_the_next_one_read(hit: Hit) -> None:
    path = hit.write(hit.row("S1", "A9", CATS), hit.row("S2", "A2", CATS))
    found = import_blank_results(hit.state, [path], WorkerPolicy(disqualified=frozenset({"A9"})))
    assert (found.assignments, dict(found.left_out)) == (1, {"a disqualified worker": 1})
    assert hit.said(1) == {"mturk:A2": "a cat\na kitten"}


def test_of_a_hit_with_other_blanks_those_of_this_file_are_taken(hit: Hit) -> None:
    hit.cells["question1"] = "Another _____ stands here."  # of the same clip
    fields = {**CATS, "answer-1-0": "a dog"}
    found = import_blank_results(hit.state, [hit.write(hit.row("S1", "A1", {**fields, "comments": "fine"}))], WorkerPolicy())
    assert (found.assignments, found.written, dict(found.left_out)) == (1, 2, {})
    assert (hit.said(0), hit.said(1)) == ({}, {"mturk:A1": "a cat\na kitten"})
    assert (hit.said(0, "comment"), hit.said(1, "comment")) == ({}, {"mturk:A1": "fine"})


def test_a_worker_who_answered_nothing_is_counted_as_such(hit: Hit) -> None:
    found = import_blank_results(hit.state, [hit.write(hit.row("S1", "A1", {"comments": "nothing plays"}))], WorkerPolicy())
    assert (found.assignments, found.written, dict(found.left_out)) == (0, 0, {"no blank of this file": 1})


def test_an_answer_that_cannot_be_kept_leaves_the_others(hit: Hit) -> None:
    fields = {**{f"answer-1-{place}": f"cat {place}" for place in range(101)}, "answer-2-0": "a dog"}
    found = import_blank_results(hit.state, [hit.write(hit.row("S1", "A1", fields))], WorkerPolicy())
    assert (found.written, [reason[:26] for reason in found.left_out]) == (1, ["A blank has at most 100 an"])
    assert (hit.said(0), hit.said(1)) == ({}, {"mturk:A1": "a dog"})


def test_blanks_with_the_id_of_another_worker_or_none_are_counted(hit: Hit) -> None:
    import_blank_results(hit.state, [hit.write(hit.row("S1", "A1", CATS))], WorkerPolicy())
    found = import_blank_results(hit.state, [hit.write(hit.row("S1", "A2", CATS), hit.row("", "A3", CATS))], WorkerPolicy())
    assert (found.assignments, found.written, dict(found.left_out)) == (0, 0, {OF_ANOTHER: 1, "no AssignmentId": 1})
    twice = import_blank_results(hit.state, [hit.write(row := hit.row("S1", "A1", CATS), row)], WorkerPolicy())
    assert (twice.assignments, dict(twice.left_out)) == (1, {}), "what is there twice counts once, and is not left out"
    assert hit.said(1) == {"mturk:A1": "a cat\na kitten"}


def test_blanks_that_were_rejected_and_approved_since_come_back(hit: Hit) -> None:
    import_blank_results(hit.state, [hit.write(hit.row("S1", "A1", CATS))], WorkerPolicy())
    import_blank_results(hit.state, [hit.write(hit.row("S1", "A1", CATS, AssignmentStatus="Rejected"))], WorkerPolicy())
    assert hit.said(1) == {}
    found = import_blank_results(hit.state, [hit.write(hit.row("S1", "A1", CATS, ApprovalTime="Tue"))], WorkerPolicy())
    assert (found.assignments, found.written, hit.said(1)) == (1, 1, {"mturk:A1": "a cat\na kitten"})
