"""`vip review` on the command line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.cli.terminal import vip
from tests.review.corpora import action, make_described, open_state

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = make_described(tmp_path / "a", 3)
    state = open_state(folder)
    state.record([action("k0", "verdict", "good"), action("k0", "verdict", "good", by="Bob"), action("k1", "verdict", "good")])
    state.log.close()
    return folder


def test_the_page_is_served_until_it_is_interrupted(folder: Path) -> None:
    command = [sys.executable, "-m", "vip", "review", str(folder), "--no-open", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        shown = json.loads(process.stdout.readline())
        assert shown["items"] == 3
        with urllib.request.urlopen(shown["address"], timeout=30) as page:
            assert b"Review of a" in page.read()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert errors.strip().endswith("review.sqlite.")


def test_the_report_is_a_table_or_json(folder: Path) -> None:
    pytest.importorskip("krippendorff")
    assert "  Ann: 2 judged (2 good, 0 needs work, 0 unusable)" in vip(folder, "review", str(folder), "--report").out
    report = json.loads(vip(folder, "review", str(folder), "--report", "--json").out)
    assert (report["items"], report["agreement"][0]["raw"]) == (3, 1.0)


def test_the_reviewed_texts_are_written(folder: Path) -> None:
    done = vip(folder, "review", str(folder), "--export", "out.jsonl")
    assert (done.code, done.out) == (0, "3 items in out.jsonl\n")
    assert len((folder / "out.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nothing"], 3, "nothing is not a folder"),
        ([".", "--stage", "5"], 2, 'There is no stage "5"'),
        ([".", "--port", "99999"], 2, "a port is a number"),
        ([".", "--host", "0.0.0.0"], 2, "give the one address or name"),
        ([".", "--host", "203.0.113.7", "--no-open"], 7, "203.0.113.7:0 cannot be used"),
        ([".", "--export", "out.xml"], 2, "neither .jsonl nor .csv"),
    ],
)
def test_what_cannot_be_done_is_a_sentence_and_a_code(folder: Path, words: list[str], code: int, message: str) -> None:
    done = vip(folder, "review", *words)
    assert done.code == code
    assert message in done.err


def test_a_report_of_what_nobody_reviewed_says_so(tmp_path: Path) -> None:
    made = make_described(tmp_path / "b", 1)
    done = vip(tmp_path, "review", str(made), "--report")
    assert done.code == 2
    assert "was not reviewed yet" in done.err
    assert not (made / "review.sqlite").exists()
