"""`vip report`: one page for any run folder, whatever names and texts it tells."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.cli.terminal import vip
from tests.clips import clip, picture, stamps
from vip.store import load_run

ATTACK = "<img src=x onerror=alert(1)>"


@pytest.mark.parametrize("target", ["sample.vip", "sample.vip/keyframes"])
def test_the_page_is_written_and_named(target: str, described: Path, tmp_path: Path) -> None:
    (described / "report.html").unlink()
    before = stamps(described)
    done = vip(tmp_path, "report", target)
    assert (done.code, done.out, done.err) == (0, "Open sample.vip/report.html\n", "")
    assert {name: at for name, at in stamps(described).items() if name != "report.html"} == before


def test_json_names_the_page(described: Path, tmp_path: Path) -> None:
    assert vip(tmp_path, "report", "sample.vip", "--json").rows == [{"report": "sample.vip/report.html"}]


def test_quiet_says_nothing(described: Path, tmp_path: Path) -> None:
    done = vip(tmp_path, "report", "sample.vip", "-q")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_a_page_needs_no_captions_and_no_vectors(extracted: Path, tmp_path: Path) -> None:
    for name in ("embeddings.npz", "analysis.npz", "thumbnails.zip", "candidates.jsonl"):
        (extracted / name).unlink()
    assert vip(tmp_path, "report", "sample.vip").code == 0
    assert "keyframe" in (extracted / "report.html").read_text().lower()


def test_a_page_loads_nothing_from_anywhere(described: Path) -> None:
    page = (described / "report.html").read_text()
    sources = re.findall(r"(?:src|href|action|poster)=[\"']?([^\"'\s>]+)|url\(([^)]+)\)|@import", page)
    assert sources
    assert all((first or second).strip("'\"").startswith(("data:", "#")) for first, second in sources)


def test_hostile_file_names_and_captions_are_text(tmp_path: Path) -> None:
    name = ATTACK.replace("/", "")
    clip(tmp_path / f"{name}.mp4", [1, 2])
    assert vip(tmp_path, "run", f"{name}.mp4", "-n", "2", "--engine", "fake").code == 0
    folder = tmp_path / f"{name}.vip"
    rows = [json.loads(line) for line in (folder / "descriptions.jsonl").read_text().splitlines()]
    for row in rows:
        row["dense_caption"] = f"</p><script>alert(1)</script>{ATTACK}"
        row["famous"]["objects"] = [f"'\"{ATTACK}"]
    (folder / "descriptions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert vip(tmp_path, "report", folder.name).code == 0
    page = (folder / "report.html").read_text()
    assert ATTACK not in page
    assert "<script>alert" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page


def test_hostile_names_of_pictures_are_text(tmp_path: Path) -> None:
    picture(tmp_path / "photos" / "a.png").rename(tmp_path / "photos" / f"{ATTACK}.png")
    assert vip(tmp_path, "caption", "photos", "--engine", "fake").code == 0
    assert vip(tmp_path, "report", "photos").code == 0
    assert ATTACK not in (tmp_path / "photos" / "report.html").read_text()


def test_a_run_folder_that_was_moved_and_renamed_is_still_one(described: Path, tmp_path: Path) -> None:
    moved = described.rename(tmp_path / "elsewhere")
    assert vip(tmp_path, "report", "elsewhere").code == 0
    assert all(keyframe.path.exists() for keyframe in load_run(moved).keyframes)


# ---------------------------------------------------------------- a folder of runs


@pytest.fixture
def runs(undisturbed: Path, tmp_path: Path) -> Path:
    """A folder with two runs that have no pages yet."""
    for name in ("one.vip", "two.vip"):
        shutil.copytree(undisturbed, tmp_path / "runs" / name)
        (tmp_path / "runs" / name / "report.html").unlink()
    return tmp_path / "runs"


def test_a_folder_of_runs_gets_the_page_of_each_and_an_index(runs: Path, tmp_path: Path) -> None:
    done = vip(tmp_path, "report", "runs")
    assert (done.code, done.out, done.err) == (0, "Open runs/index.html\n", "")
    index = (runs / "index.html").read_text()
    for name in ("one.vip", "two.vip"):
        assert (runs / name / "report.html").exists()
        assert f'href="{name}/report.html"' in index


def test_json_of_a_folder_of_runs_is_an_object_a_line(runs: Path, tmp_path: Path) -> None:
    done = vip(tmp_path, "report", "runs", "--json")
    assert done.rows == [
        {"run": "runs/one.vip", "report": "runs/one.vip/report.html"},
        {"run": "runs/two.vip", "report": "runs/two.vip/report.html"},
        {"index": "runs/index.html"},
    ]


def test_a_damaged_run_costs_only_its_own_page(runs: Path, tmp_path: Path) -> None:
    (runs / "one.vip" / "candidates.jsonl").write_text("{broken\n")
    done = vip(tmp_path, "report", "runs", "--json")
    assert done.code == 8
    assert done.sentence == "1 of 2 runs could not be reported. runs/index.html names it."
    assert done.notes[0].startswith("runs/one.vip/candidates.jsonl, line 1: damaged")
    assert [row.get("exit_code") for row in done.rows] == [7, None, None, 8]
    assert (runs / "two.vip" / "report.html").exists()
    index = (runs / "index.html").read_text()
    assert "candidates.jsonl, line 1: damaged" in index
    assert 'href="one.vip/' not in index


def test_an_index_of_somebody_else_is_refused(runs: Path, tmp_path: Path) -> None:
    (runs / "index.html").write_text("mine")
    done = vip(tmp_path, "report", "runs")
    assert done.code == 2
    assert done.sentence.startswith("runs/index.html was not written by vip.")
    assert (runs / "index.html").read_text() == "mine"


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = vip(tmp_path, "report", "empty")
    assert done.code == 3
    assert done.sentence.startswith("empty holds no keyframes.")
