"""Find and replace: what would change, what changes, and what a rollback puts back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.review.corpora import action, make_described, open_state, roll_back
from vip.errors import UsageError
from vip.review.log import Action
from vip.review.replace import MOST_BATCHES, Change, batches, find_changes, replacing_actions
from vip.review.state import Queue, ReviewState

ALL = Queue(reviewer="Ann")


@pytest.fixture
def state(tmp_path: Path) -> ReviewState:
    return open_state(make_described(tmp_path / "a", 3))


def focus(state: ReviewState) -> list[str | None]:
    return [state.value(f"k{number}", "focus") for number in range(3)]


def apply_changes(state: ReviewState, changes: Sequence[Change], *, reviewer: str, batch: str) -> int:
    return sum(isinstance(one, Action) for one in state.record(replacing_actions(state, changes, reviewer=reviewer, batch=batch)))


def replaced(state: ReviewState, find: str, put: str, batch: str) -> int:
    return apply_changes(state, find_changes(state, ALL, find, put), reviewer="Ann", batch=batch)


def test_a_rollback_puts_back_what_nobody_has_changed_since_and_a_second_one_nothing(state: ReviewState) -> None:
    assert replaced(state, "a dancer", "a juggler", "one") == 3
    assert state.can_undo("Ann") == (False, False), "it is rolled back as a whole"
    state.record([action("k1", "focus", "a singer", before="a juggler", by="Bob")])
    assert roll_back(state, "one", reviewer="Ann", new_batch="back") == 2
    assert focus(state) == ["a dancer", "a singer", "a dancer"]
    assert [(row["batch"], row["count"], row["is_rollback"]) for row in batches(state)] == [("back", 2, True), ("one", 3, False)]
    state.record([action("k0", "focus", "a juggler", before="a dancer", by="Bob")])
    assert roll_back(state, "one", reviewer="Ann", new_batch="again") == 0, "Bob wrote the same text, and it is his"
    assert focus(state) == ["a juggler", "a singer", "a dancer"]
    assert roll_back(state, "none", reviewer="Ann", new_batch="more") == 0


def test_a_text_that_somebody_changes_while_the_replacement_is_looked_at_stays_theirs(state: ReviewState) -> None:
    changes = find_changes(state, ALL, "a dancer", "a juggler")
    state.record([action("k1", "focus", "a singer", before="a dancer", by="Bob")])
    assert apply_changes(state, changes, reviewer="Ann", batch="one") == 2
    assert focus(state) == ["a juggler", "a singer", "a juggler"]


def test_a_rollback_can_be_taken_back_too(state: ReviewState) -> None:
    replaced(state, "a dancer", "a juggler", "one")
    roll_back(state, "one", reviewer="Ann", new_batch="back")
    assert roll_back(state, "back", reviewer="Ann", new_batch="forth") == 3
    assert focus(state) == ["a juggler"] * 3


def test_words_are_whole_where_that_is_asked_and_letters_are_taken_as_they_are(state: ReviewState) -> None:
    assert find_changes(state, ALL, "danc", "x", whole_words=True) == []
    assert {change.after for change in find_changes(state, ALL, "dancer", r"\\1 (x)", whole_words=True)} == {r"a \\1 (x)"}
    for whole_words in (False, True):
        assert find_changes(state, ALL, "a.dancer", "x", whole_words=whole_words) == []
    assert find_changes(state, ALL, "DANCER", "x") == []
    with pytest.raises(UsageError, match="Give a text to find"):
        find_changes(state, ALL, " ", "x")


def test_a_replacement_is_taken_back_as_one_and_no_text_of_it_by_itself(state: ReviewState) -> None:
    state.record([action("k1", "verdict", "good")])
    replaced(state, "a dancer", "a juggler", "one")
    assert state.undo("Ann", "u1") is not None
    assert (state.value("k1", "verdict", "Ann"), focus(state)) == (None, ["a juggler"] * 3)
    assert state.can_undo("Ann") == (False, True)
    roll_back(state, "one", reviewer="Ann", new_batch="back")
    assert state.can_undo("Ann") == (False, True)


def test_the_last_replacements_are_shown_the_last_first(state: ReviewState) -> None:
    for number in range(MOST_BATCHES + 2):
        replaced(state, "dancer" if number % 2 == 0 else "singer", "singer" if number % 2 == 0 else "dancer", f"b{number}")
    shown = [(row["batch"], row["count"]) for row in batches(state)]
    assert shown == [(f"b{number}", 3) for number in range(MOST_BATCHES + 1, 1, -1)]
