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

from vip.errors import BackendError

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
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-c",
                    f"import sys; from {self.module} import main; main(*sys.argv[1:])",
                    str(there.fileno()),
                    *self.arguments,
                ],
                stdin=subprocess.DEVNULL,
                pass_fds=[there.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
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


def too_many_deaths(does: str, code: int) -> BackendError | RuntimeError:
    """What ends the run where a process that does something ended `MOST_DEATHS` times in a row without a word.

    The system kills where memory runs out, which is a device that is missing. Any other end is a bug in vip or in a library.

    Args:
        code: of its last end, minus the number of the signal.
    """
    if code != -signal.SIGKILL:
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
    with Connection(int(fd)) as pipe, suppress(EOFError, ConnectionError):
        end_with_parent(pipe.recv())
        try:
            yield pipe
        except MemoryError:
            os.kill(os.getpid(), signal.SIGKILL)  # as the system does it, and for the same reason
