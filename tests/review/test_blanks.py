"""vip.review.blanks: what people fill blanks with, and the results that vip fiber collect reads"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.review.corpora import action
from vip.errors import InputError, StoreError, UsageError
from vip.review.blanks import BlankState, export_answers, log_path, read_items, shown_item
from vip.review.log import ReviewLog
from vip.tasks.fiber.results import read_results

NAMES = ("a dog", "two boys", "the <b>ball</b>", "=1+1", "a girl", "some men", "人")


def write_blanks(path: Path, count: int = 7) -> Path:
    rows = [
        {
            **{"video_id": f"v{number}", "video_start_time": number, "video_end_time": number + 10},
            **{"caption": f"{label} runs & falls.", "masked_caption": "_____ runs & falls.", "label": label},
        }
        for number, label in enumerate(NAMES[:count])
    ]
    path.write_text(json.dumps(rows))
    return path


def open_blanks(tmp_path: Path, count: int = 7) -> BlankState:
    blanks = write_blanks(tmp_path / "blanks.json", count)
    return BlankState(read_items(blanks, None), ReviewLog(log_path(blanks)))


def fill(state: BlankState, number: int, *answers: str, reviewer: str = "Ann") -> None:
    item = state.items[number].id
    state.record([action(item, "answers", "\n".join(answers), by=reviewer)])


def test_blanks_are_shown_five_together(tmp_path: Path) -> None:
    state = open_blanks(tmp_path)
    assert [len(hit) for hit in state.hits] == [5, 2]
    assert state.first_open("Ann") == 0
    for number in range(5):
        fill(state, number, "a cat", "the dog")
    assert state.first_open("Ann") == 1
    assert state.first_open("Ben") == 0


def test_blanks_of_which_some_are_filled_are_shown_again(tmp_path: Path) -> None:
    state = open_blanks(tmp_path)
    for number in range(6):
        if number != 2:
            fill(state, number, "a cat", "the dog")
    assert state.first_open("Ann") == 0
    fill(state, 2, "a cat", "the dog")
    assert state.first_open("Ann") == 1
    fill(state, 6, "a cat", "the dog")
    assert state.first_open("Ann") == 1, "the last, where all are filled"


def test_two_answers_are_asked_for(tmp_path: Path) -> None:
    state = open_blanks(tmp_path)
    fill(state, 0, "a cat")
    assert not state.is_done(state.items[0], "Ann")
    fill(state, 0, "a cat", "a dog")
    assert state.is_done(state.items[0], "Ann")


@pytest.mark.parametrize("answers", [("a cat", "The cat!"), ("a cat", "the"), ("x" * 501, "a cat")])
def test_answers_that_the_page_refuses_are_refused_by_the_server_too(tmp_path: Path, answers: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        fill(open_blanks(tmp_path), 0, *answers)


def test_space_and_control_characters_are_left_out(tmp_path: Path) -> None:
    state = open_blanks(tmp_path)
    fill(state, 0, "  a \x1b[31m red   cat ", "a dog")
    assert state.answers(state.items[0], "Ann")[1] == "a dog"
    assert "\x1b" not in state.answers(state.items[0], "Ann")[0]


def test_there_is_no_other_field(tmp_path: Path) -> None:
    state = open_blanks(tmp_path)
    with pytest.raises(UsageError, match="There is no field"):
        state.record([action(state.items[0].id, "verdict", "good")])


def test_each_person_sees_their_own_answers(tmp_path: Path) -> None:
    state = open_blanks(tmp_path)
    fill(state, 0, "a cat", "a dog")
    assert state.answers(state.items[0], "Ben") == []


def test_what_is_exported_is_what_collect_reads(tmp_path: Path) -> None:
    state = open_blanks(tmp_path)
    for number in range(7):
        fill(state, number, "a cat", f"thing {number}", "=HYPERLINK(1)")
    fill(state, 2, "balls", "a ball", reviewer="=Ben")
    assert export_answers(state, tmp_path / "results.csv") == 3
    found = read_results([tmp_path / "results.csv"])
    assert not found.left_out
    assert sorted(assignment.worker for assignment in found.assignments.values()) == ["'=Ben", "Ann", "Ann"]
    answered = {
        (found.questions[one.hit][place].video_id, one.worker): answers
        for one in found.assignments.values()
        for place, answers in one.answers.items()
    }
    assert answered["v6", "Ann"] == ("a cat", "thing 6", "=HYPERLINK(1)")
    assert answered["v2", "'=Ben"] == ("balls", "a ball")
    asked = {record.video_id: record for hit in found.questions.values() for record in hit.values()}
    assert asked["v2"] == state.items[2].record
    assert asked["v3"].label == "=1+1"
    with (tmp_path / "results.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)


def test_answers_are_named_as_on_mechanical_turk(tmp_path: Path) -> None:
    state = open_blanks(tmp_path)
    fill(state, 1, "a cat", "a mouse")
    fill(state, 5, "a bird", "a fish")
    assert export_answers(state, tmp_path / "results.csv") == 2
    with (tmp_path / "results.csv").open(newline="") as file:
        sent = [json.loads(row["Answer.taskAnswers"]) for row in csv.DictReader(file)]
    assert sent == [
        [{"answer-2-0": "a cat", "answer-2-1": "a mouse", "comments": ""}],  # questions from 1, answers from 0
        [{"answer-1-0": "a bird", "answer-1-1": "a fish", "comments": ""}],
    ]


def test_the_same_answers_are_the_same_assignments(tmp_path: Path) -> None:
    state = open_blanks(tmp_path)
    fill(state, 0, "a cat", "a dog")
    export_answers(state, tmp_path / "once.csv")
    with pytest.raises(UsageError, match="is there already"):
        export_answers(state, tmp_path / "once.csv")
    export_answers(state, tmp_path / "once.csv", overwrite=True)
    assert len(read_results([tmp_path / "once.csv", tmp_path / "once.csv"]).assignments) == 1


def test_nothing_to_write_is_said(tmp_path: Path) -> None:
    state = open_blanks(tmp_path)
    with pytest.raises(InputError, match="Nobody has answered anything yet"):
        export_answers(state, tmp_path / "r.csv")
    with pytest.raises(UsageError, match=r"Name a file with \.csv"):
        export_answers(state, tmp_path / "r.jsonl")


def test_clips_are_found_by_the_name_of_the_clip_or_the_video(tmp_path: Path) -> None:
    clips = tmp_path / "clips"
    clips.mkdir()
    for name in ("v0_000000_000010.mp4", "v0.mp4", "v1.webm", "v2.txt"):
        (clips / name).write_bytes(b"x")
    items = read_items(write_blanks(tmp_path / "b.json"), clips)
    assert [item.video and item.video.name for item in items[:3]] == ["v0_000000_000010.mp4", "v1.webm", None]


def test_a_file_of_the_clip_alone_plays_from_its_own_start(tmp_path: Path) -> None:
    clips = tmp_path / "clips"
    clips.mkdir()
    for name in ("v1_000001_000011.mp4", "v2.mp4"):
        (clips / name).write_bytes(b"x")
    blanks = write_blanks(tmp_path / "b.json")
    state = BlankState(read_items(blanks, clips), ReviewLog(log_path(blanks)))
    shown = [shown_item(state, number, 1) for number in (1, 2)]
    assert [(one["start_s"], one["end_s"]) for one in shown] == [(None, None), (2, 12)]


def test_a_blank_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = write_blanks(tmp_path / "b.json", 2)
    rows = json.loads(path.read_text())
    path.write_text(json.dumps([*rows, rows[0]]))
    with pytest.raises(InputError, match="has the blank of v0_000000_000010 twice"):
        read_items(path, None)


@pytest.mark.parametrize(("field", "text"), [("answers", "x" * 501), ("answers", "\n".join("x" * 101)), ("comment", "x" * 20_001)])
def test_a_log_of_a_stranger_with_a_text_that_is_too_long_is_damaged(field: str, text: str, tmp_path: Path) -> None:
    state = open_blanks(tmp_path)
    fill(state, 0, *(f"{number:03}" + "x" * 497 for number in range(100)))
    state.log.append([action(state.items[0].id, field, text)])
    with pytest.raises(StoreError, match=r"is damaged \(action 2 has a value"):
        state.catch_up()


def test_answers_and_names_of_a_stranger_do_nothing_to_a_terminal_and_are_no_formulas(tmp_path: Path) -> None:
    state, hostile = open_blanks(tmp_path, 1), "\x1b]0;x\x07\x9b31m\u202ed"
    for field in ("answers", "comment"):
        state.log.append([action(state.items[0].id, field, f"=1+1{hostile}", by=f"=cmd{hostile}")])
    export_answers(state, tmp_path / "results.csv")
    text = (tmp_path / "results.csv").read_text()
    assert all(letter.isprintable() for letter in text.replace("\n", ""))
    (row,) = csv.DictReader(text.splitlines())
    assert row["WorkerId"] == "'=cmdd"
    assert json.loads(row["Answer.taskAnswers"]) == [{"answer-1-0": f"=1+1{hostile}", "comments": f"=1+1{hostile}"}]


def test_an_export_of_very_many_people_looks_only_at_what_each_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """3,000 people who filled one blank each took nine seconds, with time that grew with the square."""
    state, looked = open_blanks(tmp_path), list[str]()
    for number in range(40):
        fill(state, 6, "a cat", "a dog", reviewer=f"p{number:02}")
    answers = BlankState.answers
    monkeypatch.setattr(BlankState, "answers", lambda state, item, who: looked.append(item.id) or answers(state, item, who))
    assert export_answers(state, tmp_path / "results.csv") == 40
    assert len(looked) == 40 * len(state.hits[1]), "of the second HIT alone"
