"""A process that the system kills as soon as it has something to do, as where memory runs out."""

from __future__ import annotations

import os
import signal

from vip.corpus.work.process import Child, at_the_other_end


def main(fd: str, *arguments: str) -> None:
    with at_the_other_end(fd) as pipe:
        pipe.recv()
        os.kill(os.getpid(), signal.SIGKILL)


def started(module: str, arguments: tuple[str, ...] = ()) -> Child:
    """In the place of `Child`."""
    return Child("tests.corpus.work.killed", arguments)
