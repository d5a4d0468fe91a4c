"""`vip compare`: the table, the rows for programs, the page, and the exit codes."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import ROOT, Done, vip
from tests.clips import clip, stamps
from tests.report.test_compare_page import comparison
from vip.cli.compare import WIDE, table

SAMPLERS = """
from vip.errors import BackendError
from vip.protocols import SamplerCapabilities

class All:
    name = "all"
    capabilities = SamplerCapabilities()
    def __init__(self, detail):
        pass
    def sample(self, video, *, keyframes, candidates=None):
        return video.index.shown_pts.tolist()

class Refuses(All):
    def sample(self, video, *, keyframes, candidates=None):
        raise BackendError("The sampler refuses.")
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with the video a.mp4, and packages/ with the samplers `all` and `refuses`."""
    clip(tmp_path / "a.mp4", [1, 2, 3])
    info = tmp_path / "packages" / "vip_more-1.0.dist-info"
    info.mkdir(parents=True)
    (info.parent / "vip_more.py").write_text(SAMPLERS)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vip-more\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[vip.samplers]\nall = vip_more:All\nrefuses = vip_more:Refuses\n")
    return tmp_path


def compare(folder: Path, *arguments: str) -> Done:
    paths = [str(folder / "packages"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return vip(folder, "compare", "a.mp4", "-n", "2", *arguments, PYTHONPATH=os.pathsep.join(paths))


def test_without_with_every_sampler_and_pruner_is_compared_with_what_extract_does(here: Path) -> None:
    done = compare(here)
    assert done.code == 0, done.err
    heading, first, *_ = lines = done.out.splitlines()
    assert heading.split()[0] == "Keyframes"
    assert first.split()[:4] == ["sync+algorithm1", "2", "of", "9"]
    assert "Open a.compare/compare.html" in lines
    others = lines[-1]
    assert others.startswith("Not compared: all")
    assert others.endswith("Add one by --with all.")
    assert (here / "a.compare" / "compare.html").exists()


def test_json_is_a_row_for_each_combination(here: Path) -> None:
    done = compare(here, "--with", "all", "--json", "-o", "out")
    assert done.code == 0, done.err
    assert [(row["combination"], row["run"], row["reused"]) for row in done.rows] == [
        ("sync+algorithm1", "out/sync+algorithm1", False),
        ("all+algorithm1", "out/all+algorithm1", False),
        ("uniform+none", "out/uniform+none", False),
    ]
    assert [row["evenly_spaced"] for row in done.rows] == [False, False, True]
    for row in done.rows:
        manifest = json.loads((here / row["run"] / "manifest.json").read_text())
        assert row["seconds"] == pytest.approx(sum(manifest["seconds"].values()), abs=0.001)
        assert (row["keyframes"], row["candidates"]) == (2, manifest["counts"]["candidates"])
        assert 0 < row["coverage_lowest"] < row["coverage"] <= 1
        assert row["page"] == "out/compare.html"


def test_with_auto_the_evenly_spaced_frames_are_as_many_as_extract_keeps(here: Path) -> None:
    done = compare(here, "--with", "all", "--json", "-n", "auto")
    assert done.code == 0, done.err
    default, _, even = done.rows
    assert (default["run"], even["run"]) == ("a.compare/sync+algorithm1", "a.compare/uniform+none")
    asked = [json.loads((here / row["run"] / "manifest.json").read_text())["settings"]["keyframes"] for row in (default, even)]
    assert asked == ["auto", default["keyframes"]]
    assert even["keyframes"] == default["keyframes"] < 9, "all frames of the video would be 9"
    again = compare(here, "--with", "all", "--json", "-n", "auto")
    assert [row["reused"] for row in again.rows] == [True, True, True]


def test_the_same_command_uses_the_runs_again_and_says_so(here: Path) -> None:
    assert compare(here, "--with", "all").code == 0
    before = stamps(here / "a.compare")
    done = compare(here, "--with", "all", "-v")
    after = stamps(here / "a.compare")
    assert done.code == 0, done.err
    assert {name for name in before if before[name] != after[name]} == {"compare.html"}
    assert "* measured by an earlier command, whose run is used again" in done.out
    assert "all+algorithm1: select " in done.err


def test_a_misspelt_name_is_refused_before_any_work(here: Path) -> None:
    done = compare(here, "--with", "all", "--with", "synk")
    assert (done.code, done.sentence) == (4, 'There is no sampler "synk". Did you mean "sync"?')
    assert not (here / "a.compare").exists()


def test_one_that_fails_is_shown_and_the_others_are_done(here: Path) -> None:
    done = compare(here, "--with", "refuses")
    assert done.code == 8
    assert "refuses+algorithm1: The sampler refuses." in done.err
    assert done.sentence == "1 of 3 combinations failed; a.compare/failures.jsonl says why. Run the command again to retry only those."
    rows = [line.split() for line in done.out.splitlines()]
    assert ["refuses+algorithm1", "failed"] in rows
    assert rows[1][0] == "sync+algorithm1"
    (failure,) = (json.loads(line) for line in (here / "a.compare" / "failures.jsonl").read_text().splitlines())
    assert failure["item"] == "refuses+algorithm1"
    again = compare(here, "--with", "refuses", "--json")
    *chosen, refused, last = again.rows
    assert [row["combination"] for row in chosen] == ["sync+algorithm1", "uniform+none"]
    assert refused == {"combination": "refuses+algorithm1", "error": "The sampler refuses.", "exit_code": 4}
    assert (again.code, last["exit_code"]) == (8, 8)


def test_where_all_fail_there_is_one_sentence_and_its_exit_code(here: Path) -> None:
    (here / "a.mp4").write_text("no video")
    done = compare(here, "--with", "all")
    assert done.code == 3
    assert len(done.err.splitlines()) == 1
    assert not (here / "a.compare").exists()


def test_quiet_says_nothing_and_does_everything(here: Path) -> None:
    done = compare(here, "--with", "all", "-q")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert (here / "a.compare" / "compare.html").exists()


# ---------------------------------------------------------------- the table


@pytest.mark.parametrize(("columns", "minor"), [(80, False), (WIDE, True)])
def test_the_table_fits_the_terminal(columns: int, minor: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    shown = table(comparison(tmp_path))
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert max(map(len, plain.splitlines())) <= columns
    assert "…" not in plain
    assert ("covered" in shown) == minor


def test_elsewhere_the_table_is_plain_and_whole(tmp_path: Path) -> None:
    heading, first, second, failed = table(comparison(tmp_path)).splitlines()
    assert "Least covered" in heading
    assert first.split()[:4] == ["sync+algorithm1", "2", "of", "5"]
    assert second.split()[:4] == ["every:2s+algorithm1", "3", "of", "5"]
    assert failed.split() == ["shots+algorithm1", "failed"]
