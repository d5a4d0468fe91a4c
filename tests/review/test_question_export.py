"""vip.review.question_export: what vip score and vip samples read of what people said"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.review.corpora import action
from tests.review.questions import open_questions, write_how2qa, write_options
from tests.review.test_answer_items import SAMPLES, judge, opened, write
from vip.cli.app import run
from vip.errors import InputError, UsageError
from vip.review.question_export import (
    accuracy_by_reviewer,
    accuracy_of_majority,
    export_questions,
    make_question_report,
    question_report_lines,
)
from vip.review.question_state import QuestionState
from vip.tasks.files import is_trusted, read_predictions, read_samples
from vip.tasks.judge import read_labels


def say(state: QuestionState, number: int, field: str, value: str | None, by: str = "Ann", before: str | None = None) -> None:
    state.record([action(state.items[number].id, field, value, by=by, before=before)])


def answered(path: Path) -> QuestionState:
    """Three questions, whose first option is right: answered rightly, without a majority, and by nobody."""
    state = open_questions(write_how2qa(path), "answer")
    for name, choice in (("Ann", "0"), ("Ben", "0"), ("Cem", "1")):
        say(state, 0, "choice", choice, name)
    for name, choice in (("Ann", "0"), ("Ben", "1"), ("Cem", "2")):
        say(state, 1, "choice", choice, name)
    return state


def test_the_majority_is_a_row_that_vip_score_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    state = answered(Path("how2qa_val.jsonl"))
    done = export_questions(state, Path("human.jsonl"), source=Path("how2qa_val.jsonl"))
    assert (done.written, done.left_out) == (1, 2)
    rows = list(read_predictions(Path("human.jsonl")))
    assert [(row.sample_id, row.value, row.status) for row in rows] == [("0", 0, "ok"), ("1", None, "unparsed"), ("2", None, "missing")]
    assert rows[0].raw == "2 × option 0, 1 × option 1"
    assert done.next == "`vip score human.jsonl --task value-how2qa --annotations how2qa_val.jsonl`"
    assert run(done.next.strip("`").split()[1:]) == 0
    assert "33.33" in capsys.readouterr().out


def test_samples_are_scored_by_their_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    write_options(Path("options.csv"))
    assert run(["samples", "options.csv", "--task", "nextqa-mc", "-o", "s.jsonl", "-q"]) == 0
    state = open_questions(Path("s.jsonl"), "answer")
    for number in range(3):
        say(state, number, "choice", str(number))
    done = export_questions(state, Path("human.jsonl"), source=Path("s.jsonl"))
    assert done.next == "`vip score human.jsonl --samples s.jsonl`"
    assert run(done.next.strip("`").split()[1:]) == 0
    assert "100.00" in capsys.readouterr().out


def test_good_questions_are_written_as_they_came_in_and_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    state = open_questions(write_options(Path("options.csv"), 5), "check")
    say(state, 1, "option.0", 'to "swim", fast', before="wrong 0")
    say(state, 2, "mark.0", "right too")
    say(state, 2, "comment", "the same")
    say(state, 3, "option.0", "Right  3", before="wrong 0")
    for number in range(4):
        say(state, number, "checked", "yes")
    done = export_questions(state, Path("checked.csv"), source=Path("options.csv"))
    assert (done.written, done.left_out) == (2, 3)
    assert run([*done.next.strip("`").split()[1:], "-o", "s.jsonl", "-q"]) == 0
    samples = list(read_samples(Path("s.jsonl")))
    assert [sample.id for sample in samples] == ["v0_0", "v1_1"]
    assert samples[1].ask.options[0] == 'to "swim", fast'  # type: ignore[union-attr]
    left_out = [json.loads(line) for line in Path("checked.left-out.jsonl").read_text().splitlines()]
    assert [(row["id"], row["reason"], row["changed"]) for row in left_out] == [
        ("v2_2", "marked: option 0: right too", []),
        ("v3_3", "two options are the same", [0]),
        ("v4_4", "nobody has checked it", []),
    ]
    assert left_out[0]["comments"] == {"Ann": "the same"}
    assert left_out[1]["options"][:2] == ["Right 3", "wrong 1"], "as they are now"


def test_checked_samples_stay_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["samples", str(write_options(tmp_path / "options.csv")), "--task", "nextqa-mc", "-o", "s.jsonl", "-q"]) == 0
    state = open_questions(Path("s.jsonl"), "check")
    say(state, 0, "option.1", "to swim", before="wrong 1")
    say(state, 0, "checked", "yes")
    export_questions(state, Path("checked.jsonl"), source=Path("s.jsonl"))
    (sample,) = read_samples(Path("checked.jsonl"))
    (first, *_) = read_samples(Path("s.jsonl"))
    assert sample.ask.options == ("right 0", "to swim", "wrong 2", "wrong 3", "wrong 4")  # type: ignore[union-attr]
    assert sample.model_copy(update={"ask": first.ask}) == first
    assert is_trusted(Path("checked.jsonl")), "it was made here"


def test_checked_samples_of_a_stranger_stay_a_strangers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["samples", str(write_options(tmp_path / "options.csv")), "--task", "nextqa-mc", "-o", "s.jsonl", "-q"]) == 0
    Path("theirs.jsonl").write_bytes(Path("s.jsonl").read_bytes().replace(b'"video"', b' "video"'))
    state = open_questions(Path("theirs.jsonl"), "check")
    say(state, 0, "checked", "yes")
    export_questions(state, Path("checked.jsonl"), source=Path("theirs.jsonl"))
    assert len(list(read_samples(Path("checked.jsonl")))) == 1
    assert not is_trusted(Path("checked.jsonl")), "it may name pictures of any folder"


def test_no_id_of_a_sample_is_a_formula_and_one_that_a_terminal_obeys_is_not_written(tmp_path: Path) -> None:
    ids = ["=1+1", "\u202f „so“, 👨‍👩‍👧", "\x1b]0;t\x07", "two\nlines", "\u202e"]
    some = [one.model_copy(update={"id": id_}) for one, id_ in zip(SAMPLES, ids, strict=True)]
    path, samples = write(tmp_path, words=["a dog"] * 4, samples=some)
    state = opened(path, samples)
    for number in range(4):
        judge(state, number, Ann="correct")
    done = export_questions(state, tmp_path / "people.csv", source=path, samples=samples)
    assert (done.written, done.left_out) == (2, 2)
    assert read_labels(tmp_path / "people.csv") == {ids[0]: True, ids[1]: True}
    assert "\n'=1+1,yes" in (tmp_path / "people.csv").read_text(), "no formula"


@pytest.mark.parametrize(("name", "message"), [("a.csv", r"Name a file with \.jsonl"), ("there.jsonl", "exists already")])
def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, name: str, message: str) -> None:
    state = answered(tmp_path / "h.jsonl")
    (tmp_path / "there.jsonl").write_text("mine")
    with pytest.raises(UsageError, match=message):
        export_questions(state, tmp_path / name, source=tmp_path / "h.jsonl")
    assert (tmp_path / "there.jsonl").read_text() == "mine"


def test_the_list_of_what_is_left_out_is_not_replaced_unasked_either(tmp_path: Path) -> None:
    state = open_questions(write_options(tmp_path / "o.csv"), "check")
    say(state, 0, "checked", "yes")
    (tmp_path / "checked.left-out.jsonl").write_text("mine")
    with pytest.raises(UsageError, match=r"left-out\.jsonl exists already"):
        export_questions(state, tmp_path / "checked.csv", source=tmp_path / "o.csv")
    assert not (tmp_path / "checked.csv").exists()
    export_questions(state, tmp_path / "checked.csv", source=tmp_path / "o.csv", overwrite=True)
    assert len((tmp_path / "checked.left-out.jsonl").read_text().splitlines()) == 2


def test_nothing_is_written_of_what_nobody_said(tmp_path: Path) -> None:
    state = open_questions(write_options(tmp_path / "o.csv"), "check")
    say(state, 0, "mark.2", "bad")
    with pytest.raises(InputError, match="Nobody has finished a question"):
        export_questions(state, tmp_path / "checked.csv", source=tmp_path / "o.csv")


def test_accuracy_is_of_the_questions_that_a_person_answered(tmp_path: Path) -> None:
    state = answered(tmp_path / "h.jsonl")
    assert {name: value.value for name, value in accuracy_by_reviewer(state).items()} == {"Ann": 1.0, "Ben": 0.5, "Cem": 0.0}
    assert accuracy_of_majority(state).value == 0.5  # type: ignore[union-attr]


def test_the_report_says_how_well_people_agree(tmp_path: Path) -> None:
    pytest.importorskip("krippendorff")
    state = answered(tmp_path / "h.jsonl")
    report = make_question_report(state)
    assert (report["agreement"]["items"], report["agreement"]["raw"]) == (2, pytest.approx(1 / 6))
    assert report["majority"]["value"] == 0.5
    lines = list(question_report_lines(state))
    assert lines[0] == "3 questions"
    assert lines[1].startswith("  Ann: 2 answered, 100.00 % right")
    assert lines[4].startswith("  majority: 50.00 % right")
    assert lines[4].endswith("1 without one")
    assert all("-" not in line.partition("[")[2] for line in lines[:5])  # no interval below zero


def test_the_report_of_checked_options_counts_what_was_found(tmp_path: Path) -> None:
    pytest.importorskip("krippendorff")
    state = open_questions(write_options(tmp_path / "o.csv"), "check")
    for name in ("Ann", "Ben"):
        say(state, 0, "checked", "yes", name)
        say(state, 1, "checked", "yes", name)
    say(state, 0, "mark.1", "bad")
    report = make_question_report(state)
    assert report["found"] == {"marked": 1, "good": 1, "nobody has checked it": 1}
    assert report["agreement"]["items"] == 10  # options
    assert "  1 good" in list(question_report_lines(state))


def test_a_report_of_very_many_people_reads_each_answer_a_few_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = open_questions(write_how2qa(tmp_path / "h.jsonl"), "answer")
    state.record([action(item.id, "choice", "0", by=f"p{number:02}") for item in state.items for number in range(60)])
    read: list[str] = []
    votes = QuestionState.votes
    monkeypatch.setattr(QuestionState, "votes", lambda state, item: read.append(item.id) or votes(state, item))
    lines = list(question_report_lines(state))
    assert sum("100.00 % right" in line for line in lines) == 61, "each, and the majority"
    assert len(read) <= 10 * len(state.items)
