"""What workers answered: read, filtered, reviewed, assembled and paid, from results made as Mechanical Turk writes them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tasks.fiber.made import record
from tests.tasks.fiber.worked import assignment, task_answers, write_results
from vip.errors import InputError
from vip.tasks.fiber.collect import (
    Collected,
    assemble,
    collect,
    count_bonuses,
    decide,
    dollars,
    read_marks,
    read_paid,
    review_rows,
    review_workers,
    unpaid,
    write_bonuses,
)
from vip.tasks.fiber.collected_files import CollectSummary, write_collected
from vip.tasks.fiber.noun_phrases import ParsedToken
from vip.tasks.fiber.policy import PayPolicy, ReviewPolicy, WorkerPolicy, read_policy, write_qualifications
from vip.tasks.fiber.records import read_records
from vip.tasks.fiber.results import COMMENT, describe_left_out, read_results
from vip.tasks.files import read_samples

TWO = [record("a dog", "x"), record("the man", "y")]
APPROVED = {"ApprovalTime": "Mon Jan 04 10:00:00 PST 2021"}
NOBODY: tuple[set[str], set[str]] = (set(), set())


def parse_nouns(texts: Iterable[str]) -> Iterable[Sequence[ParsedToken]]:
    """Parse each text into its words: nouns, and adverbs in -ly; an article hangs on the next word, others on none."""
    for text in texts:
        words = [(match.start(), match[0]) for match in re.finditer(r"\w+", text)]
        yield [
            ParsedToken(
                start, start + len(word), word, "ADV" if word.endswith("ly") else "NOUN", "NN", "dep", place + (word in {"a", "the"})
            )
            for place, (start, word) in enumerate(words)
        ]


def collected(tmp_path: Path, *assignments: dict[str, object], records: Sequence[object] = TWO, per_hit: int = 2) -> Collected:
    path = write_results(tmp_path / "results.csv", records, assignments, per_hit)  # type: ignore[arg-type]
    return collect(read_results([path]), WorkerPolicy(), None)


# ---------------------------------------------------------------- results


def test_answers_come_back_in_their_order_with_what_stood_in_the_box_last(tmp_path: Path) -> None:
    sent = task_answers({1: ["dog"], 2: ["man"]}, **{"answer-1-10": "wolf", "answer-1-2": "a  puppy", "answer-input-1": "animal"})
    path = write_results(tmp_path / "r.csv", TWO, [assignment("W", sent)])
    results = read_results([path])
    (one,) = results.assignments.values()
    assert one.answers == {1: ("dog", "a puppy", "wolf", "animal"), 2: ("man",)}
    assert results.left_out == []
    assert results.questions["H0"] == {1: TWO[0], 2: TWO[1]}


def test_questions_come_back_as_they_were_asked(tmp_path: Path) -> None:
    odd = record("=cmd|'!A1", '-"x', masked_caption='=He says "no" & <b>_____</b> ${question1}.', caption="")
    path = write_results(tmp_path / "r.csv", [odd], [assignment("W", {1: ["dog", "cat"]})])
    found = read_results([path]).questions["H0"][1]
    assert (found.masked_caption, found.label, found.video_id) == (odd.masked_caption, odd.label, odd.video_id)
    assert found.caption == '=He says "no" & <b>=cmd|\'!A1</b> ${question1}.'


def test_what_a_terminal_obeys_is_neither_asked_nor_kept(tmp_path: Path) -> None:
    odd = record("a \x1b[2Jdog", "x\u202ey", masked_caption="He sees\r\n \x9b31m_____.", caption="")
    path = write_results(tmp_path / "r.csv", [odd], [assignment("W\x1b[1m", {1: ["cat\x1b]0;x\x07", "\u2066cow"]})])
    results = read_results([path])
    (one,) = results.assignments.values()
    assert (one.worker, one.answers) == ("W", {1: ("cat", "cow")})
    (asked,) = results.questions["H0"].values()
    assert (asked.label, asked.video_id, asked.masked_caption) == ("a dog", "xy", "He sees   _____.")
    hits = (tmp_path / "hits" / "hits.csv").read_text(encoding="utf-8")
    assert not {letter for letter in hits if category(letter) in {"Cc", "Cf"}} - {"\r", "\n"}
    # a file that was not written by vip
    path.write_bytes(path.read_bytes().replace(b"He sees", b"He sees\x1b[1m").replace(b"a dog", "a \u202edog".encode()))
    assert read_results([path]).questions["H0"] == results.questions["H0"]


def test_a_sheet_whose_cells_are_long_is_read_and_one_that_is_no_csv_is_named(tmp_path: Path) -> None:
    sheet = tmp_path / "marked.csv"
    sheet.write_text(f"worker_id,answer,correct?\nW,{'x' * 200_000},y\nW,short,\n")
    assert read_marks(sheet) == {"W": 1}
    sheet.write_text("a,b\n")
    with pytest.raises(InputError, match="has no column worker_id, answer, correct"):
        read_marks(sheet)


def test_what_was_approved_once_stays_approved(tmp_path: Path) -> None:
    answers = {1: ["dog", "cat"]}
    early = write_results(tmp_path / "early.csv", TWO, [assignment("W", answers)])
    late = write_results(tmp_path / "late.csv", TWO, [assignment("W", answers, **APPROVED)])
    for paths in ([early, late], [late, early], [late]):
        (one,) = read_results(paths).assignments.values()
        assert one.is_approved, paths
    (one,) = read_results([early]).assignments.values()
    assert not one.is_approved


def test_what_cannot_be_used_is_counted_named_and_kept_whole(tmp_path: Path) -> None:
    long = "word " * 2_000_000  # 10 MB
    good = {1: ["dog", "The dog!", "..."], 2: ["=HYPERLINK(1)"]}
    rows = [
        assignment("W1", task_answers(good, **{"answer-7-0": "lost", "answer-2-5": 5, "answer-1-9": long, "comments": "<b>hi</b>"})),
        assignment("W1", task_answers(good, **{"answer-7-0": "lost", "answer-2-5": 5, "answer-1-9": long})),
        {**assignment("W2", {1: ["cat"]}), "WorkerId": ""},
        {**assignment("W2", {1: ["cat"]}), "AssignmentId": ""},
        assignment("W3", "no json"),
        assignment("W4", "[1]"),
        assignment("W5", {1: ["cat"]}, RejectionTime="now"),
        {**assignment("W1", {1: ["other"]}), "AssignmentId": "A-W1-0"},
        {**assignment("W1", {1: ["again"]}), "AssignmentId": "A-new"},
    ]
    results = read_results([write_results(tmp_path / "r.csv", TWO, rows)])
    assert {one.id: one.answers for one in results.assignments.values()} == {"A-W1-0": {1: ("dog",), 2: ("=HYPERLINK(1)",)}}
    assert results.reasons() == {
        "the worker's answer is there already": 1,
        "no word": 1,
        "an answer to no question": 1,
        "no text": 1,
        "more than 500 letters": 1,
        COMMENT: 1,
        "the assignment is there already": 1,
        "no WorkerId": 1,
        "no AssignmentId": 1,
        "the answers are no JSON": 1,
        "the answers are no JSON object": 1,
        "rejected on Mechanical Turk": 1,
        "the assignment is there already, with other answers": 1,
        "the worker answered this HIT already": 1,
    }
    told = describe_left_out(results)
    assert len(told) == len(results.reasons()) - 1
    assert not any(COMMENT in line for line in told), "nothing is lost with a comment"
    (kept,) = (row for row in results.left_out if row.reason == "more than 500 letters")
    assert (kept.text, kept.worker, kept.question, kept.row) == (long, "W1", 1, 1)
    assert csv.field_size_limit() == 131_072


def test_a_later_export_says_whether_an_assignment_was_approved_or_rejected(tmp_path: Path) -> None:
    first = write_results(tmp_path / "1.csv", TWO, [assignment("W", {1: ["dog"]}), assignment("V", {1: ["cat"]})])
    later = [assignment("W", {1: ["dog"]}, **APPROVED), assignment("V", {1: ["cat"]}, RejectionTime="now")]
    results = read_results([first, write_results(tmp_path / "2.csv", TWO, later)])
    assert [(one.worker, one.is_approved) for one in results.assignments.values()] == [("W", True)]
    assert results.rejected_workers == {"V"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"HITId,AssignmentId\n1,2\n", "has no column WorkerId, Answer.taskAnswers, Input.question1, Input.video1_id"),
        (b"", "has no column HITId"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"HITId,AssignmentId,WorkerId,Answer.taskAnswers,Input.question1,Input.video1_id\n", "there is no assignment"),
    ],
)
def test_a_file_of_another_kind_is_refused(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes(data)
    with pytest.raises(InputError, match=message):
        read_results([path])


def test_a_hit_whose_questions_are_damaged_or_change_is_left_out(tmp_path: Path) -> None:
    path = write_results(tmp_path / "r.csv", TWO, [assignment("W", {1: ["dog"]}), assignment("V", {1: ["cat"]})])
    text = path.read_text(encoding="utf-8")
    head, tail = text.rsplit("There is _____.", 1)
    path.write_text(f"{head}There was _____.{tail}", encoding="utf-8")
    assert read_results([path]).reasons() == {"other questions than before in this HIT": 1}
    path.write_text(f"{head}There is nothing.{tail}", encoding="utf-8")
    assert read_results([path]).reasons() == {"question 2 has no blank, no label or no times": 1}


# ---------------------------------------------------------------- records


def test_a_worker_may_answer_again_what_was_rejected(tmp_path: Path) -> None:
    first = write_results(tmp_path / "1.csv", TWO, [assignment("W", {1: ["dog"]}, RejectionTime="now")])
    again = {**assignment("W", {1: ["wolf"]}), "AssignmentId": "A-new"}
    for paths in ([first, write_results(tmp_path / "2.csv", TWO, [again])], [write_results(tmp_path / "2.csv", TWO, [again]), first]):
        assert [(one.id, one.answers) for one in read_results(paths).assignments.values()] == [("A-new", {1: ("wolf",)})]
    taken_back = write_results(
        tmp_path / "3.csv", TWO, [assignment("W", {1: ["dog"]}), assignment("W", {1: ["dog"]}, AssignmentStatus="Rejected"), again]
    )
    found = read_results([taken_back])
    assert list(found.assignments) == ["A-new"]
    assert found.rejected_workers == {"W"}


def test_an_answer_of_500_letters_is_one_and_a_longer_one_is_not(tmp_path: Path) -> None:
    rows = [assignment("W", {1: ["x" * 500, "y" * 501]})]
    found = read_results([write_results(tmp_path / "r.csv", TWO, rows)])
    assert found.assignments["A-W-0"].answers == {1: ("x" * 500,)}
    assert [row.text for row in found.left_out] == ["y" * 501]


def test_two_blanks_of_one_clip_are_two_records_and_one_worker_is_enough_to_say_that_a_video_is_gone(tmp_path: Path) -> None:
    two = [record("a dog", "x"), record("a tree", "x", masked_caption="It sees _____.", caption="It sees a tree.")]
    done = assemble(collected(tmp_path, assignment("W", {1: ["wolf"], 2: ["oak"]}), records=two))
    assert [(one.masked_caption, one.additional_answers) for one in done.records] == [
        ("There is _____.", [["wolf"]]),
        ("It sees _____.", [["oak"]]),
    ]
    gone = collected(tmp_path, assignment("W", {1: ["wolf"]}), assignment("V", {1: ["unavailable video", "wolf"]}), records=TWO)
    assert (assemble(gone).unavailable, len(assemble(gone).records)) == (1, 0)


def test_records_have_the_noun_phrases_of_each_worker(tmp_path: Path) -> None:
    path = write_results(
        tmp_path / "r.csv",
        TWO,
        [
            assignment("W", {1: ["the cat", "quickly"], 2: ["slowly"]}),
            assignment("V", {1: ["a wolf"], 2: []}),
            assignment("U", {1: ["badly"]}),
        ],
    )
    found = collect(read_results([path]), WorkerPolicy(), parse_nouns)
    done = assemble(found)
    assert [(one.label, one.additional_answers) for one in done.records] == [("a dog", [["the cat"], ["a wolf"]]), ("the man", [])]
    assert (found.judged, found.kept) == (5, 2)


def test_blanks_of_videos_that_are_gone_and_without_answers_are_left_out(tmp_path: Path) -> None:
    three = [*TWO, record("a cat", "z")]
    gone = ["unavailable video", "Unavailable VIDEO 2"]
    done = assemble(
        collected(tmp_path, assignment("W", {1: gone, 2: ["man"]}), assignment("V", {1: ["dog"], 2: ["guy"]}), records=three, per_hit=3)
    )
    assert [one.video_id for one in done.records] == ["y"]
    assert (done.unavailable, done.unanswered) == (1, 1)


def test_a_blank_of_two_hits_is_one_record(tmp_path: Path) -> None:
    done = assemble(
        collected(tmp_path, assignment("W", {1: ["dog"]}), assignment("W", {1: ["wolf"]}, hit=1), records=[TWO[0]] * 2, per_hit=1)
    )
    assert [one.additional_answers for one in done.records] == [[["dog"], ["wolf"]]]


def test_disqualified_workers_do_not_count(tmp_path: Path) -> None:
    path = write_results(tmp_path / "r.csv", TWO, [assignment("W", {1: ["dog"]}), assignment("V", {1: ["cat"]})])
    found = collect(read_results([path]), WorkerPolicy(disqualified=frozenset({"W"})), None)
    assert [one.worker for one in found.results.assignments.values()] == ["V"]
    assert found.results.reasons() == {"the worker is disqualified": 1}


# ---------------------------------------------------------------- review


@pytest.mark.parametrize(
    ("score", "questions", "expected"),
    [
        *((0.99, 25, "reject"), (1.0, 25, "warn"), (1.49, 25, "warn"), (1.5, 25, "approve")),
        *((0.99, 24, "reject"), (1.0, 24, "reject"), (1.49, 24, "reject"), (1.5, 24, "approve"), (9.0, 1, "approve")),
    ],
)
def test_the_bounds_of_the_review_are_the_published_ones(score: float, questions: int, expected: str) -> None:
    assert decide(score, questions, WorkerPolicy()) == expected


def test_a_worker_is_judged_by_the_marks_on_the_sheet(tmp_path: Path) -> None:
    many = [record(f"a dog{place}", f"v{place}") for place in range(20)]
    good = {place: ["a wolf", "a cat"] for place in range(1, 21)}
    rows = [assignment("good", good), assignment("bad", good), assignment("few", {1: ["wolf"]}), assignment("old", good, **APPROVED)]
    found = collected(tmp_path, *rows, records=many, per_hit=20)
    before = {one.worker: one.decision for one in review_workers(found, WorkerPolicy(), None)}
    assert before == {"bad": "to review", "few": "reject", "good": "to review", "old": "approved before"}
    after = {one.worker: (one.decision, one.score) for one in review_workers(found, WorkerPolicy(), {"good": 15, "bad": 14})}
    assert after["good"] == ("approve", 1.5)
    assert after["bad"] == ("reject", 1.4)
    assert after["few"] == ("reject", 1 / 20)


def test_marks_of_a_worker_with_few_questions_are_over_those_there_are(tmp_path: Path) -> None:
    found = collected(tmp_path, assignment("W", {1: ["a wolf", "a cat"], 2: ["a man", "a guy"]}))
    for marks, expected in ((3, ("approve", 1.5)), (2, ("reject", 1.0))):
        (review,) = review_workers(found, WorkerPolicy(), {"W": marks})
        assert (review.decision, review.score, review.questions) == (*expected, 2)
    (review,) = review_workers(found, WorkerPolicy(), {"other": 9})
    assert (review.decision, review.score) == ("to review", 2.0)


def marked(collected_: Collected, policy: WorkerPolicy | None = None, seed: int = 0) -> list[tuple[str, str, str]]:
    """Worker, answer and mark of each row of the sheet."""
    return [(row[0], row[6], row[8]) for row in review_rows(collected_, policy or WorkerPolicy(), seed)]


def test_answers_are_marked_already_where_they_are_the_label_say_that_the_video_is_gone_or_are_of_a_known_worker(tmp_path: Path) -> None:
    rows = [
        assignment("known", {1: ["wolf", "cat"], 2: ["x", "y"]}, **APPROVED),
        assignment("known", {1: ["lynx", "owl"]}, hit=1),
        assignment("bad", {1: ["wolf", "cat"]}, **APPROVED),
        {**assignment("bad", {1: ["no"]}, RejectionTime="now", hit=2), "AssignmentId": "A-bad-2"},
        assignment("bad", {1: ["fox", "a Dog"], 2: ["unavailable video", "unavailable video 2"]}, hit=1),
    ]
    records = [record("a dog", str(place)) for place in range(6)]
    found = collected(tmp_path, *rows, records=records, per_hit=2)
    policy = WorkerPolicy(review=ReviewPolicy(reject_below=0.5, warn_below=0.5))
    assert marked(found, policy) == [
        ("bad", "fox", ""),  # approved once and rejected once
        ("bad", "a Dog", "y"),
        ("bad", "unavailable video", "y"),
        ("bad", "unavailable video 2", "y"),
        ("known", "lynx", "y"),
        ("known", "owl", "y"),
    ]


def test_questions_of_each_worker_are_drawn_by_the_seed_for_the_worker_alone(tmp_path: Path) -> None:
    records = [record(f"a dog{place}", f"v{place}") for place in range(12)]
    answers = {place: [f"thing{place}", f"other{place}"] for place in range(1, 13)}
    found = collected(tmp_path, *(assignment(worker, answers) for worker in "ABC"), records=records, per_hit=12)

    def drawn(seed: int) -> dict[str, list[str]]:
        rows = marked(found, WorkerPolicy(review=ReviewPolicy(questions=5)), seed)
        return {worker: [answer for name, answer, _ in rows if name == worker] for worker in "ABC"}

    first = drawn(1)
    assert first == drawn(1) != drawn(2)
    assert [len(answers) for answers in first.values()] == [10, 10, 10]
    assert len({tuple(answers) for answers in first.values()}) > 1, "not the same questions of every worker"
    whole = marked(found, WorkerPolicy(review=ReviewPolicy(questions=12)))
    assert [answer for name, answer, _ in whole if name == "A"] == [text for place in range(1, 13) for text in answers[place]]


def test_answers_of_rejected_workers_are_in_no_record_and_approved_ones_stay(tmp_path: Path) -> None:
    rows = [
        assignment("good", {1: ["a wolf", "a cat"], 2: ["a man", "a guy"]}),
        assignment("bad", {1: ["=bad"], 2: []}),
        assignment("bad", {1: ["kept"]}, hit=1, **APPROVED),
    ]
    path = write_results(tmp_path / "r.csv", [*TWO, record("a bird", "z")], rows)
    out = tmp_path / "answers.jsonl"
    done = write_collected(out, read_results([path]), WorkerPolicy(), None, marks={"good": 9}, paid=NOBODY, seed=1)
    assert done.decisions == {"reject": 1, "approve": 1}
    assert [(one.video_id, one.additional_answers) for one in read_records(out.with_name("answers.records.json"))] == [
        ("x", [["a wolf", "a cat"]]),
        ("y", [["a man", "a guy"]]),
        ("z", [["kept"]]),
    ]
    with out.with_name("answers.workers.csv").open(newline="", encoding="utf-8") as file:
        workers = list(csv.reader(file))[1:]
    assert workers == [["bad", "1", "2", "0.5000", "reject"], ["good", "1", "2", "4.5000", "approve"]]
    assert (done.assignments, done.pay_cents, done.blanks) == (2, 40, 3)
    assert done.left_out == {"the worker was rejected in the review": 1}


def test_what_is_paid_for_is_assignments_and_not_blanks(tmp_path: Path) -> None:
    good = {1: ["a wolf", "a cat"]}
    path = write_results(tmp_path / "r.csv", TWO[:1], [assignment(worker, good, **APPROVED) for worker in "ABC"], per_hit=1)
    out, policy = tmp_path / "answers.jsonl", WorkerPolicy(pay=PayPolicy(hit=7))

    def run(paid: tuple[set[str], set[str]]) -> CollectSummary:
        return write_collected(out, read_results([path]), policy, None, marks=None, paid=paid, seed=1)

    done = run(NOBODY)
    assert (done.blanks, done.assignments, done.pay_cents, done.bonuses, done.bonus_cents) == (1, 3, 21, 3, 22)
    again = run(({"A-A-0"}, {"A", "B"}))
    assert (again.bonuses, again.bonus_cents) == (1, 1), "one is paid already, and one who was paid is not thanked"
    lines = again.lines()
    assert lines[0] == "1 blank with answers of 3 assignments; 6 answers, not filtered for noun phrases"
    assert lines[-1] == f"1 bonus, 0.01 dollars, in {out.with_name('answers.bonuses.jsonl')}"
    assert "Workers: 3 approved before" in lines


def test_the_two_calls_of_collect_write_a_sheet_and_then_bonuses(tmp_path: Path) -> None:
    answers = {1: ["the Dog", "=wolf()"], 2: ["a man", "a guy"]}
    path = write_results(tmp_path / "r.csv", TWO, [assignment("W", answers), assignment("=V", answers)])
    out, policy = tmp_path / "out" / "answers.jsonl", WorkerPolicy(review=ReviewPolicy(questions=2))

    def run(**more: object) -> dict[str, object]:
        options: dict[str, object] = {"marks": None, "paid": NOBODY, "seed": 1, **more}
        return write_collected(out, read_results([path]), policy, None, **options).as_row()  # type: ignore[arg-type]

    first = run()
    assert (first["to_mark"], first["decisions"]) == (8, {"to review": 2})
    assert not out.with_name("answers.bonuses.jsonl").exists()
    sheet = out.with_name("answers.sheet.csv")
    text = sheet.read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["correct?"] for row in rows if row["answer"] == "the Dog"] == ["y", "y"]  # the label
    assert {row["answer"] for row in rows} == {"the Dog", "'=wolf()", "a man", "a guy"}
    assert {row["worker_id"] for row in rows} == {"W", "'=V"}
    sheet.write_text(text.replace("a guy,,", "a guy,me,Y"), encoding="utf-8")
    assert read_marks(sheet) == {"W": 3, "=V": 3}
    second = run(marks=read_marks(sheet))
    assert (second["decisions"], second["to_mark"], second["bonuses"]) == ({"approve": 2}, None, 2)
    assert second["bonus_cents"] == 21
    assert second["pay_cents"] == 40
    assert [sample.id for sample in read_samples(out)] == ["x_000005_000015", "y_000005_000015"]
    assert [one.additional_answers for one in read_records(out.with_name("answers.records.json"))] == [
        [["the Dog", "=wolf()"]] * 2,
        [["a man", "a guy"]] * 2,
    ]
    rejected = run(marks={"W": 2, "=V": 9})
    assert rejected["decisions"] == {"approve": 1, "reject": 1}
    assert rejected["left_out"] == {"the worker was rejected in the review": 4}
    assert len(out.with_name("answers.left-out.jsonl").read_text(encoding="utf-8").splitlines()) == 4


# ---------------------------------------------------------------- pay


def paid_for(tmp_path: Path, *counts: int, pay: PayPolicy | None = None, hits: Sequence[int] = ()) -> dict[str, tuple[int, int, int]]:
    """What workers W0, W1, … get for so many correct answers."""
    rows = [
        assignment(f"W{place}", {1: [f"thing{number}" for number in range(count)]}, hit=(hits or [0] * len(counts))[place])
        for place, count in enumerate(counts)
    ]
    found = collected(tmp_path, *rows, records=[record("a dog", "x"), record("a cat", "y")], per_hit=1)
    return {one.worker: (one.for_answers, one.for_best, one.thanks) for one in count_bonuses(found, pay or PayPolicy())}


def test_bonuses_are_those_of_the_table_and_the_first_of_a_tie_is_the_best(tmp_path: Path) -> None:
    assert paid_for(tmp_path, 30, 26, 25, 24, 11, 10, 0) == {
        "W0": (30, 20, 0),
        "W1": (30, 0, 0),
        "W2": (30, 0, 0),
        "W3": (28, 0, 0),
        "W4": (2, 0, 0),
        "W5": (0, 0, 1),
        "W6": (0, 0, 1),
    }
    assert paid_for(tmp_path, 12, 12) == {"W0": (4, 20, 0), "W1": (4, 0, 0)}
    assert paid_for(tmp_path, 25, 25, pay=PayPolicy(answer=1, thanks=0)) == {"W0": (15, 20, 0), "W1": (15, 0, 0)}
    assert paid_for(tmp_path, 12, 9, hits=[0, 1]) == {"W0": (4, 20, 0), "W1": (0, 20, 0)}
    assert paid_for(tmp_path, 0, 0) == {"W0": (0, 0, 1), "W1": (0, 0, 1)}
    twice = collected(tmp_path, assignment("W", {1: []}), assignment("W", {1: []}, hit=1), records=TWO, per_hit=1)
    assert [(one.assignment, one.thanks) for one in count_bonuses(twice, PayPolicy())] == [("A-W-0", 1)], "thanked once"


@given(st.lists(st.integers(0, 40), min_size=1, max_size=5))
def test_no_bonus_is_more_than_the_policy_says_and_the_sum_is_exact(counts: list[int]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        owed = paid_for(Path(folder), *counts)
    assert all(0 <= answers <= 30 and best in {0, 20} for answers, best, _ in owed.values())
    assert sum(best for _, best, _ in owed.values()) == (20 if max(counts) else 0)
    assert sum(answers for answers, _, _ in owed.values()) == 2 * sum(min(max(0, count - 10), 15) for count in counts)
    assert len(owed) == len(counts)  # each gets something


def test_what_was_sent_is_not_paid_again(tmp_path: Path) -> None:
    answers = {1: [f"thing{number}" for number in range(25)]}
    found = collected(tmp_path, assignment("W", answers), assignment("V", {1: ["dog"]}))
    bonuses = count_bonuses(found, PayPolicy())
    assert write_bonuses(tmp_path / "b.jsonl", bonuses) == 51
    rows = [json.loads(line) for line in (tmp_path / "b.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(row["UniqueRequestToken"], row["BonusAmount"]) for row in rows] == [("A-W-0", "0.50"), ("A-V-0", "0.01")]
    assert rows[0]["Reason"] == "0.30 dollars for 25 correct answers in this HIT. 0.20 dollars for the most correct answers in this HIT."
    assert unpaid(bonuses, read_paid([tmp_path / "b.jsonl"])) == []
    assert [one.worker for one in unpaid(bonuses, ({"A-W-0"}, {"W"}))] == ["V"]
    assert unpaid(bonuses, ({"A-W-0", "other"}, {"W", "V"})) == []
    (tmp_path / "b.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match="line 1: it is no bonus"):
        read_paid([tmp_path / "b.jsonl"])


@pytest.mark.parametrize(("cents", "expected"), [(0, "0.00"), (1, "0.01"), (30, "0.30"), (105, "1.05"), (123456, "1234.56")])
def test_cents_are_written_as_dollars(cents: int, expected: str) -> None:
    assert dollars(cents) == expected


# ---------------------------------------------------------------- policy


def test_a_policy_names_what_differs_from_the_papers(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text('countries = ["GB"]\ndisqualified = ["W"]\n[pay]\nanswer = 1\n', encoding="utf-8")
    policy = read_policy(path)
    assert (policy.countries, policy.workers_per_hit, policy.pay.answer, policy.pay.hit) == (("GB",), 9, 1, 20)
    write_qualifications(tmp_path / "q.json", policy)
    rows = json.loads((tmp_path / "q.json").read_text(encoding="utf-8"))
    assert rows[0]["LocaleValues"] == [{"Country": "GB"}]
    assert [(row["QualificationTypeId"], row["Comparator"], row.get("IntegerValues")) for row in rows] == [
        ("00000000000000000071", "In", None),
        ("00000000000000000040", "GreaterThanOrEqualTo", [1000]),  # approved HITs
        ("000000000000000000L0", "GreaterThanOrEqualTo", [92]),  # percent of them
    ]
    write_qualifications(tmp_path / "anywhere.json", policy.model_copy(update={"countries": ()}))
    anywhere = json.loads((tmp_path / "anywhere.json").read_text(encoding="utf-8"))
    assert [row["IntegerValues"] for row in anywhere] == [[1000], [92]], "no country at all would let nobody work"
    base = WorkerPolicy(workers_per_hit=3, approved_hits=5)
    assert (read_policy(path, paper=base).workers_per_hit, read_policy(path, paper=base).countries) == (3, ("GB",))
    assert read_policy(None, paper=base) is base
    path.write_text("[review]\nreject_below = 1.5\n", encoding="utf-8")
    assert read_policy(path).review.reject_below == read_policy(path).review.warn_below == 1.5, "equal bounds: nobody is warned"
    paper = read_policy(None)
    assert (paper.countries, paper.approved_hits, paper.approval_percent, paper.pay.answer) == (("CA", "US"), 1000, 92, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("workers = 9", "policy.toml, workers: Extra inputs are not permitted"),
        ("[pay]\nanswer = 0.02", r"policy.toml, pay\.answer: Input should be a valid integer"),
        ("approval_percent = 101", "less than or equal to 100"),
        ('countries = ["Canada"]', "should match pattern"),
        ("[review]\nwarn_below = 0.5", "warn_below is less than"),
        ("a =", "is no TOML"),
        (f"a = {'[' * 500}{']' * 500}", "is no TOML"),
        (f"approved_hits = 1{'0' * 5000}", "is no TOML"),
    ],
)
def test_a_wrong_policy_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_policy(tmp_path / "policy.toml")


def test_a_mark_is_any_of_its_words_and_a_sheet_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    sheet = tmp_path / "marked.csv"
    rows = [("A", " Y "), ("A", "n"), ("B", ""), ("A", "y"), ("'=C", "Y"), ("B", "maybe")]
    sheet.write_text("worker_id,answer,correct?\n" + "".join(f"{name},x,{mark}\n" for name, mark in rows), encoding="utf-8-sig")
    assert read_marks(sheet) == {"A": 2, "B": 0, "=C": 1}
    sheet.write_bytes(b"worker_id,answer,correct?\n\xff,x,y\n")
    with pytest.raises(InputError, match=r"is not UTF-8 text \(byte 26\)"):
        read_marks(sheet)
    for read in (read_marks, lambda path: read_paid([path]), read_policy):
        with pytest.raises(InputError, match=r"none\.csv cannot be read: No such file"):
            read(tmp_path / "none.csv")  # type: ignore[operator]


def test_what_was_paid_is_that_of_all_files_and_a_damaged_line_is_named(tmp_path: Path) -> None:
    for number in (1, 2):
        row = {"AssignmentId": f"A{number}", "WorkerId": f"W{number}"}
        (tmp_path / f"{number}.jsonl").write_text(json.dumps(row) + "\n")
    paths = [tmp_path / "1.jsonl", tmp_path / "2.jsonl"]
    assert read_paid(paths) == ({"A1", "A2"}, {"W1", "W2"})
    assert read_paid([]) == (set(), set())
    for damage in ("{", "[1]", '"x"', "{}", '{"AssignmentId": "A"}', ""):
        paths[1].write_text(f'{{"AssignmentId": "A", "WorkerId": "W"}}\n{damage}\n')
        with pytest.raises(InputError, match=r"2\.jsonl, line 2: it is no bonus"):
            read_paid(paths)


def test_a_policy_that_asks_for_no_approved_hits_has_no_such_requirement(tmp_path: Path) -> None:
    for hits, kinds in (
        (0, ["00000000000000000071", "000000000000000000L0"]),
        (1, ["00000000000000000071", "00000000000000000040", "000000000000000000L0"]),
    ):
        write_qualifications(tmp_path / "q.json", WorkerPolicy(approved_hits=hits))
        assert [row["QualificationTypeId"] for row in json.loads((tmp_path / "q.json").read_text())] == kinds


def test_comments_of_workers_are_kept_and_are_nothing_that_was_left_out(tmp_path: Path) -> None:
    said = task_answers({1: ["a wolf", "it"], 2: ["a man", "a guy"]}, comments="thanks")
    results = read_results([write_results(tmp_path / "r.csv", TWO, [assignment("W", said)])])
    assert results.reasons()[COMMENT] == 1
    policy = WorkerPolicy(review=ReviewPolicy(questions=2))
    done = write_collected(tmp_path / "out" / "a.jsonl", results, policy, None, marks=None, paid=NOBODY, seed=0)
    assert (done.left_out, done.left_out_lines) == ({}, ())
    assert "thanks" in (tmp_path / "out" / "a.left-out.jsonl").read_text()
    (line,) = [line for line in done.lines() if line.startswith("Mark ")]
    assert line == f"Mark 4 answers in {tmp_path / 'out' / 'a.sheet.csv'} (y: correct), and give it with --reviewed."
