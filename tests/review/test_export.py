"""The reviewed texts, for other programs."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from tests.review.corpora import action, make_described, open_state
from vip.errors import UsageError
from vip.review.export import export_review
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
