"""vip.review.question_state: what people choose, what they mark, and what is still asked of them"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.review.corpora import action
from tests.review.questions import open_questions, write_how2qa, write_options
from vip.errors import StoreError, UsageError
from vip.review.log import Action, StaleValueError
from vip.review.question_state import QuestionState, Way, shown_question


@pytest.fixture
def answers(tmp_path: Path) -> QuestionState:
    return open_questions(write_how2qa(tmp_path / "h.jsonl"), "answer")


@pytest.fixture
def check(tmp_path: Path) -> QuestionState:
    return open_questions(write_options(tmp_path / "o.csv"), "check")


def say(state: QuestionState, number: int, field: str, value: str | None, by: str = "Ann", before: str | None = None) -> object:
    return state.record([action(state.items[number].id, field, value, by=by, before=before)])[0]


def choose(state: QuestionState, number: int, **said: str) -> None:
    for name, value in said.items():
        say(state, number, "choice", value, name)


@pytest.mark.parametrize(
    ("said", "chosen"),
    [
        ({"Ann": "1", "Ben": "1", "Cem": "2"}, 1),
        ({"Ann": "1", "Ben": "2", "Cem": "3"}, None),
        ({"Ann": "1", "Ben": "2"}, None),
        ({"Ann": "3"}, 3),
        ({"Ann": "unavailable", "Ben": "2", "Cem": "2"}, 2),
        ({"Ann": "unavailable"}, None),
        ({}, None),
    ],
)
def test_more_than_half_are_a_majority(answers: QuestionState, said: dict[str, str], chosen: int | None) -> None:
    choose(answers, 0, **said)
    assert answers.majority(answers.items[0]) == chosen


def test_who_answers_does_not_see_the_right_option_or_what_others_chose(answers: QuestionState) -> None:
    choose(answers, 0, Ann="2")
    shown = shown_question(answers, 0, "Ben")
    assert shown["choice"] is None
    assert "answer" not in shown
    assert shown_question(answers, 0, "Ann")["choice"] == "2"


def test_a_question_is_asked_of_so_many_people(tmp_path: Path) -> None:
    state = open_questions(write_how2qa(tmp_path / "h.jsonl"), "answer", judgements=2)
    choose(state, 0, Ann="1", Ben="1")
    assert state.next_open("Cem") == 1
    assert state.progress("Cem") == {"done": 0, "total": 2}
    assert state.progress("Ann") == {"done": 1, "total": 3}
    choose(state, 1, Cem="1")
    assert state.next_open("Cem", after=2) is None or state.next_open("Cem", after=1) == 2
    choose(state, 2, Cem="0")
    assert state.next_open("Cem") is None


def test_the_next_question_is_the_first_open_one_behind_and_then_from_the_start(answers: QuestionState) -> None:
    choose(answers, 1, Ann="0")
    assert [answers.next_open("Ann", after) for after in (-1, 0, 1, 2)] == [0, 2, 2, 0]


@pytest.mark.parametrize(
    ("field", "value"),
    [("choice", "4"), ("choice", "19"), ("choice", "-1"), ("choice", "x"), ("checked", "yes"), ("mark.0", "bad"), ("option.0", "x")],
)  # fmt: skip
def test_what_cannot_be_chosen_is_refused(answers: QuestionState, field: str, value: str) -> None:
    with pytest.raises(UsageError):
        say(answers, 0, field, value)


@pytest.mark.parametrize(
    ("field", "value"),
    [("choice", "1"), ("mark.5", "bad"), ("mark.0", "good"), ("option.5", "x"), ("option.0", " "), ("option.0", "x" * 501)],
)  # fmt: skip
def test_what_cannot_be_said_of_options_is_refused(check: QuestionState, field: str, value: str) -> None:
    with pytest.raises(UsageError):
        say(check, 0, field, value, before=None)


def test_an_option_that_half_of_those_who_checked_mark_is_rejected(check: QuestionState) -> None:
    item = check.items[0]
    for name in ("Ann", "Ben", "Cem"):
        say(check, 0, "checked", "yes", name)
    say(check, 0, "mark.2", "bad", "Ann")
    assert check.rejected(item) == []
    say(check, 0, "mark.2", "right too", "Ben")
    assert check.rejected(item) == [2]
    say(check, 0, "mark.2", None, "Ben")
    assert check.rejected(item) == []


def test_the_mark_of_somebody_who_is_not_done_does_not_count(check: QuestionState) -> None:
    say(check, 0, "checked", "yes", "Ann")
    say(check, 0, "mark.2", "bad", "Ben")
    assert check.rejected(check.items[0]) == []


def test_an_option_that_is_changed_opens_the_question_again_and_marks_of_the_old_text_no_longer_count(check: QuestionState) -> None:
    item = check.items[0]
    say(check, 0, "mark.2", "bad", "Ann")
    say(check, 0, "mark.3", "bad", "Ann")
    say(check, 0, "checked", "yes", "Ann")
    assert isinstance(say(check, 0, "option.2", "to  swim", "Ben", before="wrong 2"), Action)
    assert check.options(item)[2] == "to swim"
    assert (check.marks(item, 2), check.marks(item, 3)) == ({}, {"Ann": "bad"})
    assert check.done_by(item) == []
    say(check, 0, "checked", "yes", "Ben")
    assert check.done_by(item) == ["Ben"]
    assert check.is_open(item, "Ann")


def test_of_two_who_change_an_option_the_second_sees_what_the_first_wrote(check: QuestionState) -> None:
    say(check, 0, "option.2", "to swim", "Ben", before="wrong 2")
    second = say(check, 0, "option.2", "to fly", "Ann", before="wrong 2")
    assert isinstance(second, StaleValueError)
    assert second.current == "to swim"


def test_a_change_is_undone(check: QuestionState) -> None:
    say(check, 0, "option.2", "to swim", "Ben", before="wrong 2")
    check.undo("Ben", "u1")
    assert check.options(check.items[0])[2] == "wrong 2"
    check.redo("Ben", "u2")
    assert check.options(check.items[0])[2] == "to swim"


def test_control_characters_are_not_kept(check: QuestionState) -> None:
    say(check, 0, "option.2", "a\x1b[31m\nb", before="wrong 2")
    assert "\x1b" not in check.options(check.items[0])[2]
    assert "\n" not in check.options(check.items[0])[2]
    say(check, 0, "comment", "first\r\nsecond\x07")
    assert (check.value(check.items[0].id, "comment", "Ann") or "").startswith("first\nsecond")


@pytest.mark.parametrize("judgements", [None, 1, 2])
@pytest.mark.parametrize("way", ["answer", "check"])
def test_the_counts_are_those_of_all_questions(tmp_path: Path, way: Way, judgements: int | None) -> None:
    state = open_questions(write_options(tmp_path / "options.csv", 6), way, judgements=judgements)
    chance, people = Random(1), ("Ann", "Bob", "Eve")
    for step in range(150):
        item, who = chance.choice(state.items), chance.choice(people)
        if chance.random() < 0.2:
            state.undo(who, f"undo{step}")
        elif way == "answer":
            state.record([action(item.id, "choice", chance.choice([None, "0", "1", "unavailable"]), by=who)])
        elif chance.random() < 0.3:
            state.record([action(item.id, "option.0", f"text {step}", by=who, before=state.options(item)[0])])
        else:
            state.record([action(item.id, "checked", chance.choice([None, "yes"]), by=who)])
        done = {item.id: finished(state, item.id, way) for item in state.items}
        for name in people:
            is_open = [name not in done[item.id] and (judgements is None or len(done[item.id]) < judgements) for item in state.items]
            own = sum(name in some for some in done.values())
            assert state.progress(name) == {"done": own, "total": own + sum(is_open)}
            assert state.next_open(name) == (is_open.index(True) if any(is_open) else None)


def finished(state: QuestionState, item: str, way: Way) -> set[str]:
    """Who is done with a question, from the log alone."""
    done: dict[str, bool] = {}
    for row in state.log.read():
        if row.item == item and row.field == "choice":
            done[row.reviewer] = row.after is not None
        elif row.item == item and row.field == "checked":
            done[row.reviewer] = row.after == "yes"
        elif row.item == item and row.field.startswith("option."):
            done = {}
    return {name for name, is_done in done.items() if is_done}


@pytest.mark.parametrize(("field", "value"), [("choice", "9"), ("choice", "1000000000000"), ("choice", "maybe"), ("choice", "-1")])
def test_a_log_of_a_stranger_with_an_impossible_choice_is_damaged(field: str, value: str, answers: QuestionState) -> None:
    answers.log.append([action(answers.items[0].id, field, value)])
    with pytest.raises(StoreError, match=r"is damaged \(action 1 has a value"):
        answers.catch_up()


@pytest.mark.parametrize(("field", "most"), [("option.0", 500), ("comment", 20_000)])
def test_a_log_of_a_stranger_with_a_text_that_is_too_long_is_damaged(field: str, most: int, check: QuestionState) -> None:
    check.log.append([action(check.items[0].id, field, "x" * most)])
    check.catch_up()
    check.log.append([action(check.items[0].id, field, "x" * (most + 1))])
    with pytest.raises(StoreError, match=r"is damaged \(action 2 has a value"):
        check.catch_up()


@pytest.mark.parametrize(("way", "field", "value"), [("answer", "choice", "1"), ("check", "checked", "yes")])
def test_of_very_many_people_each_is_counted_once(
    way: Way, field: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log of a stranger with 1,200 people for each of six questions took three seconds to open, with time that grew with the square."""
    state = open_questions(write_options(tmp_path / "options.csv", 1), way, judgements=2)
    state.log.append([action(state.items[0].id, field, value, by=f"p{number:03}") for number in range(300)])
    anew: list[int] = []
    count = QuestionState._count
    monkeypatch.setattr(QuestionState, "_count", lambda state, item, step: (anew.append(step), count(state, item, step)))
    state.catch_up()
    assert len(anew) == 4, "as the question has one person, and as it has two"
    assert len(state.done_by(state.items[0])) == 300
    assert {state.progress(f"p{number:03}")["done"] for number in range(300)} == {1}
