"""The fields of the schema `rich` in a review: as texts, edited, judged, counted and exported."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.corpus.making import sample
from tests.report.runs import make_run
from tests.review.corpora import RICH, action, make_described, open_state
from vip import store
from vip.dataset.shards import write_shard
from vip.errors import StoreError, UsageError
from vip.export.write import export
from vip.records import MOST_COUNTED, Description, ObjectColour, ObjectCount, Relation
from vip.review.agreement import agreement_by_field
from vip.review.export import export_review
from vip.review.fields import TEXTS
from vip.review.items import read_items
from vip.review.log import NAME, ReviewLog
from vip.review.rates import engine_rates
from vip.review.replace import find_changes
from vip.review.reviewed import ReviewedTexts
from vip.review.rich import CHOICES, RICH_TEXTS, clean_rich, rich_texts, rich_value
from vip.review.state import Queue, ReviewState


@pytest.fixture
def state(tmp_path: Path) -> ReviewState:
    """The first of three items has the fields."""
    return open_state(make_described(tmp_path / "a", 3, rich=RICH))


def test_a_text_of_each_field_stands_for_its_value(state: ReviewState) -> None:
    texts = dict(zip(RICH_TEXTS, rich_texts(RICH), strict=True))
    assert texts["counts"] == "dancer: 1\nrope: 2"
    assert texts["relations"] == "rope | left of | dancer"
    assert texts["visible_text"] == "EXIT\nline one line two"  # one a line
    values = {name: rich_value(name, text) for name, text in texts.items()}
    assert {name for name in RICH_TEXTS if values[name] != getattr(RICH, name)} == {"visible_text"}
    assert all(clean_rich(name, text) == text for name, text in texts.items())


def test_a_bar_in_a_part_of_a_relation_does_not_make_a_fourth_part() -> None:
    rich = RICH.model_copy(update={"relations": (Relation(subject="sign A|B", relation="left of", object="door"),)})
    text = rich_texts(rich)[RICH_TEXTS.index("relations")]
    assert clean_rich("relations", text) == text == "sign A/B | left of | door"


def test_texts_are_made_tidy() -> None:
    assert clean_rich("counts", " a big  dog:03\n\na big dog: 3 ") == "a big dog: 3"
    assert rich_value("relations", "dog|left of|bench") == (Relation(subject="dog", relation="left of", object="bench"),)
    assert rich_value("counts", "sign: EXIT: 2") == (ObjectCount(object="sign: EXIT", count=2),)
    assert rich_value("colours", "lamp: left: dark red") == (ObjectColour(object="lamp: left", colour="dark red"),)
    assert clean_rich("background", "") == "not determined"
    assert clean_rich("characters", "") == ""
    assert rich_value("counts", f"ant: {MOST_COUNTED}") == (ObjectCount(object="ant", count=MOST_COUNTED),)


@pytest.mark.parametrize(
    ("field", "text", "sentence"),
    [
        ("counts", "three dogs", "no thing with a number"),
        ("counts", ": 3", "no thing with a number"),
        ("counts", "dog: -1", "no thing with a number"),
        ("counts", f"dog: {MOST_COUNTED + 1}", "no thing with a number"),
        ("colours", "red", "no thing with a colour"),
        ("relations", "dog left of bench", "where a thing is"),
        ("relations", "dog | left of |", "where a thing is"),
        ("shot_size", "close", "extreme close-up, close-up"),
    ],
)
def test_what_does_not_fit_a_field_is_refused(state: ReviewState, field: str, text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        state.record([action("k0", field, text, before=state.value("k0", field))])
    assert list(state.log.read()) == []


def test_an_item_without_the_fields_has_none(state: ReviewState) -> None:
    assert "counts" in state.texts("k0")
    assert "counts" not in state.texts("k1")
    for field in ("counts", "wrong:counts", "final:wrong:counts"):
        with pytest.raises(UsageError, match="has no counts"):
            state.record([action("k1", field, "wrong" if ":" in field else "dog: 1")])


def test_edits_are_found_by_words_and_filters_and_taken_back(state: ReviewState) -> None:
    state.record([action("k0", "colours", "dress: violet", before="dress: red")])
    assert state.numbers(Queue(reviewer="Ann", word="violet")) == [0]
    assert state.numbers(Queue(reviewer="Ann", view="edited")) == [0]
    state.undo("Ann", "z1")
    assert state.value("k0", "colours") == "dress: red"
    assert not state.is_edited("k0")


def test_find_and_replace_leaves_closed_lists_alone(state: ReviewState) -> None:
    assert [one.field for one in find_changes(state, Queue(reviewer="Ann"), "dress", "coat")] == ["colours"]
    assert find_changes(state, Queue(reviewer="Ann"), "full shot", "long shot") == []
    assert set(CHOICES) == {"shot_size", "camera_angle", "depth_of_field"}


def test_agreement_about_a_field_counts_the_items_that_have_it(state: ReviewState) -> None:
    for who in ("Ann", "Bob"):
        state.record([action(item, "verdict", "good", by=who) for item in ("k0", "k1")])
    state.record([action("k0", "wrong:counts", "wrong", by="Ann")])
    rows = {row.field: row for row in agreement_by_field(state)}
    assert (rows["focus"].items, rows["counts"].items, rows["counts"].raw) == (2, 1, 0.0)
    assert state.disputes("k0") == ("wrong:counts",)


def test_the_rates_count_claims_of_these_fields_by_themselves(state: ReviewState) -> None:
    state.record([action("k0", "verdict", "needs work"), action("k1", "verdict", "good")])
    before = engine_rates(state)[0]
    state.record([action("k0", "wrong:shot_size", "wrong"), action("k0", "counts", "dancer: 1\nhat: 1", before="dancer: 1\nrope: 2")])
    (row,) = engine_rates(state)
    # short caption, main object, style, shot, angle; two numbers, a colour, a relation, two texts: wrong are the shot and "rope: 2"
    assert (row.rich_hallucination.value, row.rich_omission.value) == (pytest.approx(2 / 11), pytest.approx(1 / 6))  # type: ignore[union-attr]
    assert (row.hallucination, row.omission) == (before.hallucination, before.omission)


def test_without_such_fields_there_is_no_rate(tmp_path: Path) -> None:
    state = open_state(make_described(tmp_path / "b", 1))
    state.record([action("k0", "verdict", "good")])
    (row,) = engine_rates(state)
    assert (row.rich_hallucination, row.rich_omission) == (None, None)


def test_the_export_of_the_review_has_them(state: ReviewState, tmp_path: Path) -> None:
    state.record([action("k0", "counts", "dancer: 2", before="dancer: 1\nrope: 2"), action("k0", "wrong:style", "wrong")])
    state.record([action("k0", "verdict", "needs work")])
    export_review(state, tmp_path / "out.jsonl")
    first, second, _ = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert (first["counts"], first["original"]["counts"]) == (["dancer: 2"], ["dancer: 1", "rope: 2"])
    assert (first["changed_by"], first["wrong"], second["counts"]) == ({"counts": "Ann"}, ["style"], None)
    export_review(state, tmp_path / "out.csv")
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text(encoding="utf-8-sig").splitlines()))
    assert [row["counts"] for row in rows] == ["dancer: 2", "", ""]


def make_rich_run(folder: Path) -> Path:
    run = make_run(folder).folder
    rows = [row.model_copy(update={"rich": RICH}) for row in store.read_rows(run / store.DESCRIPTIONS, Description)]
    store.write_rows(run / store.DESCRIPTIONS, rows)
    return run


def test_an_export_of_the_run_has_them_and_says_who_changed_them(tmp_path: Path) -> None:
    run = make_rich_run(tmp_path / "a.vip")
    state = open_state(run)
    state.record([action("k3", "counts", "dancer: 2", before="dancer: 1\nrope: 2"), action("k3", "style", "drawing", before="photograph")])
    state.record([action("k3", "style", "photograph", before="drawing")])
    state.log.close()
    export([str(run)], "jsonl", out=str(tmp_path / "out"), revise=ReviewedTexts())
    rows = [json.loads(line) for line in (tmp_path / "out" / "keyframes.jsonl").read_text().splitlines()]
    assert [row["counts"] for row in rows][1] == [{"object": "dancer", "count": 2}]
    assert rows[1]["visible_text"] == ["EXIT", "line one\nline two"]  # nobody changed it
    assert rows[1]["provenance"]["description"]["reviewed"]["changed_by"] == {"counts": "Ann"}
    assert rows[0]["provenance"]["description"]["reviewed"] is None


def test_a_value_in_a_log_that_does_not_fit_is_refused_by_name(tmp_path: Path) -> None:
    run = make_rich_run(tmp_path / "a.vip")
    with ReviewLog(run / NAME) as log:
        log.append([action("k3", "counts", "many")])
    with pytest.raises(StoreError, match=r"review\.sqlite: damaged \(action 1\)"):
        export([str(run)], "jsonl", out=str(tmp_path / "out"), revise=ReviewedTexts())


@pytest.mark.parametrize("kind", ["parquet", "webdataset"])
def test_a_data_set_has_them_too(tmp_path: Path, kind: str) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    one = sample("abc", 2)
    rich = [
        replace(frame, description=frame.description.model_copy(update={"rich": RICH})) for frame in one.frames[:1] if frame.description
    ]
    write_shard(str(tmp_path), 0, [replace(one, frames=(*rich, *one.frames[1:]))], kind)  # type: ignore[arg-type]
    first, second = read_items(tmp_path).items
    assert first.original["relations"] == "rope | left of | dancer"
    assert second.fields == TEXTS
