"""The side of the child: do the work, and tell the parent over a pipe what happens, that all is well, and how it ended.

A message is a tuple: ("note", text), ("track", number, title, total), ("advance", number, steps), ("end", number),
("beat", how many beats the longest call into FFmpeg has lasted), and as the last one ("done",) or ("failed", exception).
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
from pathlib import Path
from typing import IO, Any, NoReturn

from vip.errors import InputError, VipError
from vip.protocols import Observer
from vip.video.stall_guard import inside_ffmpeg
from vip.wording import option

BEAT_S = 1.0  # how often the child says that it lives
TELL_S = 0.1  # how often progress is told at most
TOLD, NOT_TOLD = 0, 1  # exit codes: whether the last message says how it ended
PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>

Work = Callable[[Observer], None]


class MessageSender:
    """The observer in the child: everything it is told goes to the parent, from any thread."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()
        self._numbers = itertools.count()

    def send(self, *message: Any) -> None:
        data = pickle.dumps(message)
        with self._lock:
            self._pipe.write(data)
            self._pipe.flush()

    def note(self, text: str) -> None:
        self.send("note", text)

    @contextmanager
    def track(self, title: str, total: int, extra: Callable[[], str] | None = None) -> Iterator[Callable[[], None]]:
        number = next(self._numbers)
        self.send("track", number, title, total)
        steps = StepCounter(lambda count: self.send("advance", number, count))
        try:
            yield steps.advance
        finally:
            steps.tell()
            self.send("end", number)


class StepCounter:
    """Counts steps, from any thread, and tells them a few at a time: a message for each would cost more than some of them."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._untold, self._told_at = 0, time.monotonic()

    def advance(self) -> None:
        with self._lock:
            self._untold += 1
            due = time.monotonic() - self._told_at > TELL_S
        if due:
            self.tell()

    def tell(self) -> None:
        with self._lock:
            untold, self._untold, self._told_at = self._untold, 0, time.monotonic()
        if untold:
            self._tell(untold)


def run(work: Work, subject: object, parent: int, pipe: IO[bytes]) -> NoReturn:
    """Do the work, report, and end this process, whatever happens.

    Args:
        parent: process id; when that process is gone, this one ends.
    """
    code = NOT_TOLD
    try:
        end_with_parent(parent)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
        signal.signal(signal.SIGTERM, _interrupt)
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
        messenger = MessageSender(pipe)
        threading.Thread(target=_beat, args=(messenger,), daemon=True).start()
        messenger.send(*_outcome(work, subject, messenger))
        code = TOLD
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # nothing may be raised from here on
    except KeyboardInterrupt:
        pass  # the parent ended this, and does not listen any more
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, OSError, ValueError):
                stream.flush()
        os._exit(code)  # not to the caller of the fork, and past what a thread stuck in FFmpeg would wait for


def _outcome(work: Work, subject: object, observer: Observer) -> tuple[Any, ...]:
    try:
        work(observer)
    except VipError as exc:
        return "failed", exc
    except MemoryError:
        return "failed", InputError(
            f"{subject}: memory ran out at its pictures. Free some, or use a part of it with {option('start')} and {option('end')}."
        )
    except KeyboardInterrupt:
        raise
    except BaseException as exc:
        exc.add_note(f"In the process that read {subject}:\n{traceback.format_exc()}")
        return "failed", _sendable(exc)
    return ("done",)


def _sendable(exc: BaseException) -> BaseException:
    """The exception, or what it says where it cannot be sent."""
    try:
        pickle.loads(pickle.dumps(exc))
    except Exception:  # any class may refuse in its own way
        plain = RuntimeError(f"{type(exc).__name__}: {exc}")
        for note in exc.__notes__:
            plain.add_note(note)
        return plain
    return exc


def _interrupt(number: int, frame: object) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # once: it must not strike while that is handled
    raise KeyboardInterrupt


def _beat(messenger: MessageSender) -> None:
    """Say every second that this process lives, and how long the longest call into FFmpeg has lasted: a count of beats.

    Beats are counted and no clock is asked: neither goes on while the process is stopped.
    """
    seen: dict[int, int] = {}
    while True:
        time.sleep(BEAT_S)
        seen = {call: seen.get(call, 0) + 1 for call in inside_ffmpeg.running()}
        try:
            messenger.send("beat", max(seen.values(), default=0))
        except OSError:  # nobody listens: the parent is gone
            os._exit(NOT_TOLD)


def end_with_parent(parent: int) -> None:
    """On Linux at once; elsewhere the next beat finds nobody who listens. Where memory runs out, this process goes first."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(NOT_TOLD)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")


def main() -> NoReturn:
    """In a new interpreter: the job comes over stdin, and stdout becomes the pipe. What others print goes to stderr."""
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    work, subject, parent = pickle.load(sys.stdin.buffer)
    run(work, subject, parent, pipe)
