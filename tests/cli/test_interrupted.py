"""Ctrl-C: exit code 130, one sentence, and the same command goes on. Readers that leave early: no word at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.terminal import ROOT, Done, HoldingServer, end, environment, start, vip, wait_for_rows
from tests.clips import SAMPLE, clip, result
from vip.store import load_run

SENTENCE = "interrupted. Run the same command again to go on where it stopped."
SLOW = """
import pathlib, time
from vip.models.classic import ClassicEmbedder
class Slow(ClassicEmbedder):
    name = "slow"
    def embed_images(self, images):
        pathlib.Path("looking").touch()
        time.sleep(0.05)
        return super().embed_images(images)
"""


@pytest.fixture
def slow(tmp_path: Path) -> dict[str, str]:
    """The environment of an installed package whose embedder takes its time."""
    (tmp_path / "package" / "vip_slow-1.dist-info").mkdir(parents=True)
    (tmp_path / "package" / "vip_slow.py").write_text(SLOW)
    (tmp_path / "package" / "vip_slow-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: vip-slow\nVersion: 1\n")
    (tmp_path / "package" / "vip_slow-1.dist-info" / "entry_points.txt").write_text("[vip.embedders]\nslow = vip_slow:Slow\n")
    return {"PYTHONPATH": os.pathsep.join([str(tmp_path / "package"), str(ROOT)])}


def wait_for(path: Path) -> None:
    for _ in range(600):
        if path.exists():
            return
        time.sleep(0.05)
    raise AssertionError(f"{path} does not come")


def interrupted(process: subprocess.Popen[str]) -> Done:
    process.send_signal(signal.SIGINT)
    done = end(process)
    assert done.code == 130
    assert done.sentence == SENTENCE
    assert "Traceback" not in done.err
    return done


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_an_extraction_that_is_interrupted_says_so_and_can_be_repeated(options: list[str], slow: dict[str, str], tmp_path: Path) -> None:
    command = ("extract", SAMPLE, "-n", "3", "--embedder", "slow", *options)
    process = start(tmp_path, *command, **slow)
    wait_for(tmp_path / "looking")
    done = interrupted(process)
    assert done.err == f"vip: {SENTENCE}\n"
    assert done.out == "" or done.rows == [{"error": SENTENCE, "exit_code": 130}]
    assert not (tmp_path / "sample.vip").exists()
    assert vip(tmp_path, *command, **slow).code == 0
    assert len(load_run(tmp_path / "sample.vip").keyframes) == 3


def test_an_overwrite_that_is_interrupted_leaves_the_old_run(described: Path, slow: dict[str, str], tmp_path: Path) -> None:
    before = result(described)
    process = start(tmp_path, "run", SAMPLE, "-n", "3", "--embedder", "slow", "--overwrite", **slow)
    wait_for(tmp_path / "looking")
    interrupted(process)
    assert result(described) == before


def test_several_videos_stop_at_the_first_interrupt(slow: dict[str, str], tmp_path: Path) -> None:
    for number in range(3):
        clip(tmp_path / "clips" / f"{number}.mp4", range(6))
    process = start(tmp_path, "extract", "clips", "-o", "runs", "--embedder", "slow", **slow)
    wait_for(tmp_path / "looking")
    interrupted(process)
    assert not list(tmp_path.rglob("keyframes.jsonl"))


def test_captions_that_are_interrupted_keep_what_was_paid_for(extracted: Path, tmp_path: Path) -> None:
    with HoldingServer(answers=2) as server:
        command = ("caption", "sample.vip", "--engine", "openai:tiny-vlm", "--base-url", server.base_url)
        process = start(tmp_path, *command)
        assert server.holding.wait(30)
        wait_for_rows(extracted / "descriptions.partial.jsonl", 2)
        assert "Used 2 requests, 22 tokens in, 14 out." in interrupted(process).notes
        server.answers = 1000
        server.released.set()
        kept = load_run(extracted).descriptions
        chats = len(server.chats)
        assert vip(tmp_path, *command).code == 0
        assert len(server.chats) - chats == 4 - len(kept) == 2
    assert [row for row in load_run(extracted).descriptions if row in kept] == kept


# ---------------------------------------------------------------- readers that leave


def unread(folder: Path, *arguments: str | Path, both: bool = False) -> tuple[int, str]:
    """Run `vip …` with nobody at the other end of stdout, or of stdout and stderr; the exit code and what stands on stderr."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "vip", *map(str, arguments)]
    err = subprocess.STDOUT if both else subprocess.PIPE
    try:
        done = subprocess.run(command, cwd=folder, env=environment(), stdout=writer, stderr=err, text=True, timeout=60, check=False)
    finally:
        os.close(writer)
    return done.returncode, done.stderr or ""


@pytest.mark.parametrize("command", [["--help"], ["--version"], ["extract", "--help"], ["doctor"], ["doctor", "--json"]])
def test_a_reader_that_leaves_early_hears_no_complaint(command: list[str], tmp_path: Path) -> None:
    assert unread(tmp_path, *command) == (0, "")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_the_work_is_done_when_nobody_reads_the_result(options: list[str], tmp_path: Path) -> None:
    for number in range(2):
        clip(tmp_path / "clips" / f"{number}.mp4", [number, number + 2])
    assert unread(tmp_path, "extract", "clips", "-q", *options) == (0, "")
    assert unread(tmp_path, "run", "clips", "-n", "1", "-o", "runs", "--engine", "offline", *options, both=True) == (0, "")
    assert {path.parent.name for path in tmp_path.rglob("keyframes.jsonl")} == {"0.vip", "1.vip"}
    assert len(list(tmp_path.rglob("report.html"))) == 2


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_an_error_keeps_its_code_when_nobody_reads_it(options: list[str], tmp_path: Path) -> None:
    assert unread(tmp_path, "extract", "missing.mp4", *options) == (3, "vip: missing.mp4 does not exist. Check the path.\n")
    assert unread(tmp_path, "extract", "missing.mp4", *options, both=True) == (3, "")


def test_head_takes_its_line_and_leaves(tmp_path: Path) -> None:
    clip(tmp_path / "a.mp4", range(4))
    line = f"{sys.executable} -m vip extract a.mp4 | head -1; echo ${{PIPESTATUS[@]}}"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60, check=True)
    first, codes = done.stdout.splitlines()
    assert first.startswith("a.mp4: 4 keyframes")
    assert codes == "0 0"
    assert "Error" not in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_do_not_stop_the_work(closed: str, tmp_path: Path) -> None:
    clip(tmp_path / "a.mp4", [1])
    line = f"{sys.executable} -m vip run a.mp4 --engine fake {closed}"
    assert (
        subprocess.run(["bash", "-c", line], cwd=tmp_path, env=environment(), capture_output=True, timeout=60, check=False).returncode == 0
    )
    assert (tmp_path / "a.vip" / "report.html").exists()
