"""A video that crashes or hangs what reads it costs itself, not the batch; signals end the process that reads too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cli import stuck
from tests.cli.terminal import PATIENCE_S, Done, end, environment, start_command, vip
from tests.cli.test_interrupted import SENTENCE, wait_for
from tests.clips import clip, result
from vip.store import Run, load_run

STOPS = [("sampler", "parent"), ("embedder", "group"), ("detector", "parent"), ("choosing", "group")]


@pytest.fixture
def package(tmp_path: Path) -> dict[str, str]:
    return stuck.install(tmp_path / "package")


class Group:
    """`vip …`, started as a terminal does: in a process group of its own."""

    def __init__(self, folder: Path, *arguments: str, **variables: str) -> None:
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [sys.executable, "-m", "vip", *arguments]
        environ = environment(**variables)
        self.process = subprocess.Popen(command, cwd=folder, env=environ, text=True, start_new_session=True, **pipes)

    def __enter__(self) -> Group:
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(ProcessLookupError):
            self.send(signal.SIGKILL)
        self.process.communicate(timeout=PATIENCE_S)

    def send(self, number: int) -> None:
        os.killpg(self.process.pid, number)

    def end(self) -> Done:
        """What it left in the terminal, once nobody of the group is left."""
        done = end(self.process)
        for _ in range(500):
            try:
                self.send(0)
            except ProcessLookupError:
                return done
            time.sleep(0.01)
        raise AssertionError("a process is left")


def test_videos_that_crash_cost_only_themselves(package: dict[str, str], tmp_path: Path) -> None:
    for number, name in enumerate(("a", "crash", "eat", "z")):
        clip(tmp_path / "clips" / f"{name}.mp4", [number, number + 1])
    with Group(tmp_path, "extract", "clips", "-n", "2", "-o", "runs", *stuck.OPTIONS, "-q", **package) as group:
        done = group.end()
    assert done.code == 8, done.err
    told = {Path(row.item).stem: row for row in Run(tmp_path / "runs").failures}
    assert {name: (row.kind, row.exit_code) for name, row in told.items()} == {"crash": ("crash", 3), "eat": ("unreadable", 3)}
    assert "FFmpeg crashed on this file (SIGSEGV)" in told["crash"].message
    assert "memory ran out" in told["eat"].message
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["a.vip", "failures.jsonl", "index.html", "z.vip"]
    assert [len(load_run(tmp_path / "runs" / f"{name}.vip").keyframes) for name in ("a", "z")] == [2, 2]


def test_a_video_that_hangs_is_given_up_when_its_time_is_over(package: dict[str, str], tmp_path: Path) -> None:
    clip(tmp_path / "hang.mp4", [1])
    with Group(tmp_path, "extract", "hang.mp4", "--timeout", "0:01", *stuck.OPTIONS, **package) as group:
        done = group.end()
    assert done.code == 3
    assert done.sentence.startswith(
        "hang.mp4: not finished within its time limit of 1 s. Run the same command again with a longer --timeout"
    )
    assert not (tmp_path / "hang.vip").exists()


def test_the_only_video_that_crashes_is_an_error_of_the_input(package: dict[str, str], tmp_path: Path) -> None:
    clip(tmp_path / "crash.mp4", [1])
    done = vip(tmp_path, "run", "crash.mp4", "--engine", "offline", *stuck.OPTIONS, **package)
    assert done.code == 3
    assert done.sentence.startswith("crash.mp4: FFmpeg crashed on this file (SIGSEGV). Repair it")
    assert not (tmp_path / "crash.vip").exists()


def test_a_time_limit_is_no_part_of_what_makes_a_run_the_same(tmp_path: Path) -> None:
    clip(tmp_path / "a.mp4", [1, 2])
    command = ("extract", "a.mp4", "-n", "2")
    assert vip(tmp_path, *command, "--timeout", "60").code == 0
    before = result(tmp_path / "a.vip")
    (tmp_path / "vip.toml").write_text('[extract]\ntimeout = "0:01:00"\n')
    assert vip(tmp_path, *command, VIP_TIMEOUT="50").code == 0
    assert result(tmp_path / "a.vip") == before
    refused = vip(tmp_path, *command, "--timeout", "0")
    assert refused.code == 2
    assert "--timeout" in refused.sentence


@pytest.mark.parametrize(("stage", "to"), STOPS)
def test_ctrl_c_ends_every_stage_also_inside_c(stage: str, to: str, package: dict[str, str], tmp_path: Path) -> None:
    clip(tmp_path / "a.mp4", [1, 2, 3])
    command = ("extract", "a.mp4", "-n", "2", *stuck.OPTIONS)
    with Group(tmp_path, *command, STAGE=stage, **package) as group:
        wait_for(tmp_path / "there")
        if to == "group":
            group.send(signal.SIGINT)
        else:
            group.process.send_signal(signal.SIGINT)
        done = group.end()
    assert (done.code, done.err) == (130, f"vip: {SENTENCE}\n")
    assert not (tmp_path / "a.vip").exists()
    if to == "group":
        assert vip(tmp_path, *command, **package).code == 0  # it stops there only once
        assert len(load_run(tmp_path / "a.vip").keyframes) == 2


def test_sigterm_stops_as_ctrl_c_does_with_the_code_of_its_own(package: dict[str, str], tmp_path: Path) -> None:
    clip(tmp_path / "a.mp4", [1, 2])
    with Group(tmp_path, "extract", "a.mp4", *stuck.OPTIONS, STAGE="embedder", **package) as group:
        wait_for(tmp_path / "there")
        group.process.terminate()
        done = group.end()
    assert (done.code, done.sentence) == (143, "terminated. Run the same command again to go on where it stopped.")
    assert not (tmp_path / "a.vip").exists()


def test_sigterm_stops_what_a_script_started_in_the_background(package: dict[str, str], tmp_path: Path) -> None:
    clip(tmp_path / "a.mp4", [1, 2])
    line = f"{sys.executable} -m vip extract a.mp4 {' '.join(stuck.OPTIONS)} & echo $!; wait $!; echo $?"  # which ignores SIGINT
    shell = start_command(tmp_path, "bash", "-c", line, STAGE="embedder", **package)
    assert shell.stdout is not None
    job = int(shell.stdout.readline())
    try:
        wait_for(tmp_path / "there")
        os.kill(job, signal.SIGTERM)
        assert end(shell).out == "143\n"
    finally:
        with suppress(ProcessLookupError):
            os.kill(job, signal.SIGKILL)


def test_when_vip_is_killed_the_process_that_reads_dies_too(package: dict[str, str], tmp_path: Path) -> None:
    clip(tmp_path / "a.mp4", [1, 2])
    with Group(tmp_path, "extract", "a.mp4", *stuck.OPTIONS, STAGE="embedder", **package) as group:
        wait_for(tmp_path / "there")
        group.process.kill()
        assert group.end().code == -signal.SIGKILL
    assert vip(tmp_path, "extract", "a.mp4", *stuck.OPTIONS, **package).code == 0
