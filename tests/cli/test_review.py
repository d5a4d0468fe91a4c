"""`vip review` on the command line."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.api_server import CAPTION, ApiServer
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


@pytest.fixture
def corrected(folder: Path) -> Path:
    state = open_state(folder)
    state.record([action("k1", "focus", "a red kite", before=state.value("k1", "focus")), action("k1", "verdict.2", "good")])
    state.record([action("k2", "focus", "a red kite", before=state.value("k2", "focus"))])
    state.log.close()
    return folder


def test_captions_are_rewritten_from_corrected_fields(corrected: Path) -> None:
    command = ["review", str(corrected), "--rewrite", "--engine", "fake"]
    dry = vip(corrected, *command, "--dry-run")
    assert dry.out.startswith("1 caption to rewrite: about 1 request")
    assert "1 keyframe has corrected fields, but no verdict good of stage 2 yet." in dry.err
    refused = vip(corrected, *command[:-1], "fake:refuse", "--json")
    assert refused.code == 8
    assert [one["item"] for one in refused.rows[0]["failed"]] == ["k1"]
    assert refused.sentence.startswith("1 of 1 captions could not be rewritten")
    done = vip(corrected, *command, "--json")
    assert (done.code, done.rows[0]["written"]) == (0, ["k1"])
    assert vip(corrected, *command).out.startswith("0 captions rewritten by fake")


def test_a_server_is_asked_once_and_exports_name_it(corrected: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(corrected, copy)
    command = ("--rewrite", "--engine", "openai:some-model")
    with ApiServer() as server:
        done = vip(tmp_path, "review", corrected, *command, "--base-url", server.base_url, "--json")
        assert (done.code, done.rows[0]["written"]) == (0, ["k1"]), done.err
        again = vip(tmp_path, "review", copy, *command, "--base-url", server.base_url)
        assert again.code == 0, again.err
        assert "1 answer of earlier requests" in again.err
        (asked,) = [one for one in server.requests if "a red kite" in json.dumps(one.body)]
    assert "focus: a red kite" in asked.text
    assert vip(tmp_path, "review", copy, "--export", "out.jsonl").code == 0
    row = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[1])
    assert (row["dense_caption"], row["changed_by"]["dense_caption"]) == (CAPTION, "engine:openai:some-model")
    assert row["original"]["dense_caption"] != CAPTION


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([".", "--rewrite", "--stage", "3"], 2, "--rewrite asks an engine and ends"),
        ([".", "--engine", "fake"], 2, "--engine is for --rewrite"),
        ([".", "--dry-run"], 2, "--dry-run is for --rewrite"),
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
