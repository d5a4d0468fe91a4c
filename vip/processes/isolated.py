"""Work on one file in a child process that can be abandoned: start it, pass on its progress, and end it.

It is ended when its time limit is over, when a call into FFmpeg does not return, when it falls silent, and on Ctrl-C.

On Linux the child may be a fork, which costs a few milliseconds. A fork of a process with threads may deadlock on a lock that one of them
held. So with threads, and on other systems, it is a new interpreter, which takes half a second to start.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Protocol, assert_never, cast

import cv2  # noqa: F401 - its OpenBLAS has threads, which are counted below

from vip.cores import one_opencv_thread
from vip.errors import GivenUpError
from vip.processes import child
from vip.processes.child import (
    BEAT_S,
    ChildNote,
    Heartbeat,
    Message,
    TrackAdvanced,
    TrackEnded,
    TrackStarted,
    Work,
    WorkDone,
    WorkFailed,
)
from vip.protocols import Observer
from vip.wording import again, option

STALLED_BEATS = 120  # FFmpeg needs less for any frame, also for a search through a file on a slow network disk
GRACE_S = 0.3  # for the child to tidy up; Ctrl-C promises an end within a second
KILLED_S = 5.0  # for the system to end a killed process; one that waits for a dead disk is left behind
BOOTSTRAP = "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); from vip.processes import child; child.main()"
"""Started with -P: else Python would look for these modules in the current folder first, where a download may lie."""


@dataclass(frozen=True, slots=True)
class ChildEnded:
    """The end of the child's messages without a result."""


@dataclass(frozen=True, slots=True)
class ChildStalled:
    """A call into FFmpeg that did not come back, or a child that fell silent."""

    seconds: float


@dataclass(frozen=True, slots=True)
class ChildLate:
    """A child that was not done within its time limit."""


Received = Message | ChildEnded
Outcome = WorkDone | WorkFailed | ChildEnded | ChildStalled | ChildLate


class EndableProcess(Protocol):
    """The part of `subprocess.Popen` that is used here."""

    def poll(self) -> int | None:
        """Return the exit code, minus the number of the signal that ended it; None while it runs."""

    def terminate(self) -> None: ...
    def kill(self) -> None: ...


def run_isolated(work: Work, subject: object, observer: Observer, *, timeout_s: float | None = None, fork: bool = False) -> None:
    """Do `work(observer)` in a child process and return when it is done.

    Args:
        work: sent by pickle unless it is forked.
        subject: the file that is worked on, for messages.
        fork: fork if that is safe. Changes to this process (by tests, by plugins) then hold in the child too.

    Raises:
        GivenUpError: the time was over, FFmpeg hung or crashed, or memory ran out.
        Exception: what the work raised.
    """
    deadline = time.monotonic() + timeout_s if timeout_s is not None else None
    with _start(work, subject, fork=fork and _can_fork()) as (process, messages):
        outcome = _listen(messages, process, observer, deadline)
        if isinstance(outcome, WorkDone | WorkFailed | ChildEnded):
            _is_gone(process, KILLED_S)
    if isinstance(outcome, WorkFailed):
        raise outcome.error
    if isinstance(outcome, ChildLate):
        raise GivenUpError(
            f"{subject}: not finished within its time limit of {timeout_s:g} s. {again()} with a longer {option('timeout')};"
            " what is written by now is used.",
            "timeout",
        )
    if isinstance(outcome, ChildStalled):
        text = f"{subject}: FFmpeg was given up after {outcome.seconds:g} s in which it did not come back. {_repair_advice(subject)}"
        raise GivenUpError(text, "stalled")
    if isinstance(outcome, ChildEnded):
        raise GivenUpError(f"{subject}: {_describe_death(process.poll(), subject)}", "crash")


def _describe_death(code: int | None, subject: object) -> str:
    """Return why a child ended without a result, and what to do."""
    if code == -9:
        return "reading it was ended by the system (SIGKILL), most likely because memory ran out. Free some, and try again."
    try:
        cause = signal.Signals(-(code or 0)).name
    except ValueError:
        cause = f"exit code {code}"
    return f"FFmpeg crashed on this file ({cause}). {_repair_advice(subject)}"


def _repair_advice(subject: object) -> str:
    return f"Repair it, for example with `ffmpeg -i {subject} -c copy repaired.mkv`, and give that file."


# ---------------------------------------------------------------- listening


def _listen(messages: SimpleQueue[Received], process: EndableProcess, observer: Observer, deadline: float | None) -> Outcome:
    """Pass messages on to the observer until the work has ended, and return how."""
    silent = 0
    with _ProgressRelay(observer) as relay:
        while True:
            left = BEAT_S if deadline is None else min(BEAT_S, deadline - time.monotonic())
            if left <= 0:
                return ChildLate()
            try:
                message = messages.get(timeout=left)
            except Empty:
                silent += 1  # polls are counted because a clock goes on while both processes are stopped
                if silent >= STALLED_BEATS:
                    return ChildStalled(silent * BEAT_S)
                if process.poll() is not None and messages.empty():
                    return ChildEnded()
                continue
            silent = 0
            if isinstance(message, WorkDone | WorkFailed | ChildEnded):
                return message
            if isinstance(message, Heartbeat):
                if message.beats >= STALLED_BEATS:
                    return ChildStalled(message.beats * BEAT_S)
            else:
                relay.pass_on(message)


class _ProgressRelay:
    """A relay of the child's progress to the observer; it closes progress bars that the child left open."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._open: dict[int, tuple[ExitStack, Callable[[], None]]] = {}

    def __enter__(self) -> _ProgressRelay:
        return self

    def __exit__(self, *error: object) -> None:
        for number in reversed(list(self._open)):
            self._end(number)

    def pass_on(self, message: ChildNote | TrackStarted | TrackAdvanced | TrackEnded) -> None:
        match message:
            case ChildNote(text):
                self._observer.note(text)
            case TrackStarted(number, title, total):
                stack = ExitStack()
                self._open[number] = stack, stack.enter_context(self._observer.track(title, total))
            case TrackAdvanced(number, steps):
                for _ in range(steps):
                    self._open[number][1]()
            case TrackEnded(number):
                self._end(number)
            case _:
                assert_never(message)

    def _end(self, number: int) -> None:
        self._open.pop(number)[0].close()


# ---------------------------------------------------------------- starting and ending


@contextmanager
def _start(work: Work, subject: object, *, fork: bool) -> Iterator[tuple[EndableProcess, SimpleQueue[Received]]]:
    """Yield the child and its messages; end it with the context."""
    messages: SimpleQueue[Received] = SimpleQueue()
    with _hold_signals() as release:  # Ctrl-C must come when the child is known here and prepared there
        process, pipe = (_start_fork if fork else _start_interpreter)(work, subject)
        reader = threading.Thread(target=_read, args=(pipe, messages), daemon=True)
        reader.start()
        try:
            release()
            yield process, messages
        finally:
            _end(process)
            reader.join(GRACE_S)


@contextmanager
def _hold_signals() -> Iterator[Callable[[], None]]:
    """Hold SIGINT and SIGTERM until the yielded function is called, or to the end. A child inherits that they are held."""
    if not hasattr(signal, "pthread_sigmask"):
        yield lambda: None
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield lambda: _set_mask(before)
    finally:
        _set_mask(before)


def _set_mask(mask: set[int | signal.Signals]) -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _read(pipe: IO[bytes], messages: SimpleQueue[Received]) -> None:
    with pipe:
        while True:
            try:
                messages.put(pickle.load(pipe))
            except (EOFError, OSError, pickle.UnpicklingError):  # the end, also in the middle of a message
                messages.put(ChildEnded())
                return


def _end(process: EndableProcess) -> None:
    if process.poll() is None:
        process.terminate()
        if not _is_gone(process, GRACE_S):
            process.kill()
            _is_gone(process, KILLED_S)


def _is_gone(process: EndableProcess, within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while process.poll() is None:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.001)
    return True


class _Fork:
    """A forked child, as far as a `EndableProcess` goes."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        if self._code is None:
            try:
                pid, status = os.waitpid(self._pid, os.WNOHANG)
            except ChildProcessError:  # if SIGCHLD is ignored, the exit code is lost
                self._code = 0
            else:
                self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    def terminate(self) -> None:
        os.kill(self._pid, signal.SIGTERM)  # until its end is polled, no other process gets this number

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)


def _start_fork(work: Work, subject: object) -> tuple[EndableProcess, IO[bytes]]:
    here, there = os.pipe()
    parent = os.getpid()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            stream.flush()  # or the child would write the same lines
    with one_opencv_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 counts the threads of OpenBLAS, which can be forked
        pid = os.fork()
    if pid == 0:
        gc.freeze()  # inherited objects are no garbage, and visiting them would copy their pages
        child.run(work, subject, parent, os.fdopen(there, "wb"))
    os.close(there)
    return _Fork(pid), os.fdopen(here, "rb")


def _start_interpreter(work: Work, subject: object) -> tuple[EndableProcess, IO[bytes]]:
    process = subprocess.Popen([sys.executable, "-P", "-c", BOOTSTRAP], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    stdin, stdout = cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)
    with suppress(BrokenPipeError), stdin:
        stdin.write(pickle.dumps(sys.path) + pickle.dumps((work, subject, os.getpid())))
    return process, stdout


def _can_fork() -> bool:
    if sys.platform != "linux" or threading.active_count() > 1 or TORCH_CAME_FIRST:
        return False
    with one_opencv_thread():
        return _native_threads() <= USUAL_THREADS


def _native_threads() -> int:
    return len(list(Path("/proc/self/task").iterdir())) if sys.platform == "linux" else 1


USUAL_THREADS = _native_threads()  # of OpenBLAS, which survives a fork; torch's OpenMP deadlocks there
TORCH_CAME_FIRST = "torch" in sys.modules  # its threads may be among them
