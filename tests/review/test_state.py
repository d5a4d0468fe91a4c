"""Current values, undo, and the queues of the stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.review.corpora import RICH, action, make_described, open_state
from vip.errors import StoreError, UsageError
from vip.review.fields import clean_value
from vip.review.log import NAME, Action, NewAction, ReviewLog, StaleValueError
from vip.review.state import Queue, ReviewState


@pytest.fixture
def state(tmp_path: Path) -> ReviewState:
    return open_state(make_described(tmp_path / "a", 4))


def test_a_text_is_that_of_the_engine_until_somebody_changes_it(state: ReviewState) -> None:
    assert state.value("k0", "focus") == "a dancer"
    state.record([action("k0", "focus", "a  juggler\n", before="a dancer")])
    assert (state.value("k0", "focus"), state.is_edited("k0"), state.is_edited("k1")) == ("a  juggler", True, False)
    assert open_state(state.index.folder).value("k0", "focus") == "a  juggler"
    state.record([action("k1", "verdict", "good", by="Zoe"), action("k1", "verdict", "good")])
    state.record([action("k1", "focus", "a singer", before="a dancer", by="Bob")])
    assert list(state.reviewers()) == ["Ann", "Bob", "Zoe"], "who gave a verdict and who changed a text"


def test_the_second_of_two_who_edit_one_text_sees_what_the_first_wrote(state: ReviewState) -> None:
    state.record([action("k0", "focus", "a juggler", before="a dancer")])
    (refused,) = state.record([action("k0", "focus", "a singer", before="a dancer", by="Bob")])
    assert isinstance(refused, StaleValueError)
    assert refused.current == "a juggler"
    assert state.value("k0", "focus") == "a juggler"


def test_what_another_process_writes_is_seen(state: ReviewState) -> None:
    other = open_state(state.index.folder)
    other.record([action("k0", "focus", "a juggler", before="a dancer", by="Bob")])
    (refused,) = state.record([action("k0", "focus", "a singer", before="a dancer")])
    assert isinstance(refused, StaleValueError)


def test_verdicts_are_each_reviewers_own(state: ReviewState) -> None:
    state.record([action("k0", "verdict", "good"), action("k0", "verdict", "unusable", by="Bob")])
    assert (state.value("k0", "verdict", "Ann"), state.value("k0", "verdict", "Bob")) == ("good", "unusable")
    assert state.said("k0", "verdict") == {"Ann": "good", "Bob": "unusable"}


def test_undo_and_redo_go_back_and_forth_also_after_a_restart(state: ReviewState) -> None:
    state.record([action("k0", "verdict", "good")])
    state.record([action("k0", "verdict", "unusable")])
    state.record([action("k1", "verdict", "good", by="Bob")])  # of somebody else
    assert state.undo("Ann", "u1") is not None
    assert state.value("k0", "verdict", "Ann") == "good"
    again = open_state(state.index.folder)
    assert again.undo("Ann", "u2") is not None
    assert again.value("k0", "verdict", "Ann") is None
    assert again.can_undo("Ann") == (False, True)
    assert again.undo("Ann", "u3") is None
    assert again.redo("Ann", "u4") is not None
    assert again.redo("Ann", "u5") is not None
    assert again.value("k0", "verdict", "Ann") == "unusable"
    assert again.can_undo("Ann") == (True, False)
    assert again.value("k1", "verdict", "Bob") == "good"


def test_what_was_redone_is_undone_once_more(state: ReviewState) -> None:
    state.record([action("k0", "verdict", "good")])
    state.record([action("k1", "verdict", "good")])
    for step in range(3):
        state.undo("Ann", f"u{step}")
        assert state.value("k1", "verdict", "Ann") is None
        assert state.can_undo("Ann") == (True, True)
        state.redo("Ann", f"r{step}")
        assert state.value("k1", "verdict", "Ann") == "good"
        assert state.can_undo("Ann") == (True, False)


def test_a_new_action_ends_what_can_be_redone(state: ReviewState) -> None:
    state.record([action("k0", "verdict", "good")])
    state.undo("Ann", "u1")
    state.record([action("k1", "verdict", "good")])
    assert state.redo("Ann", "u2") is None


def test_a_change_that_somebody_built_on_is_not_undone(state: ReviewState) -> None:
    state.record([action("k0", "focus", "a juggler", before="a dancer")])
    state.record([action("k0", "focus", "two jugglers", before="a juggler", by="Bob")])
    assert isinstance(state.undo("Ann", "u1"), StaleValueError)
    assert state.value("k0", "focus") == "two jugglers"


def test_nothing_is_written_of_a_request_with_an_unknown_item(state: ReviewState) -> None:
    with pytest.raises(UsageError, match="no such item"):
        state.record([action("k0", "verdict", "good"), action("k9", "verdict", "good")])
    assert list(ReviewLog(state.index.folder / NAME).read()) == []


def queue(state: ReviewState, reviewer: str = "Ann", **asked: str) -> list[str]:
    return [state.index.items[number].id for number in state.numbers(Queue(reviewer=reviewer, **asked))]  # type: ignore[arg-type]


def test_filters_and_search_choose_items(state: ReviewState) -> None:
    state.record([action("k0", "verdict", "good"), action("k1", "comment", "see left")])
    state.record([action("k3", "focus", "a Juggler", before="a dancer")])
    assert queue(state, view="unreviewed") == ["k1", "k2", "k3"]
    assert queue(state, "Bob", view="unreviewed") == ["k0", "k1", "k2", "k3"]
    assert queue(state, view="flagged") == ["k2"]
    assert queue(state, view="edited") == ["k3"]
    assert queue(state, view="commented") == ["k1"]
    assert queue(state, word="juggler") == ["k3"]
    assert queue(state, word="a.dancer") == []  # a word, not a pattern
    assert queue(state, video="other") == []


def test_an_item_that_enough_people_judged_is_asked_of_nobody_else(state: ReviewState) -> None:
    two = ReviewState(state.index, state.log, judgements=2)
    two.record([action("k0", "verdict", "good"), action("k0", "verdict", "good", by="Bob"), action("k1", "verdict", "good")])
    assert queue(two, "Eve", view="unreviewed") == ["k1", "k2", "k3"]
    assert queue(two, "Eve") == ["k0", "k1", "k2", "k3"]  # it can still be looked at
    two.record([action("k0", "verdict", None, by="Bob", before="good")])
    assert queue(two, "Eve", view="unreviewed") == ["k0", "k1", "k2", "k3"]


def test_the_stages_of_the_paper_are_queues_one_after_the_other(state: ReviewState) -> None:
    assert queue(state, stage="2") == []
    state.record([action("k0", "verdict", "needs work"), action("k1", "verdict", "good"), action("k2", "verdict", "unusable")])
    state.record([action("k3", "verdict", "good"), action("k3", "wrong:mood", "wrong")])
    assert queue(state, stage="2") == ["k0", "k3"]
    assert queue(state, stage="4") == []
    state.record([action("k0", "verdict.2", "good", by="Eve")])
    assert queue(state, stage="3") == queue(state, stage="4") == ["k0"]
    assert queue(state, stage="4", view="unreviewed") == ["k0"]
    state.record([action("k0", "verdict.4", "good")])
    assert queue(state, stage="4", view="unreviewed") == []
    state.record([action("k1", "focus", "a kite", before="a dancer")])
    assert (queue(state, stage="3"), queue(state, stage="4")) == (["k0"], ["k0", "k1"]), "what was edited is checked again, too"
    state.undo("Ann", "u1")
    assert state.progress(Queue(reviewer="Ann", stage="4")) == {"total": 1, "done": 1, "good": 1, "needs work": 0, "unusable": 0}


def test_a_description_that_somebody_calls_unusable_is_not_corrected_until_that_is_settled(state: ReviewState) -> None:
    state.record([action("k0", "verdict", "needs work"), action("k0", "verdict", "unusable", by="Bob")])
    state.record([action("k1", "verdict", "unusable"), action("k1", "wrong:mood", "wrong")])
    assert queue(state, stage="2") == []
    state.record([action("k0", "final:verdict", "needs work")])
    assert queue(state, stage="2") == ["k0"]
    state.record([action("k1", "verdict", "good", before="unusable")])
    assert queue(state, stage="2") == ["k0", "k1"]


def test_disagreements_are_a_queue_until_they_are_settled(state: ReviewState) -> None:
    for who, verdict in (("Ann", "good"), ("Bob", "needs work")):
        state.record([action(item, "verdict", verdict if item == "k0" else "good", by=who) for item in ("k0", "k1", "k2")])
    state.record([action("k2", "wrong:focus", "wrong", by="Bob")])
    assert state.disputes("k0") == ("verdict",)
    assert state.disputes("k2") == ("wrong:focus",)
    assert queue(state, view="disagreed") == ["k0", "k2"]
    state.record([action("k0", "final:verdict", "needs work"), action("k2", "final:wrong:focus", "right")])
    assert queue(state, view="disagreed") == []
    assert state.needs_work("k0")


def test_marks_of_those_who_did_not_judge_are_no_dispute_and_settle_none(state: ReviewState) -> None:
    state.record([action("k0", "verdict", "good", by=who) for who in ("Ann", "Bob")])
    state.record([action("k0", "wrong:focus", "wrong", by="Eve")])
    assert state.disputes("k0") == ()
    state.record([action("k0", "wrong:focus", "wrong", by="Ann")])
    assert state.disputes("k0") == ("wrong:focus",), "Eve does not stand for Bob"
    state.record([action("k0", "wrong:focus", "wrong", by="Bob")])
    assert state.disputes("k0") == ()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("verdict", "great", "one of good, needs work, unusable"),
        ("wrong:focus", "yes", "one of wrong"),
        ("price", "1", "no field 'price'"),
        ("dense_caption", "  ", "cannot be empty"),
        ("focus", "x" * 20_001, "at most 20,000 letters"),
    ],
)
def test_a_value_that_a_field_does_not_have_is_refused(field: str, value: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        clean_value(field, value)


def test_values_are_kept_as_plain_text() -> None:
    assert clean_value("objects", " rope \n\n ball\r\nrope\n") == "rope\nball"
    assert clean_value("comment", " \n ") is None
    assert clean_value("focus", "<b>\x07a\u202e") == "<b>\ufffda\ufffd"


def test_what_a_failed_write_had_read_is_forgotten(state: ReviewState, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two actions the first is prepared and read, then the disk is full: nothing of both was said."""
    append = state.log.append

    def failing(actions: Sequence[NewAction], *, prepare: Callable[[NewAction], NewAction]) -> list[Action | StaleValueError]:
        def prepared(one: NewAction) -> NewAction:
            if one.item == "k1":
                state.catch_up()
                raise StoreError("The disk is full.")
            return prepare(one)

        return append(actions, prepare=prepared)

    monkeypatch.setattr(state.log, "append", failing)
    with pytest.raises(StoreError, match="full"):
        state.record([action("k0", "focus", "a juggler", before="a dancer"), action("k1", "verdict", "good")])
    monkeypatch.undo()
    assert state.value("k0", "focus") == "a dancer"
    assert isinstance(state.record([action("k0", "focus", "a singer", before="a dancer")])[0], Action)
    assert state.value("k0", "focus") == "a singer"


@pytest.mark.parametrize("field", ["verdict", "verdict.4", "wrong:focus", "final:verdict", "final:wrong:mood"])
def test_a_log_of_a_stranger_with_an_impossible_verdict_is_damaged(field: str, tmp_path: Path) -> None:
    state = open_state(make_described(tmp_path / "a", 1))
    state.log.append([action("k0", field, "excellent")])
    with pytest.raises(StoreError, match=r"is damaged \(action 1 has a value"):
        state.catch_up()


@pytest.mark.parametrize(("field", "most"), [("dense_caption", 20_000), ("objects", 20_000), ("comment", 20_000), ("relations", 40_000)])
def test_a_log_of_a_stranger_with_a_text_that_is_too_long_is_damaged(field: str, most: int, state: ReviewState) -> None:
    """Six captions of 4 MB took two gigabytes to compare, and $34 to ask an engine about."""
    state.log.append([action("k0", field, "x" * most)])
    state.catch_up()
    state.log.append([action("k0", field, "x" * (most + 1))])
    with pytest.raises(StoreError, match=r"is damaged \(action 2 has a value"):
        state.catch_up()


@pytest.mark.parametrize(
    ("field", "line"), [("relations", "a|b|c"), ("counts", "a:1"), ("colours", "a:b"), ("objects", "a"), ("comment", "a")]
)
def test_the_longest_text_that_is_taken_is_possible_in_a_log(field: str, line: str, tmp_path: Path) -> None:
    state = open_state(make_described(tmp_path / "rich", 1, rich=RICH))
    lines = [line.replace("a", f"{number:04x}") for number in range(0x10000)]
    text = "\n".join(lines)[:20_000].rpartition("\n")[0]
    state.record([action("k0", field, text, before=state.value("k0", field))])
    assert open_state(tmp_path / "rich").value("k0", field, "Ann") is not None
