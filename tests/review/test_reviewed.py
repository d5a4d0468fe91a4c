"""Exports have the reviewed texts, and say who changed them; what the engine wrote stays where it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.corpus.making import sample
from tests.report.runs import make_run
from tests.review.corpora import action, open_state
from vip.dataset.shards import write_shard
from vip.export.write import export
from vip.review.reviewed import ReviewedTexts


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


def test_an_export_of_a_data_set_has_the_reviewed_texts(tmp_path: Path) -> None:
    write_shard(str(tmp_path / "corpus"), 0, [sample("abc", 2)], "webdataset")
    edit(tmp_path / "corpus", "abc:0002")
    assert [row["objects"] for row in exported(tmp_path / "corpus", tmp_path / "out")] == [["rope", "ball"], ["rope", "hat"]]
