"""Child processes that may crash, hang or run out of memory: start one, send it messages, replace it when it dies, and end it.

A child is a new interpreter at the other end of a pipe, and ends with this process, however this one ends. Its first message is its
configuration. A child that dies is replaced by the next message to it. `MOST_DEATHS` deaths in a row end the run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

from vip.errors import BackendError, VipError
from vip.wording import option

KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows has the latter alone, and ends a process at once
KILLED = KILL if sys.platform == "win32" else -KILL  # the exit code
MOST_DEATHS = 3  # in a row, before the run ends
RequestT = TypeVar("RequestT")


@dataclass(eq=False, slots=True)
class ChildProcess:
    """A process that runs `main(FD, ARGUMENT…)` of a module, where FD is its end of the pipe. Start it in the thread that lives longest."""

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
                **_inherit_options(there.fileno()),
            )
        self.send(os.getpid())

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, message: object) -> None:
        """Send a message. If the child is gone, the next read of the pipe says so."""
        with suppress(OSError):
            self.pipe.send(message)

    def stop(self) -> int:
        """End the child at once; what it sent before can still be read. Returns its exit code, minus the number of the signal."""
        self._process.kill()
        return self._process.wait()

    def kill(self) -> int:
        """End the child at once. Returns its exit code, minus the number of the signal that ended it."""
        code = self.stop()
        self.pipe.close()
        return code


def _inherit_options(pipe: int) -> dict[str, Any]:
    """Return the options with which `subprocess.Popen` leaves this file open in the child."""
    if sys.platform == "win32":
        os.set_handle_inheritable(pipe, True)
        return {"startupinfo": subprocess.STARTUPINFO(lpAttributeList={"handle_list": [pipe]})}
    return {"pass_fds": [pipe]}


def _open_connection(pipe: str) -> Connection:
    if sys.platform == "win32":
        from multiprocessing.connection import PipeConnection

        return PipeConnection(int(pipe))
    return Connection(int(pipe))


class ChildDiedError(Exception):
    """A child ended without a word.

    Args:
        code: its exit code, minus the number of the signal that ended it.
    """

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(slots=True)
class DeathsInARow:
    """The deaths since the last success: of one child and those that replaced it, or of all children of a pool."""

    count: int = 0

    def add(self, does: str, code: int) -> None:
        """Count a death.

        Raises:
            BackendError, RuntimeError: see `too_many_deaths`.
        """
        self.count += 1
        if self.count >= MOST_DEATHS:
            raise too_many_deaths(does, code)

    def reset(self) -> None:
        self.count = 0


@dataclass(eq=False, slots=True)
class Supervisor:
    """A child process that is started when it is needed and replaced when it dies.

    Args:
        module: has the child's `main(FD, ARGUMENT…)`.
        does: what the child does, for messages: "writes shards".
        config: returns the first message to each child.
        deaths: shared by the supervisors of a pool.
    """

    module: str
    does: str
    config: Callable[[], object]
    arguments: tuple[str, ...] = ()
    deaths: DeathsInARow = field(default_factory=DeathsInARow)
    _child: ChildProcess | None = None

    @property
    def is_running(self) -> bool:
        return self._child is not None

    def start(self) -> ChildProcess:
        """Return the child; start one if none runs."""
        if self._child is None:
            self._child = ChildProcess(self.module, self.arguments)
            self._child.send(self.config())
        return self._child

    def send(self, message: object) -> None:
        """Send a message to the child; start one if none runs."""
        self.start().send(message)

    @property
    def pipe(self) -> Connection:
        """The pipe of the running child, to wait for."""
        return self.start().pipe

    def has_message(self, timeout_s: float = 0.0) -> bool:
        """Return whether the child has sent something or died; wait at most so long for it."""
        return self._child is not None and self._child.pipe.poll(timeout_s)

    def receive(self, *, excused: bool = False) -> object:
        """Return the next message of the child; wait for it.

        Args:
            excused: a death now has a known cause and does not count.

        Raises:
            ChildDiedError: the child is gone.
            VipError: the child sent this error; or too many died in a row, because memory ran out.
            RuntimeError: too many died in a row for another reason.
        """
        try:
            message = self.start().pipe.recv()
        except (EOFError, OSError):
            code = self.close()
            if not excused:
                self.deaths.add(self.does, code)
            raise ChildDiedError(code) from None
        if isinstance(message, VipError):
            raise message
        return message

    def close(self) -> int:
        """End the child at once, if one runs. Returns its exit code, minus the number of the signal that ended it."""
        child, self._child = self._child, None
        return 0 if child is None else child.kill()


@dataclass(eq=False, slots=True)
class Requests(Generic[RequestT]):
    """One request at a time to a child. A child that dies is replaced, and the same request is sent again."""

    child: Supervisor
    current: RequestT | None = None
    """The request without a reply."""

    def send(self, request: RequestT) -> None:
        self.current = request
        self.child.send(request)

    def reply(self, timeout_s: float = 0.0) -> object | None:
        """Return the reply to the current request; None if there is no request, or no reply within this time.

        Raises:
            VipError, RuntimeError: see `Supervisor.receive`.
        """
        if self.current is None or not self.child.has_message(timeout_s):
            return None
        try:
            message = self.child.receive()
        except ChildDiedError:
            self.child.send(self.current)
            return None
        self.child.deaths.reset()
        self.current = None
        return message


def too_many_deaths(does: str, code: int) -> BackendError | RuntimeError:
    """Return the error that ends the run after `MOST_DEATHS` deaths in a row.

    The system kills where memory runs out, so SIGKILL means a machine that is too small. Any other end is a bug in vip or in a library.

    Args:
        code: the exit code of the last child, minus the number of the signal.
    """
    if code != KILLED:
        return RuntimeError(f"the process that {does} ended {MOST_DEATHS} times without a word (exit code {code})")
    return BackendError(
        f"The process that {does} was ended by the system {MOST_DEATHS} times in a row, most likely because memory ran out. "
        f"Use fewer {option('workers')} or a machine with more memory; the same command goes on."
    )


@contextmanager
def child_pipe(fd: str) -> Iterator[Connection]:
    """Yield the pipe, in the child. Prints go to stderr, Ctrl-C is left to the driver, and the child ends with the driver."""
    from vip.processes.child import end_with_parent

    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with _open_connection(fd) as pipe, suppress(EOFError, ConnectionError):
        try:
            driver = pipe.recv()
        except (EOFError, ConnectionError):  # it ended while this process began
            raise SystemExit from None
        end_with_parent(driver)
        try:
            yield pipe
        except MemoryError:
            os.kill(os.getpid(), KILL)  # as the system does it, and for the same reason
