"""Exports have the reviewed texts, and say who changed them; what the engine wrote stays where it was."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.corpus.making import sample
from tests.report.runs import make_run
from tests.review.corpora import action, open_state, roll_back
from vip.config import CaptionSettings
from vip.dataset.shards import write_shard
from vip.errors import StoreError
from vip.export.write import export
from vip.protocols import SilentObserver
from vip.review.reviewed import ReviewedTexts
from vip.review.rewrite import rewrite_captions


def exported(source: Path, out: Path) -> list[dict[str, object]]:
    export([str(source)], "jsonl", out=str(out), revise=ReviewedTexts())
    return [json.loads(line) for line in (out / "keyframes.jsonl").read_text().splitlines()]


def edit(folder: Path, item: str) -> None:
    state = open_state(folder)
    state.record([action(item, "objects", "rope\nhat", before="rope\nball"), action(item, "mood", "calm", before="not determined")])
    state.record([action(item, "mood", "not determined", before="calm", by="Bob")])
    state.log.close()


@pytest.mark.parametrize("is_in_a_folder", [False, True])
def test_an_export_of_a_run_has_the_reviewed_texts(tmp_path: Path, is_in_a_folder: bool) -> None:
    run = make_run(tmp_path / "runs" / "a.vip").folder
    before = (run / "descriptions.jsonl").read_bytes()
    edit(run.parent if is_in_a_folder else run, "a.vip/k3" if is_in_a_folder else "k3")
    rows = exported(run, tmp_path / "out")
    assert [row["objects"] for row in rows] == [["rope", "ball"], ["rope", "hat"], ["rope", "ball"]]
    reviewed = [row["provenance"]["description"]["reviewed"] for row in rows]  # type: ignore[index]
    assert (reviewed[0], reviewed[2]) == (None, None)
    assert (reviewed[1]["fields"], reviewed[1]["reviewers"]) == (["objects"], ["Ann"])  # the mood is as it was
    assert (run / "descriptions.jsonl").read_bytes() == before


def test_a_list_that_was_emptied_is_empty_in_an_export(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a.vip").folder
    state = open_state(run)
    state.record([action("k3", "objects", "", before="rope\nball")])
    state.log.close()
    assert [row["objects"] for row in exported(run, tmp_path / "out")] == [["rope", "ball"], [], ["rope", "ball"]]


def test_the_time_of_a_review_is_that_of_its_last_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path / "a.vip").folder
    times = iter(datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3))
    monkeypatch.setattr("vip.review.log.datetime", type("Clock", (), {"now": lambda zone: next(times)}))
    state = open_state(run)
    for field, after, who in (("focus", "a juggler", "Ann"), ("mood", "calm", "Bob"), ("objects", "rope", "Ann")):
        state.record([action("k3", field, after, before=state.value("k3", field), by=who)])
    state.log.close()
    reviewed = exported(run, tmp_path / "out")[1]["provenance"]["description"]["reviewed"]  # type: ignore[index]
    assert (reviewed["fields"], reviewed["reviewers"]) == (["focus", "mood", "objects"], ["Ann", "Bob"])
    assert reviewed["changed_utc"].startswith("2026-01-03")


def test_an_export_of_a_data_set_has_the_reviewed_texts(tmp_path: Path) -> None:
    write_shard(str(tmp_path / "corpus"), 0, [sample("abc", 2)], "webdataset")
    edit(tmp_path / "corpus", "abc:0002")
    assert [row["objects"] for row in exported(tmp_path / "corpus", tmp_path / "out")] == [["rope", "ball"], ["rope", "hat"]]


# ---------------------------------------------------------------- after the third stage

REWRITTEN = "Made up by the fake engine for a text."


def rewrite(folder: Path, item: str) -> str:
    """Correct a field, call it good, and let an engine write the caption again. Returns the batch."""
    state = open_state(folder)
    state.record([action(item, "focus", "a red kite", by="Eve", before=state.value(item, "focus"))])
    state.record([action(item, "verdict.2", "good", by="Eve")])
    done = rewrite_captions(state, CaptionSettings(engine="fake"), observer=SilentObserver())
    assert done.written == [item]
    batch = next(one.batch for one in state.log.read() if one.batch)
    state.log.close()
    return batch


def reviewed(row: dict[str, Any]) -> Any:
    return row["provenance"]["description"]["reviewed"]


@pytest.fixture(params=["run", "folder of runs", "data set"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path, str, int]:
    """What is exported, what is reviewed, the item whose caption an engine writes again, and its place."""
    if request.param == "data set":
        write_shard(str(tmp_path / "corpus"), 0, [sample("abc", 3)], "parquet")
        return tmp_path / "corpus", tmp_path / "corpus", "abc:0002", 1
    run = make_run(tmp_path / "runs" / "a.vip").folder
    return (run, run.parent, "a.vip/k3", 1) if request.param == "folder of runs" else (run, run, "k3", 1)


def test_an_export_has_the_caption_that_an_engine_wrote_again_and_says_so(place: tuple[Path, Path, str, int], tmp_path: Path) -> None:
    source, home, item, number = place
    before = exported(source, tmp_path / "before")
    rewrite(home, item)
    rows: Any = exported(source, tmp_path / "after")
    assert (rows[number]["dense_caption"], rows[number]["focus"]) == (REWRITTEN, "a red kite")
    about = reviewed(rows[number])
    assert about["changed_by"] == {"dense_caption": "engine:fake", "focus": "Eve"}
    assert (about["fields"], about["reviewers"]) == (["dense_caption", "focus"], ["engine:fake", "Eve"])
    assert rows[number]["description_engine"] == before[number]["description_engine"], "who wrote it first"
    others = [index for index in range(len(rows)) if index != number]
    assert [rows[index] for index in others] == [before[index] for index in others]


def test_the_tables_and_shards_have_it_too(place: tuple[Path, Path, str, int], tmp_path: Path) -> None:
    source, home, item, number = place
    rewrite(home, item)
    for kind in ("csv", "coco", "parquet"):
        export([str(source)], kind, out=str(tmp_path / kind), revise=ReviewedTexts())
    with (tmp_path / "csv" / "keyframes.csv").open(encoding="utf-8-sig", newline="") as file:
        assert list(csv.DictReader(file))[number]["dense_caption"] == REWRITTEN
    captions = json.loads((tmp_path / "coco" / "captions.json").read_text())["annotations"]
    assert [one["caption"] == REWRITTEN for one in captions] == [index == number for index in range(len(captions))]
    assert [one["dense_caption"] for one in exported(tmp_path / "parquet", tmp_path / "again")][number] == REWRITTEN
    again: Any = exported(tmp_path / "parquet", tmp_path / "again-too")
    assert reviewed(again[number])["changed_by"]["dense_caption"] == "engine:fake", "the mark goes with the shards"


def test_a_caption_that_was_taken_back_is_the_old_one_without_a_mark(place: tuple[Path, Path, str, int], tmp_path: Path) -> None:
    source, home, item, number = place
    before = exported(source, tmp_path / "before")[number]["dense_caption"]
    batch = rewrite(home, item)
    state = open_state(home)
    assert roll_back(state, batch, reviewer="Eve", new_batch="back") == 1
    state.log.close()
    row: Any = exported(source, tmp_path / "after")[number]
    assert row["dense_caption"] == before
    assert reviewed(row)["changed_by"] == {"focus": "Eve"}


def test_a_rewritten_caption_that_a_person_edits_is_that_persons(place: tuple[Path, Path, str, int], tmp_path: Path) -> None:
    source, home, item, number = place
    rewrite(home, item)
    state = open_state(home)
    state.record([action(item, "dense_caption", "A person knows better.", by="Bob", before=REWRITTEN)])
    state.log.close()
    row: Any = exported(source, tmp_path / "after")[number]
    assert row["dense_caption"] == "A person knows better."
    assert reviewed(row)["changed_by"]["dense_caption"] == "Bob"


def test_a_second_review_of_what_was_exported_keeps_the_marks_of_the_first(tmp_path: Path) -> None:
    write_shard(str(tmp_path / "corpus"), 0, [sample("abc", 1)], "parquet")
    rewrite(tmp_path / "corpus", "abc:0001")
    export([str(tmp_path / "corpus")], "parquet", out=str(tmp_path / "second"), revise=ReviewedTexts())
    state = open_state(tmp_path / "second")
    state.record([action("abc:0001", "mood", "calm", by="Bob", before=state.value("abc:0001", "mood"))])
    state.log.close()
    (row,) = exported(tmp_path / "second", tmp_path / "out")
    assert reviewed(row)["changed_by"] == {"dense_caption": "engine:fake", "focus": "Eve", "mood": "Bob"}
    assert reviewed(row)["reviewers"] == ["engine:fake", "Eve", "Bob"]
    assert reviewed(row)["fields"] == ["dense_caption", "focus", "mood"]


def test_the_log_in_a_run_counts_before_that_of_the_folder_above(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs" / "a.vip").folder
    for folder, item, text in ((run, "k3", "a kite"), (run.parent, "a.vip/k3", "a hat"), (run.parent, "a.vip/k7", "a cup")):
        state = open_state(folder)
        state.record([action(item, "focus", text, before="a dancer")])
        state.log.close()
    assert [row["focus"] for row in exported(run, tmp_path / "out")] == ["a dancer", "a kite", "a cup"]


def test_a_text_of_an_export_that_is_changed_again_has_the_last_hand(tmp_path: Path) -> None:
    write_shard(str(tmp_path / "corpus"), 0, [sample("abc", 1)], "parquet")
    rewrite(tmp_path / "corpus", "abc:0001")
    export([str(tmp_path / "corpus")], "parquet", out=str(tmp_path / "second"), revise=ReviewedTexts())
    state = open_state(tmp_path / "second")
    state.record([action("abc:0001", "focus", "a blue kite", by="Bob", before=state.value("abc:0001", "focus"))])
    state.log.close()
    (row,) = exported(tmp_path / "second", tmp_path / "out")
    assert row["focus"] == "a blue kite"
    assert reviewed(row)["changed_by"] == {"dense_caption": "engine:fake", "focus": "Bob"}


def test_a_log_of_a_stranger_with_a_text_that_is_too_long_is_not_exported(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a.vip").folder
    state = open_state(run)
    state.log.append([action("k3", "dense_caption", "x" * 20_001)])
    state.log.close()
    with pytest.raises(StoreError, match=r"damaged \(action 1 has too long a text\)"):
        exported(run, tmp_path / "out")
