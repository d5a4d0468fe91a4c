"""What a log says, whatever is reviewed: shared and own values, undo and redo of each reviewer, and a log that others write to."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from vip.errors import StoreError, UsageError
from vip.review.log import NAME, Action, NewAction, ReviewLog, StaleValueError
from vip.review.log_state import LogState

NUMBERS = {"a": 0, "b": 1}


class State(LogState):
    """A small review: all share the field `text`, each has a `mark`; `bad` is no value of a mark, nor is "BAD" in a log."""

    def is_shared(self, field: str) -> bool:
        return field == "text"

    def clean_value(self, field: str, value: str | None) -> str | None:
        if value == "bad":
            raise UsageError("There is no such mark.")
        return value and value.strip()

    def original(self, item: str, field: str) -> str | None:
        return f"original of {item}"

    def is_possible(self, action: Action) -> bool:
        return action.after != "BAD"


class PlainState(LogState):
    """A review that says no more than it has to."""

    def is_shared(self, field: str) -> bool:
        return field == "text"

    def clean_value(self, field: str, value: str | None) -> str | None:
        return value


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / NAME


@pytest.fixture
def state(path: Path) -> State:
    return State(ReviewLog(path), NUMBERS)


uids: Iterator[int] = count()


def new(item: str, field: str, after: str | None, before: str | None = None, *, by: str = "Ann", batch: str | None = None) -> NewAction:
    return NewAction(uid=f"n{next(uids)}", reviewer=by, item=item, field=field, before=before, after=after, batch=batch)


def undo(state: State, by: str = "Ann") -> Action | StaleValueError | None:
    return state.undo(by, f"n{next(uids)}")


def redo(state: State, by: str = "Ann") -> Action | StaleValueError | None:
    return state.redo(by, f"n{next(uids)}")


def mark(state: State, *values: str | None, item: str = "a", by: str = "Ann") -> None:
    for value in values:
        state.record([new(item, "mark", value, by=by)])


def values(found: list[Action | StaleValueError]) -> list[tuple[int, str | None, str | None]]:
    return [(one.number, one.before, one.after) for one in found if isinstance(one, Action)]


# ---------------------------------------------------------------- values


def test_a_shared_value_is_the_original_until_it_is_changed_even_to_nothing(state: State) -> None:
    assert state.value("a", "text") == "original of a"
    state.record([new("a", "text", None, "original of a")])
    assert state.value("a", "text") is None
    assert state.value("b", "text") == "original of b"


def test_a_review_without_originals_begins_with_nothing_and_takes_any_value(path: Path) -> None:
    plain = PlainState(ReviewLog(path), NUMBERS)
    assert plain.value("a", "text") is None
    assert values(plain.record([new("a", "text", "BAD")])) == [(1, None, "BAD")]
    assert plain.value("a", "text") == "BAD"


def test_a_shared_value_is_that_of_the_last_who_changed_it_whoever_asks(state: State) -> None:
    state.record([new("a", "text", "one", "original of a", by="Bob"), new("a", "text", "two", "one")])
    assert {state.value("a", "text", name) for name in ("", "Ann", "Bob", "Eve")} == {"two"}
    assert state.said("a", "text") == {}


def test_an_own_value_is_of_one_reviewer_one_item_and_one_field(state: State) -> None:
    state.record([new("a", "mark", "x"), new("a", "mark", "y", by="Bob"), new("b", "mark", "z"), new("a", "note", "n")])
    found = [state.value(*asked) for asked in (("a", "mark", "Ann"), ("a", "mark", "Bob"), ("b", "mark", "Ann"), ("a", "note", "Ann"))]
    assert found == ["x", "y", "z", "n"]
    assert [state.value(*asked) for asked in (("b", "mark", "Bob"), ("a", "mark", "Eve"), ("a", "mark"))] == [None, None, None]


def test_what_was_taken_back_is_said_no_more_but_an_empty_text_is(state: State) -> None:
    state.record([new("a", "mark", "x"), new("a", "mark", "", by="Bob"), new("a", "mark", "y", by="Eve"), new("a", "mark", None, by="Eve")])
    assert state.said("a", "mark") == {"Ann": "x", "Bob": ""}
    assert state.said("b", "mark") == {}


def test_the_reviewers_are_those_of_own_and_of_shared_values_each_once_in_order(state: State) -> None:
    state.record([new("a", "text", "t", "original of a", by="Zoe"), new("a", "mark", "x", by="Eve"), new("b", "mark", "x", by="Eve")])
    state.record([new("b", "text", "t", "original of b", by="Ann"), new("a", "mark", None, by="Bob")])
    assert list(state.reviewers()) == ["Ann", "Bob", "Eve", "Zoe"]


# ---------------------------------------------------------------- recording


def test_what_is_written_is_cleaned_and_has_the_true_value_before(state: State) -> None:
    mark(state, "x")
    (found,) = state.record([new("a", "mark", "  y ", "what the client thinks")])
    assert isinstance(found, Action)
    assert (found.number, found.before, found.after) == (2, "x", "y")


def test_actions_of_one_request_see_one_another(state: State) -> None:
    first, second, third = state.record(
        [new("a", "text", "one", "original of a"), new("a", "text", "two", "original of a"), new("a", "text", "three", "one")]
    )
    assert isinstance(second, StaleValueError)
    assert second.current == "one"
    assert values([first, third]) == [(1, "original of a", "one"), (2, "one", "three")]
    assert state.value("a", "text") == "three"


def test_of_own_values_nobody_has_to_know_the_one_before(state: State) -> None:
    mark(state, "x")
    assert values(state.record([new("a", "mark", "y", "something else")])) == [(2, "x", "y")]


def test_an_action_that_is_sent_twice_is_written_once(state: State) -> None:
    action = new("a", "text", "one", "original of a")
    assert state.record([action]) == state.record([action])
    assert state.last == 1
    assert undo(state) is not None
    assert state.can_undo("Ann") == (False, True)


@pytest.mark.parametrize("uid", ["", "x" * 65, "a b", "a/b", "ä", "a\n"])
def test_an_id_that_is_none_is_refused(uid: str, state: State) -> None:
    with pytest.raises(UsageError, match="1 to 64 letters"):
        state.clean(NewAction(uid=uid, reviewer="Ann", item="a", field="mark", before=None, after="x"))


@pytest.mark.parametrize("uid", ["x", "x" * 64, "A.b_c-9"])
def test_an_id_of_plain_letters_is_taken(uid: str, state: State) -> None:
    action = NewAction(uid=uid, reviewer="Ann", item="a", field="mark", before=None, after=" x ")
    assert state.clean(action) == NewAction(uid=uid, reviewer="Ann", item="a", field="mark", before=None, after="x")


@pytest.mark.parametrize("wrong", [new("c", "mark", "x"), new("a", "mark", "bad")])
def test_of_a_request_with_one_wrong_action_nothing_is_written(wrong: NewAction, state: State) -> None:
    with pytest.raises(UsageError):
        state.record([new("a", "mark", "x"), wrong])
    assert (list(state.log.read()), state.last, state.value("a", "mark", "Ann")) == ([], 0, None)


def test_what_could_not_be_written_is_forgotten(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second action of the request fails inside the transaction, when the first one was read already."""
    mark(state, "x")
    real = State._prepare

    def prepare(self: State, action: NewAction) -> NewAction:
        prepared = real(self, action)
        if action.item == "b":
            raise StoreError("the disk is full")
        return prepared

    monkeypatch.setattr(State, "_prepare", prepare)
    for first in (new("a", "mark", "y"), new("a", "mark", "y", by="Bob"), new("a", "text", "t", "original of a", batch="c")):
        with pytest.raises(StoreError, match="the disk is full"):
            state.record([first, new("b", "mark", "z")])
        assert (state.value("a", "mark", "Ann"), state.value("a", "text"), state.last) == ("x", "original of a", 1)
        assert (state.said("a", "mark"), state.shared, state.batches) == ({"Ann": "x"}, {}, {})
    monkeypatch.undo()
    assert undo(state) is not None
    assert state.value("a", "mark", "Ann") is None
    assert undo(state) is None


# ---------------------------------------------------------------- undo and redo


def test_undo_goes_back_step_by_step_and_redo_forth_in_the_same_order(state: State) -> None:
    mark(state, "x", "y", "z")
    seen = []
    for step in (undo, undo, undo, redo, redo, redo):
        step(state)
        seen.append(state.value("a", "mark", "Ann"))
    assert seen == ["y", "x", None, "x", "y", "z"]
    assert redo(state) is None
    assert state.can_undo("Ann") == (True, False)


def test_an_undo_is_an_action_that_names_the_one_it_takes_back(state: State) -> None:
    mark(state, "x", "y")
    found = state.undo("Ann", "mine")
    assert isinstance(found, Action)
    assert (found.uid, found.reviewer, found.item, found.field) == ("mine", "Ann", "a", "mark")
    assert (found.number, found.before, found.after, found.undoes, found.batch) == (3, "y", "x", 2, None)
    again = redo(state)
    assert isinstance(again, Action)
    assert (again.number, again.before, again.after, again.undoes) == (4, "x", "y", 3)


def test_each_reviewer_takes_back_only_what_is_their_own(state: State) -> None:
    mark(state, "x")
    mark(state, "y", by="Bob", item="b")
    assert state.can_undo("Eve") == (False, False)
    assert undo(state, "Eve") is None
    assert redo(state, "Bob") is None
    undo(state, "Bob")
    assert (state.value("a", "mark", "Ann"), state.value("b", "mark", "Bob")) == ("x", None)
    assert [state.can_undo(name) for name in ("Ann", "Bob")] == [(True, False), (False, True)]


def test_something_new_of_another_reviewer_leaves_what_can_be_redone(state: State) -> None:
    mark(state, "x")
    undo(state)
    mark(state, "y", by="Bob")
    assert state.can_undo("Ann") == (False, True)
    redo(state)
    assert state.value("a", "mark", "Ann") == "x"


def test_something_new_in_the_middle_ends_what_can_be_redone_but_not_what_can_be_undone(state: State) -> None:
    mark(state, "x", "y")
    undo(state)
    mark(state, "z")
    assert state.can_undo("Ann") == (True, False)
    undo(state)
    undo(state)
    assert state.value("a", "mark", "Ann") is None
    assert undo(state) is None


def test_an_undo_that_came_too_late_is_refused_and_can_be_tried_again(state: State) -> None:
    state.record([new("a", "text", "one", "original of a")])
    state.record([new("a", "text", "two", "one", by="Bob")])
    refused = undo(state)
    assert isinstance(refused, StaleValueError)
    assert refused.current == "two"
    assert state.can_undo("Ann") == (True, False)
    undo(state, "Bob")
    assert isinstance(undo(state), Action)
    assert state.value("a", "text") == "original of a"


def test_what_a_batch_changed_is_noted_and_no_step_of_its_reviewer(state: State) -> None:
    mark(state, "x")
    state.record([new(item, "text", "t", f"original of {item}", batch="first") for item in "ab"])
    state.record([new("a", "text", "u", "t", batch="second")])
    assert state.batches == {"first": [2, 3], "second": [4]}
    undo(state)
    assert (state.value("a", "mark", "Ann"), state.value("a", "text"), state.value("b", "text")) == (None, "u", "t")
    assert undo(state) is None


def test_a_batch_leaves_what_can_be_redone(state: State) -> None:
    mark(state, "x")
    undo(state)
    state.record([new("a", "text", "t", "original of a", batch="first")])
    assert state.can_undo("Ann") == (False, True)


# ---------------------------------------------------------------- others write too


def test_what_another_process_wrote_is_read_and_read_once(state: State, path: Path) -> None:
    mark(state, "x")
    other = State(ReviewLog(path), NUMBERS)
    mark(other, "y", "z")
    state.catch_up()
    state.catch_up()
    assert (state.last, state.value("a", "mark", "Ann"), state.batches) == (3, "z", {})
    seen = []
    for _ in range(3):
        undo(state)
        seen.append(state.value("a", "mark", "Ann"))
    assert (seen, undo(state)) == (["y", "x", None], None)


def test_undo_takes_back_what_the_reviewer_did_last_in_another_process(state: State, path: Path) -> None:
    mark(state, "x")
    mark(State(ReviewLog(path), NUMBERS), "y")
    found = undo(state)
    assert isinstance(found, Action)
    assert (found.undoes, found.after) == (2, "x")


def test_an_own_value_before_is_that_of_another_process(state: State, path: Path) -> None:
    mark(State(ReviewLog(path), NUMBERS), "x")
    assert values(state.record([new("a", "mark", "y")])) == [(2, "x", "y")]


def test_a_new_state_reads_the_whole_log(state: State, path: Path) -> None:
    state.record([new("a", "text", "t", "original of a", batch="c")])
    mark(state, "x", "y")
    undo(state)
    again = State(ReviewLog(path), NUMBERS)
    assert (again.last, again.shared, again.own, again.batches) == (4, state.shared, state.own, {"c": [1]})
    assert again.can_undo("Ann") == state.can_undo("Ann") == (True, True)


def test_a_log_with_a_value_that_cannot_be_is_refused_by_its_number_and_field(path: Path) -> None:
    log = ReviewLog(path)
    log.append([new("a", "mark", "x"), new("a", f"\x1b[31mm{'m' * 50}", "BAD"), new("b", "mark", "y")])
    with pytest.raises(StoreError) as raised:
        State(log, NUMBERS)
    assert str(raised.value) == (
        f"{path} is damaged (action 2 has a value that '{'m' * 40}' does not have). Rename it, or restore it from a copy."
    )


def test_an_item_that_was_removed_may_still_be_in_the_log(path: Path) -> None:
    log = ReviewLog(path)
    log.append([new("gone", "mark", "x"), new("a", "mark", "y")])
    state = State(log, NUMBERS)
    assert (state.value("gone", "mark", "Ann"), state.value("a", "mark", "Ann")) == ("x", "y")
