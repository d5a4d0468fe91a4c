"""The child of `isolated`: do the work, and send its progress, a regular sign of life, and its result to the parent.

The messages are the records below; the last one is `WorkDone` or `WorkFailed`.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

from vip.errors import InputError, VipError
from vip.memory import use_one_heap
from vip.protocols import Observer
from vip.video.stall_guard import inside_ffmpeg
from vip.wording import option

BEAT_S = 1.0  # between two signs of life
PROGRESS_S = 0.1  # between two messages about progress, at least
REPORTED, NOT_REPORTED = 0, 1  # exit codes: whether the last message has the result
PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>

Work = Callable[[Observer], None]


@dataclass(frozen=True, slots=True)
class ChildNote:
    """A note for the user."""

    text: str


@dataclass(frozen=True, slots=True)
class TrackStarted:
    """The start of a progress bar; later messages name it by its number."""

    number: int
    title: str
    total: int


@dataclass(frozen=True, slots=True)
class TrackAdvanced:
    """Steps that a progress bar has advanced."""

    number: int
    steps: int


@dataclass(frozen=True, slots=True)
class TrackEnded:
    """The end of a progress bar."""

    number: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A sign of life: how many beats the longest call into FFmpeg has lasted."""

    beats: int


@dataclass(frozen=True, slots=True)
class WorkDone:
    """The end of work without an error."""


@dataclass(frozen=True, slots=True)
class WorkFailed:
    """The end of work with an error, which is raised in the parent."""

    error: BaseException


Message = ChildNote | TrackStarted | TrackAdvanced | TrackEnded | Heartbeat | WorkDone | WorkFailed


class MessageSender:
    """The observer in the child; sends everything to the parent, from any thread."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()
        self._numbers = itertools.count()

    def send(self, message: Message) -> None:
        data = pickle.dumps(message)
        with self._lock:
            self._pipe.write(data)
            self._pipe.flush()

    def note(self, text: str) -> None:
        self.send(ChildNote(text))

    @contextmanager
    def track(self, title: str, total: int, extra: Callable[[], str] | None = None) -> Iterator[Callable[[], None]]:
        number = next(self._numbers)
        self.send(TrackStarted(number, title, total))
        steps = StepCounter(lambda count: self.send(TrackAdvanced(number, count)))
        try:
            yield steps.advance
        finally:
            steps.flush()
            self.send(TrackEnded(number))


class StepCounter:
    """A counter of steps, from any thread, that reports several at once: a message may cost more than a step."""

    def __init__(self, report: Callable[[int], None]) -> None:
        self._report = report
        self._lock = threading.Lock()
        self._unreported, self._reported_at = 0, time.monotonic()

    def advance(self) -> None:
        with self._lock:
            self._unreported += 1
            due = time.monotonic() - self._reported_at > PROGRESS_S
        if due:
            self.flush()

    def flush(self) -> None:
        with self._lock:
            unreported, self._unreported, self._reported_at = self._unreported, 0, time.monotonic()
        if unreported:
            self._report(unreported)


def run(work: Work, subject: object, parent: int, pipe: IO[bytes]) -> NoReturn:
    """Do the work, report the result, and end this process, whatever happens.

    Args:
        parent: process id; when that process is gone, this one ends.
    """
    code = NOT_REPORTED
    try:
        end_with_parent(parent)
        use_one_heap()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
        signal.signal(signal.SIGTERM, _interrupt)
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
        messenger = MessageSender(pipe)
        threading.Thread(target=_beat, args=(messenger,), daemon=True).start()
        messenger.send(_do(work, subject, messenger))
        code = REPORTED
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # nothing may be raised from here on
    except KeyboardInterrupt:
        pass  # the parent ended this process and reads no more
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, OSError, ValueError):
                stream.flush()
        os._exit(code)  # skips the caller of the fork, and a thread stuck in FFmpeg


def _do(work: Work, subject: object, observer: Observer) -> WorkDone | WorkFailed:
    try:
        work(observer)
    except VipError as exc:
        return WorkFailed(exc)
    except MemoryError:
        advice = f"Free some, or use a part of it with {option('start')} and {option('end')}."
        return WorkFailed(InputError(f"{subject}: memory ran out at its pictures. {advice}"))
    except KeyboardInterrupt:
        raise
    except BaseException as exc:
        exc.add_note(f"In the process that read {subject}:\n{traceback.format_exc()}")
        return WorkFailed(_to_sendable(exc))
    return WorkDone()


def _to_sendable(exc: BaseException) -> BaseException:
    """Return the exception, or its text as a RuntimeError if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(exc))
    except Exception:  # any class may refuse in its own way
        plain = RuntimeError(f"{type(exc).__name__}: {exc}")
        for note in exc.__notes__:
            plain.add_note(note)
        return plain
    return exc


def _interrupt(number: int, frame: object) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # once: not again while this one is handled
    sys.excepthook = sys.unraisablehook = _say_nothing  # what FFmpeg calls cannot raise it: its traceback would be printed
    raise KeyboardInterrupt


def _say_nothing(*what: object) -> None:
    pass


def _beat(messenger: MessageSender) -> None:
    """Send every second how many beats the longest running call into FFmpeg has lasted.

    Beats are counted because a clock goes on while the process is stopped.
    """
    seen: dict[int, int] = {}
    while True:
        time.sleep(BEAT_S)
        seen = {call: seen.get(call, 0) + 1 for call in inside_ffmpeg.running()}
        try:
            messenger.send(Heartbeat(max(seen.values(), default=0)))
        except OSError:  # the parent is gone
            os._exit(NOT_REPORTED)


def end_with_parent(parent: int) -> None:
    """End this process with its parent: on Linux at once, elsewhere at the next beat. If memory runs out, it is killed first."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(NOT_REPORTED)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")


def main() -> NoReturn:
    """Run the work that comes over stdin; in a new interpreter. Its stdout becomes the pipe; what libraries print goes to stderr."""
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    work, subject, parent = pickle.load(sys.stdin.buffer)
    run(work, subject, parent, pipe)
