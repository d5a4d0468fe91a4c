"""`vip submit`, `vip predict --zero-shot` and `vip tasks --data` in the terminal: from published files to a scored submission."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.terminal import vip
from tests.models import clip_models
from tests.tasks.value.made import write_lines
from vip.tasks.value.channels import write_features

pytestmark = [pytest.mark.extra("open_clip"), pytest.mark.slow]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [{"example_id": n, "vid_name": f"v{n % 2}", "statement": f"Somebody does {n}.", "answer": n % 2} for n in range(6)]
    (tmp_path / "annotations" / "violin").mkdir(parents=True)
    write_lines(tmp_path / "annotations" / "violin" / "violin_test_release.jsonl", rows)
    random = np.random.default_rng(1)
    for name in ("v0", "v1"):
        write_features(tmp_path / "features" / f"{name}.npz", random.normal(size=(6, clip_models.CLIP["embed_dim"])).astype(np.float32))
    clip_models.folder(tmp_path / "clip", "clip")
    return tmp_path


def test_a_submission_is_predicted_written_and_scored(folder: Path) -> None:
    annotations = "annotations/violin/violin_test_release.jsonl"
    asked = ("predict", "--task", "value-violin", "--annotations", annotations, "--video-features", "features", "-o", "p/violin.jsonl")
    done = vip(folder, *asked, "--zero-shot", "clip:clip")
    assert done.code == 0, done.err
    record = json.loads((folder / "p" / "violin.zero-shot.json").read_text())
    assert record["threshold"]["samples"] == 6
    done = vip(folder, "submit", "p", "--suite", "value", "-o", "submission.zip")
    assert done.code == 0, done.err
    assert "violin/violin_test_predictions.json  6 answers" in done.out
    assert "Partial: the server takes val and test of every task, and 21 files are missing" in done.err
    done = vip(folder, "score", "submission.zip", "--suite", "value", "--annotations", "annotations", "--json")
    assert done.code == 0, done.err
    averages = json.loads(done.out.splitlines()[-1])
    assert averages["scores"] == {"violin": round(100 * record["threshold"]["accuracy"], 2)}
    assert averages["averages"]["meta_average"]["partial"] is True
    done = vip(folder, "score", "submission.zip", "--suite", "value", "--annotations", "annotations", "--paper")
    assert "VALUE, table 13" in done.out
    assert "(partial)" in done.out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("submit", "nothing", "-o", "s"), 3, "nothing does not exist"),
        (("submit", "features", "-o", "s"), 3, "holds no folder of a task"),
        (("submit", "features", "--suite", "glue", "-o", "s"), 2, 'There is no suite "glue" with a server'),
        (("submit", "features", "--split", "dev", "-o", "s"), 2, "has the splits val and test"),
        (("predict", "--zero-shot", "clip:clip"), 2, "--zero-shot needs --task NAME and --annotations FILE"),
        (("predict", "--video-features", "features"), 2, "--video-features is for --zero-shot"),
        (("predict", "--video-index", "v.json"), 2, "--video-index is for --zero-shot"),
        (("predict", "--threshold", "0.3"), 2, "--threshold is for --zero-shot"),
        (("predict", "x.jsonl", "--zero-shot", "clip:clip"), 2, "answers by itself"),
        (("tasks", "--data", "annotations"), 2, "vip tasks --suite value --data DIR"),
        (("tasks", "--suite", "value", "--data", "features"), 3, "has no files of VALUE"),
    ],
)
def test_what_does_not_fit_is_one_sentence(folder: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    done = vip(folder, *arguments)
    assert (done.code, message in done.err) == (code, True), done.err
    assert done.err.count("\n") == 1


def test_the_data_is_described_beside_the_paper(folder: Path) -> None:
    done = vip(folder, "tasks", "--suite", "value", "--data", "annotations", "-o", "data.html")
    assert done.code == 0, done.err
    assert "own: VIOLIN" in done.out
    assert "<table>" in (folder / "data.html").read_text(encoding="utf-8")
