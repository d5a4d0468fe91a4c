"""A process that the system kills as soon as it has something to do, as where memory runs out."""

from __future__ import annotations

import os
import signal

from vip.processes.supervisor import ChildProcess, child_pipe


def main(fd: str, *arguments: str) -> None:
    with child_pipe(fd) as pipe:
        pipe.recv()
        os.kill(os.getpid(), signal.SIGKILL)


def started(module: str, arguments: tuple[str, ...] = ()) -> ChildProcess:
    """In the place of `ChildProcess`."""
    return ChildProcess("tests.corpus.workers.killed", arguments)
