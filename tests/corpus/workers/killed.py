"""A process that the system kills as soon as it has something to do, as where memory runs out."""

from __future__ import annotations

import os
import signal

import pytest

from vip.processes.supervisor import ChildProcess, child_pipe


def main(fd: str, *arguments: str) -> None:
    with child_pipe(fd) as pipe:
        pipe.recv()
        os.kill(os.getpid(), signal.SIGKILL)


def kill_children(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """Let all children of a module of `vip.corpus.workers` be killed from now on."""

    def start(started: str, arguments: tuple[str, ...] = ()) -> ChildProcess:
        return ChildProcess("tests.corpus.workers.killed" if started == f"vip.corpus.workers.{module}" else started, arguments)

    monkeypatch.setattr("vip.processes.supervisor.ChildProcess", start)
