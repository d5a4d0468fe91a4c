"""`vip score` in the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.terminal import vip
from tests.metrics.golden import golden
from tests.tasks.described import described_folder
from tests.tasks.scoring import answer, sample, write

pytestmark = pytest.mark.extra("rouge_score")
SAMPLES = [sample(str(number), "a dog runs", video=f"v{number // 2}") for number in range(6)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "samples.jsonl", SAMPLES)
    write(tmp_path / "p.jsonl", [answer(one, "a dog runs" if place else "a cat") for place, one in enumerate(SAMPLES)])
    write(tmp_path / "q.jsonl", [answer(one, "a cat sits" if place % 3 else "a dog", engine="other") for place, one in enumerate(SAMPLES)])
    return tmp_path


def test_scores_are_printed_written_and_the_same_each_time(folder: Path) -> None:
    done = vip(folder, "score", "p.jsonl", "q.jsonl", "--metric", "rouge-l", "-o", "out")
    assert done.code == 0, done.err
    assert "Scores × 100: infilling-1, dense\nPredictions  Shown to the model                       ROUGE-L  Samples\n" in done.out
    assert "  text only, 2 described keyframes  " in done.out
    assert "other against engine" in done.out
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["p.result.json", "q.result.json", "scores.html", "scores.md"]
    assert vip(folder, "score", "p.jsonl", "q.jsonl", "--metric", "rouge-l", "-o", "out").out == done.out


def test_json_is_one_object_a_file_and_one_for_the_differences(folder: Path) -> None:
    done = vip(folder, "score", "p.jsonl", "q.jsonl", "--metric", "rouge-l", "--json")
    first, second, differences = map(json.loads, done.out.splitlines())
    assert (first["task"], first["version"], first["n"], second["engine"]) == ("infilling-1", 1, 6, "other")
    assert first["metrics"]["rouge-l"]["value"] == pytest.approx(100 * (5 + 0.4) / 6, abs=1e-4)
    assert differences["differences"][0]["metric"] == "rouge-l"


@pytest.mark.parametrize("form", ["markdown", "latex", "csv", "json"])
def test_tables_of_the_paper_in_other_forms(folder: Path, form: str) -> None:
    done = vip(folder, "score", "p.jsonl", "--metric", "rouge-l", "--paper", "--table", form)
    assert done.code == 0, done.err
    assert "Vicuna" in done.out
    assert {"markdown": "| --- |", "latex": "\\toprule", "csv": "Metric,Model", "json": '"columns"'}[form] in done.out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("none.jsonl",), 3, "none.jsonl does not exist."),
        (("p.jsonl", "--metric", "rouge"), 2, 'has no metric "rouge". Did you mean "rouge-l"?'),
        (("p.jsonl", "--missing", "guess"), 2, '--missing knows no "guess".'),
        (("p.jsonl", "--table", "xml"), 2, '--table knows no "xml".'),
        (("p.jsonl", "--samples", "p.jsonl"), 3, "p.jsonl, line 1: no sample ("),
    ],
)
def test_what_is_wrong_is_one_sentence(folder: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    done = vip(folder, "score", *arguments)
    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert done.err.count("\n") == 1


def test_published_files_give_the_published_figure(folder: Path) -> None:
    annotations, theirs = golden("nextqa/mc_val.csv"), golden("nextqa/mc_val_hga.json")
    done = vip(folder, "score", theirs, "--task", "nextqa-mc", "--annotations", annotations, "--json")
    found = json.loads(done.out)["metrics"]["accuracy"]
    assert found["value"] == pytest.approx(49.74, abs=0.005)
    assert found["groups"]["type"]["CW"]["value"] == pytest.approx(46.99, abs=0.005)


def test_a_data_set_has_its_row_of_table_1(folder: Path) -> None:
    described_folder(folder / "runs" / "park", 3)
    done = vip(folder, "score", "p.jsonl", "--metric", "rouge-l", "--data", "runs/park")
    assert done.code == 0, done.err
    (row,) = [line for line in done.out.splitlines() if line.startswith("park ")]
    assert row.split() == ["park", "yes", "yes", "–", "–", "6.0", "6"]


def test_labels_without_a_judge_are_said(folder: Path) -> None:
    done = vip(folder, "score", "p.jsonl", "--judge-labels", "p.jsonl")
    assert (done.code, done.err) == (2, "vip: --judge-labels needs a judge: --judge ENGINE.\n")
