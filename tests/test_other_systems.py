"""Elsewhere than on Linux: what only Linux has is taken away, and the commands do their work without it."""

from __future__ import annotations

import asyncio
import os
import sys
from functools import partial
from multiprocessing import Pipe
from pathlib import Path

import pytest

from tests.cli.terminal import end, start_command, vip
from tests.clips import SAMPLE
from vip import store
from vip.cli.app import make_app
from vip.corpus.workers import caption_server

TAKEN_AWAY = """
import asyncio, ctypes, getpass, multiprocessing.connection, os, shutil, signal, subprocess, sys, tempfile, zoneinfo  # for any system
import filelock  # has locks of its own on Windows
subprocess.Popen.kill = lambda process: os.kill(process.pid, 9)
for name in ("fcntl", "grp", "pwd", "resource", "termios", "tty", "pty"):
    sys.modules[name] = None
of_os = ("fork", "forkpty", "register_at_fork", "getuid", "geteuid", "getgid", "sched_getaffinity", "sched_setaffinity", "posix_fadvise")
for name in (*of_os, "O_NOFOLLOW", "O_DIRECTORY", "O_CLOEXEC", "killpg", "setsid", "mkfifo"):
    delattr(os, name)
for name in ("pthread_sigmask", "SIGKILL", "SIGHUP"):
    delattr(signal, name)
os.supports_dir_fd = os.supports_fd = os.supports_follow_symlinks = set()
sys.platform = "elsewhere"
"""
COMMANDS = [str(command.name) for command in make_app().registered_commands]


@pytest.fixture(scope="session")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables with which every Python that is started, and those that it starts, lacks what only Linux has."""
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "sitecustomize.py").write_text(TAKEN_AWAY)
    return {"PYTHONPATH": os.pathsep.join([str(folder), str(Path(__file__).parents[1])])}


def test_it_is_taken_away_and_from_the_processes_of_a_process_too(elsewhere: dict[str, str], tmp_path: Path) -> None:
    inner = "import os, sys; print(hasattr(os, 'fork'), sys.platform)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    assert end(start_command(tmp_path, sys.executable, "-c", code, **elsewhere)).out == "False elsewhere\n"


def test_every_command_starts(elsewhere: dict[str, str], tmp_path: Path) -> None:
    code = f"""
import runpy, sys
for name in {COMMANDS!r}:
    sys.argv = ["vip", name, "--help"]
    try:
        runpy.run_module("vip", run_name="__main__")
    except SystemExit as done:
        assert not done.code, (name, done.code)
"""
    done = end(start_command(tmp_path, sys.executable, "-c", code, **elsewhere))
    assert (done.code, done.err) == (0, "")
    assert len(COMMANDS) > 5
    for name in COMMANDS:
        assert f"vip {name} " in done.out


def test_run_finishes_and_finds_what_it_finds_on_linux(elsewhere: dict[str, str], tmp_path: Path) -> None:
    for folder, variables in ((tmp_path / "there", elsewhere), (tmp_path / "here", {})):
        folder.mkdir()
        done = vip(folder, "run", SAMPLE, "-n", "4", "--engine", "offline", **variables)
        assert done.code == 0, done.err
        assert (folder / "sample.vip" / "report.html").exists()
    here, there = (store.load_run(tmp_path / name / "sample.vip").keyframes for name in ("here", "there"))
    assert [frame.record.pts for frame in there] == [frame.record.pts for frame in here]


def test_a_batch_finishes(elsewhere: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "videos.txt").write_text(f"{SAMPLE}\n")
    done = vip(tmp_path, "batch", "videos.txt", "-o", "corpus", "-n", "2", "--engine", "offline", "--workers", "1", **elsewhere)
    assert done.code == 0, done.err
    assert "finished" in vip(tmp_path, "batch", "--status", "corpus", **elsewhere).out


def test_where_no_pipe_can_be_watched_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    async def told() -> object:
        loop = asyncio.get_running_loop()

        def refuse(*_: object) -> None:
            raise NotImplementedError

        monkeypatch.setattr(loop, "add_reader", refuse)
        here, there = Pipe()
        with here, there:
            loop.call_later(0.05, partial(there.send, "a part"))
            return await caption_server._receive(here)

    assert asyncio.run(told()) == "a part"
