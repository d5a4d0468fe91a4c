"""A process of our own at the other end of a pipe: a new interpreter, which ends with this one, however this one ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from vip.errors import BackendError

KILLED = getattr(signal, "SIGKILL", signal.SIGTERM)  # on Windows, where the latter ends at once, its number is the exit code
MOST_DEATHS = 3  # in a row, before the run ends


@dataclass(eq=False, slots=True)
class ChildProcess:
    """Runs `main(FD, ARGUMENT…)` of a module, where FD is its end of the pipe. Start it in the thread that lives longest."""

    module: str
    arguments: tuple[str, ...] = ()
    pipe: Connection = field(init=False)
    _process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.pipe, there = Pipe()
        with there:
            code = f"import sys; from {self.module} import main; main(*sys.argv[1:])"
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", code, str(there.fileno()), *self.arguments],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                **_inherited(there.fileno()),
            )
        self.send(os.getpid())

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, message: object) -> None:
        """Where it is gone, its pipe will tell."""
        with suppress(OSError):
            self.pipe.send(message)

    def kill(self) -> int:
        """End it at once. Returns its exit code, minus the number of the signal that ended it."""
        self._process.kill()
        code = self._process.wait()
        self.pipe.close()
        return code


def _inherited(pipe: int) -> dict[str, Any]:
    """Return what makes `subprocess.Popen` leave this file open in the child."""
    if sys.platform == "win32":
        os.set_handle_inheritable(pipe, True)
        return {"startupinfo": subprocess.STARTUPINFO(lpAttributeList={"handle_list": [pipe]})}
    return {"pass_fds": [pipe]}


def _opened(pipe: str) -> Connection:
    if sys.platform == "win32":
        from multiprocessing.connection import PipeConnection

        return PipeConnection(int(pipe))
    return Connection(int(pipe))


def too_many_deaths(does: str, code: int) -> BackendError | RuntimeError:
    """What ends the run where a process that does something ended `MOST_DEATHS` times in a row without a word.

    The system kills where memory runs out, which is a device that is missing. Any other end is a bug in vip or in a library.

    Args:
        code: of its last end, minus the number of the signal.
    """
    if abs(code) != KILLED:
        return RuntimeError(f"the process that {does} ended {MOST_DEATHS} times without a word (exit code {code})")
    return BackendError(
        f"The process that {does} was ended by the system {MOST_DEATHS} times in a row, most likely because memory ran out. "
        "Use fewer --workers or a machine with more memory; the same command goes on."
    )


@contextmanager
def child_pipe(fd: str) -> Iterator[Connection]:
    """The pipe, in the child. What prints goes to stderr; Ctrl-C is left to the driver; where the driver is gone, this ends."""
    from vip.processes.child import end_with_parent

    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with _opened(fd) as pipe, suppress(EOFError, ConnectionError):
        end_with_parent(pipe.recv())
        try:
            yield pipe
        except MemoryError:
            os.kill(os.getpid(), KILLED)  # as the system does it, and for the same reason
