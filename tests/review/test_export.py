"""The reviewed texts, for other programs."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from tests.review.corpora import action, make_described, open_state
from vip.errors import UsageError
from vip.review.export import export_review, rows_of
from vip.review.state import ReviewState


@pytest.fixture
def state(tmp_path: Path) -> ReviewState:
    state = open_state(make_described(tmp_path / "a", 2))
    state.record([action("k0", "objects", "rope\n=1+1", before="rope\nball"), action("k0", "verdict", "needs work")])
    state.record([action("k0", "verdict", "good", by="Bob"), action("k0", "comment", "see\nleft"), action("k0", "wrong:focus", "wrong")])
    return state


def test_rows_have_reviewed_texts_those_of_the_engine_and_who_said_what(state: ReviewState, tmp_path: Path) -> None:
    before = (state.index.folder / "descriptions.jsonl").read_bytes()
    assert export_review(state, tmp_path / "out.jsonl") == 2
    first, second = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert (first["objects"], first["original"]["objects"], first["changed_by"]) == (["rope", "=1+1"], ["rope", "ball"], {"objects": "Ann"})
    assert first["verdicts"] == {"Ann": "needs work", "Bob": "good"}
    assert (first["wrong"], first["comments"], first["actions"]) == (["focus"], {"Ann": "see\nleft"}, 5)
    assert (second["verdicts"], second["actions"], second["last_action_utc"]) == ({}, 0, None)
    assert (state.index.folder / "descriptions.jsonl").read_bytes() == before


def test_a_text_that_was_put_back_is_changed_by_nobody_and_the_last_action_is_the_latest(state: ReviewState, tmp_path: Path) -> None:
    state.record([action("k1", "focus", "a kite", before="a dancer"), action("k1", "setting", "a park", before="a hall", by="Bob")])
    state.record([action("k1", "focus", "a dancer", before="a kite")])
    (last,) = state.log.read(after=state.last - 1)
    _, row = rows_of(state)
    assert (row["focus"], row["changed_by"]) == ("a dancer", {"setting": "Bob"})
    assert (row["actions"], row["last_action_utc"]) == (3, last.created_utc)


def test_verdicts_of_each_stage_have_a_column_and_those_of_an_older_caption_none(state: ReviewState) -> None:
    said = {"verdict.2": "good", "verdict.3": "needs work", "verdict.4": "unusable", "final:verdict": "needs work"}
    state.record([action("k0", name, verdict) for name, verdict in said.items()])
    first, _ = rows_of(state)
    columns = ("verdicts_stage_2", "verdicts_stage_3", "verdicts_stage_4")
    assert [first[name] for name in columns] == [{"Ann": "good"}, {"Ann": "needs work"}, {"Ann": "unusable"}]
    assert first["verdict_settled"] == "needs work"
    caption = state.value("k0", "dense_caption")
    state.record([action("k0", "dense_caption", "Written again.", before=caption, by="engine:fake")])
    first, _ = rows_of(state)
    assert [first[name] for name in columns] == [{"Ann": "good"}, {}, {}]


def test_the_table_has_the_same_rows_and_no_formula(state: ReviewState, tmp_path: Path) -> None:
    assert export_review(state, tmp_path / "out.csv") == 2
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text(encoding="utf-8-sig").splitlines()))
    assert [row["item"] for row in rows] == ["k0", "k1"]
    assert rows[0]["objects"] == "rope; '=1+1"
    assert rows[0]["comments"] == "Ann: see left"
    assert rows[0]["original_objects"] == "rope; ball"


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv"])
def test_the_log_of_a_stranger_does_nothing_to_a_terminal(name: str, state: ReviewState, tmp_path: Path) -> None:
    state.log.append([action("k0", "comment", "a\x9b2J\u202e\x1b[31m", by="E\x9bve", uid="strange")])
    state.catch_up()
    export_review(state, tmp_path / name)
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]", (tmp_path / name).read_text("utf-8-sig"))


def test_a_file_is_not_replaced_unasked(state: ReviewState, tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text("mine")
    with pytest.raises(UsageError, match="add --overwrite"):
        export_review(state, tmp_path / "out.csv")
    assert export_review(state, tmp_path / "out.csv", overwrite=True) == 2
    with pytest.raises(UsageError, match=r"neither \.jsonl nor \.csv"):
        export_review(state, tmp_path / "out.xml")
