"""Work in a process of its own: what it says and raises arrives, and whatever becomes of it, this process goes on."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from queue import Empty

import cv2
import numpy as np
import pytest

from vip.errors import BackendError, GivenUpError, InputError, StoreError, UsageError, VipError
from vip.processes import child, isolated
from vip.processes.child import ChildNote, Heartbeat, TrackAdvanced, TrackStarted, WorkDone
from vip.processes.isolated import ChildEnded, ChildStalled, run_isolated
from vip.protocols import Observer, SilentObserver
from vip.video.stall_guard import inside_ffmpeg

VIDEO = Path("a.mp4")
FOR_EVER_S = 300


class Notebook:
    """An observer that writes down what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.threads: set[int] = set()

    def note(self, text: str) -> None:
        self.lines.append(text)

    @contextmanager
    def track(self, title: str, total: int) -> Iterator[Callable[[], None]]:
        done: list[int] = []

        def advance() -> None:
            done.append(1)
            self.threads.add(threading.get_ident())

        try:
            yield advance
        finally:
            self.lines.append(f"{title}: {len(done)} of {total}")


# What is done in the child: functions of this module, so that a new interpreter finds them too.


def tell(folder: Path, observer: Observer) -> None:
    observer.note("one")
    with observer.track("outer", 1000) as outer, observer.track("inner", 2) as inner:
        pool = [threading.Thread(target=lambda: [outer() for _ in range(250)]) for _ in range(4)]
        for thread in pool:
            thread.start()
        inner()
        for thread in pool:
            thread.join()
    observer.note("two\nlines")
    (folder / "pid").write_text(str(os.getpid()))


def fail(error: BaseException, observer: Observer) -> None:
    with observer.track("open", 3) as advance:
        advance()
        raise error


def fall(number: int, observer: Observer) -> None:
    observer.note("going")
    faulthandler.disable()  # pytest's
    os.kill(os.getpid(), number)
    time.sleep(FOR_EVER_S)


def leave(code: int, observer: Observer) -> None:
    os._exit(code)


def hold(observer: Observer) -> None:
    """As a loop in C that never lets another thread run."""
    observer.note("going")
    ctypes.PyDLL(None).sleep(FOR_EVER_S)


def hear_nothing(observer: Observer) -> None:
    """As a loop in C that goes on when a signal comes."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    observer.note("going")
    time.sleep(FOR_EVER_S)


def hang_in_ffmpeg(observer: Observer) -> None:
    with inside_ffmpeg:
        time.sleep(FOR_EVER_S)


def work_slowly(observer: Observer) -> None:
    """Many short calls, and a long one that is none of FFmpeg's."""
    for _ in range(10):
        with inside_ffmpeg:
            time.sleep(0.03)
    time.sleep(0.3)
    observer.note("done")


class AwkwardError(Exception):
    """Cannot be rebuilt from what pickle keeps of it."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def be_awkward(observer: Observer) -> None:
    raise AwkwardError(1, 2)


@pytest.fixture(params=[True, False], ids=["forked", "new"])
def fork(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(isolated, "_can_fork", lambda: True)  # also below the threads of pytest-xdist
    return bool(request.param)


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated, "_can_fork", lambda: True)


@pytest.fixture(autouse=True)
def _no_child_is_left() -> Iterator[None]:
    before = _children()
    yield
    assert _children() <= before


def _children() -> set[int]:
    """Process ids of this process's children, ended ones that nobody waited for included."""
    listed = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):  # a thread that has just ended
            listed.append((task / "children").read_text())
    return {int(pid) for line in listed for pid in line.split()}


def test_what_the_work_says_arrives_in_order_and_every_step_is_counted(fork: bool, tmp_path: Path) -> None:
    heard = Notebook()
    run_isolated(partial(tell, tmp_path), VIDEO, heard, fork=fork)
    assert heard.lines == ["one", "inner: 1 of 2", "outer: 1000 of 1000", "two\nlines"]
    assert heard.threads == {threading.get_ident()}
    assert int((tmp_path / "pid").read_text()) != os.getpid()


@pytest.mark.parametrize("kind", [InputError, StoreError, UsageError, BackendError])
def test_an_error_of_vip_is_raised_as_it_was(kind: type[VipError], forked: None) -> None:
    heard = Notebook()
    with pytest.raises(kind) as caught:
        run_isolated(partial(fail, kind("a.mp4: it is wrong. Mend it.")), VIDEO, heard, fork=True)
    assert type(caught.value) is kind
    assert str(caught.value) == "a.mp4: it is wrong. Mend it."
    assert heard.lines == ["open: 1 of 3"]


def test_a_bug_is_raised_with_the_place_where_it_happened(fork: bool) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run_isolated(partial(fail, ZeroDivisionError("by 0")), VIDEO, SilentObserver(), fork=fork)
    assert "in fail" in caught.value.__notes__[0]


def test_a_bug_that_cannot_be_sent_is_told(forked: None) -> None:
    with pytest.raises(RuntimeError, match="AwkwardError: 1 and 2") as caught:
        run_isolated(be_awkward, VIDEO, SilentObserver(), fork=True)
    assert "in be_awkward" in caught.value.__notes__[0]


def test_memory_that_ran_out_is_said(forked: None) -> None:
    with pytest.raises(InputError, match=r"^a\.mp4: memory ran out .* --end\.$"):
        run_isolated(partial(fail, MemoryError()), VIDEO, SilentObserver(), fork=True)


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGFPE"])
def test_a_crash_is_one_sentence(name: str, forked: None) -> None:
    heard = Notebook()
    with pytest.raises(InputError, match=rf"^a\.mp4: FFmpeg crashed on this file \({name}\)\. Repair it, .*ffmpeg -i a\.mp4"):
        run_isolated(partial(fall, signal.Signals[name]), VIDEO, heard, fork=True)
    assert heard.lines == ["going"]


def test_a_crash_of_a_new_interpreter_is_the_same_sentence() -> None:
    with pytest.raises(InputError, match=r"FFmpeg crashed on this file \(SIGSEGV\)"):
        run_isolated(partial(fall, signal.SIGSEGV), VIDEO, SilentObserver(), fork=False)


def wait_in_a_callback(observer: Observer) -> None:
    ctypes.CFUNCTYPE(None)(lambda: (observer.note("going"), time.sleep(FOR_EVER_S)))()


def test_work_that_is_ended_in_a_call_from_c_prints_no_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    class Stopping(SilentObserver):
        def note(self, text: str) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_isolated(wait_in_a_callback, VIDEO, Stopping(), fork=False)
    assert "Traceback" not in capfd.readouterr().err


def test_no_file_of_the_current_folder_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pickle.py").write_text("raise SystemExit('run')", encoding="utf-8")
    (tmp_path / "vip.py").write_text("raise SystemExit('run')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    run_isolated(partial(tell, tmp_path), VIDEO, notebook := Notebook(), fork=False)
    assert notebook.lines


def test_what_the_system_kills_ran_out_of_memory(forked: None) -> None:
    with pytest.raises(InputError, match=r"ended by the system \(SIGKILL\), most likely because memory ran out"):
        run_isolated(partial(fall, signal.SIGKILL), VIDEO, SilentObserver(), fork=True)


def test_an_end_without_a_word_is_told_with_its_code(forked: None) -> None:
    with pytest.raises(InputError, match=r"\(exit code 7\)"):
        run_isolated(partial(leave, 7), VIDEO, SilentObserver(), fork=True)


def test_the_time_limit_ends_whatever_is_going_on(fork: bool) -> None:
    with pytest.raises(InputError, match=r"^a\.mp4: not finished within its time limit of 0\.2 s\. .*--timeout"):
        run_isolated(hold, VIDEO, SilentObserver(), timeout_s=0.2, fork=fork)


def test_work_that_ends_in_time_is_not_touched(forked: None) -> None:
    heard = Notebook()
    run_isolated(work_slowly, VIDEO, heard, timeout_s=60, fork=True)
    assert heard.lines == ["done"]


def _quick_beats(patch: pytest.MonkeyPatch) -> None:
    for module in (child, isolated):
        patch.setattr(module, "BEAT_S", 0.05)
    patch.setattr(isolated, "STALLED_BEATS", 4)


@pytest.mark.parametrize("work", [hold, hang_in_ffmpeg])
@pytest.mark.usefixtures("forked")
def test_a_call_that_does_not_come_back_is_given_up(work: Callable[[Observer], None], monkeypatch: pytest.MonkeyPatch) -> None:
    _quick_beats(monkeypatch)
    with pytest.raises(InputError, match=r"^a\.mp4: FFmpeg was given up after 0\.2 s in which it did not come back\. Repair it"):
        run_isolated(work, VIDEO, SilentObserver(), fork=True)


def test_slow_work_is_not_given_up(forked: None, monkeypatch: pytest.MonkeyPatch) -> None:
    _quick_beats(monkeypatch)
    heard = Notebook()
    run_isolated(work_slowly, VIDEO, heard, fork=True)
    assert heard.lines == ["done"]


@pytest.mark.parametrize("work", [hold, hear_nothing])
def test_when_this_side_stops_the_child_is_ended_whether_it_hears_that_or_not(work: Callable[[Observer], None], fork: bool) -> None:
    class Stopping(SilentObserver):
        def note(self, text: str) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_isolated(work, VIDEO, Stopping(), fork=fork)


def test_an_interrupt_that_comes_while_the_child_starts_is_not_lost(forked: None, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = isolated._start_fork

    def interrupted(*given: object) -> object:
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)  # not to a thread of pytest-xdist, where nothing holds it back
        return begin(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(isolated, "_start_fork", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_isolated(hold, VIDEO, SilentObserver(), fork=True)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, set()) == set()


def test_a_child_that_is_terminated_tidies_up(forked: None, tmp_path: Path) -> None:
    def work(observer: Observer) -> None:
        try:
            observer.note("going")
            time.sleep(FOR_EVER_S)
        finally:
            (tmp_path / "tidy").touch()

    class Stopping(SilentObserver):
        def note(self, text: str) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_isolated(work, VIDEO, Stopping(), fork=True)
    assert (tmp_path / "tidy").exists()


def test_opencv_with_threads_works_in_a_fork(forked: None) -> None:
    """Its threads are not there, and to end them would crash."""
    picture = np.zeros((2000, 2000, 3), np.uint8)
    before = cv2.getNumThreads()
    cv2.setNumThreads(4)
    cv2.GaussianBlur(picture, (15, 15), 3)

    def work(observer: Observer) -> None:
        cv2.setNumThreads(1)
        cv2.setNumThreads(3)
        cv2.GaussianBlur(picture, (15, 15), 3)
        observer.note(f"{cv2.getNumThreads()}")

    heard = Notebook()
    try:
        run_isolated(work, VIDEO, heard, fork=True)
        assert cv2.getNumThreads() == 4
    finally:
        cv2.setNumThreads(before)
    assert heard.lines == ["3"]


def test_a_process_with_threads_is_not_forked() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert not isolated._can_fork()
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize(
    ("what", "value", "can"),
    [(None, None, True), ("TORCH_CAME_FIRST", True, False), ("_native_threads", lambda: isolated.USUAL_THREADS + 1, False)],
)
def test_a_process_with_usual_threads_alone_is_forked(what: str | None, value: object, can: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr(isolated, "TORCH_CAME_FIRST", False)
    monkeypatch.setattr(isolated, "_native_threads", lambda: isolated.USUAL_THREADS)
    if what:
        monkeypatch.setattr(isolated, what, value)
    assert isolated._can_fork() is can


def test_an_interrupt_of_the_terminal_is_for_the_parent_to_judge(forked: None) -> None:
    """Ctrl-C goes to both processes."""

    def work(observer: Observer) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
        observer.note("still here")

    heard = Notebook()
    run_isolated(work, VIDEO, heard, fork=True)
    assert heard.lines == ["still here"]


def test_where_nobody_learns_how_children_end_the_work_is_done_all_the_same(forked: None) -> None:
    heard = Notebook()
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        run_isolated(lambda observer: observer.note("done"), VIDEO, heard, fork=True)
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert heard.lines == ["done"]


def test_what_either_process_prints_is_printed_once(forked: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "printed").open("w") as out:
        monkeypatch.setattr("sys.stdout", out)
        print("before")
        run_isolated(lambda observer: print("within"), VIDEO, SilentObserver(), fork=True)
        print("after")
    assert (tmp_path / "printed").read_text() == "before\nwithin\nafter\n"


@pytest.mark.parametrize("work", [lambda observer: observer.note("done"), partial(fall, signal.SIGKILL)], ids=["done", "killed"])
def test_no_pipe_stays_open(work: Callable[[Observer], None], forked: None) -> None:
    def opened() -> set[str]:
        return {str(one.readlink()) for one in Path("/proc/self/fd").iterdir() if one.is_symlink()}

    before = opened()
    with suppress(InputError):
        run_isolated(work, VIDEO, SilentObserver(), fork=True)
    assert {one for one in opened() - before if one.startswith("pipe:")} == set()


class Scripted:
    """Messages of a child; None where it says nothing for a beat."""

    def __init__(self, *messages: isolated.Received | None) -> None:
        self.messages = list(messages)

    def get(self, timeout: float) -> isolated.Received:
        if (message := self.messages.pop(0)) is None:
            raise Empty
        return message

    def empty(self) -> bool:
        return not self.messages


class Running:
    """A process that has ended, or not."""

    def __init__(self, code: int | None = None) -> None:
        self.code = code

    def poll(self) -> int | None:
        return self.code


def listen(*messages: isolated.Received | None, code: int | None = None, observer: Observer | None = None) -> isolated.Outcome:
    return isolated._listen(Scripted(*messages), Running(code), observer or SilentObserver(), None)  # type: ignore[arg-type]


def test_silence_counts_from_the_last_word() -> None:
    quiet = [None] * 119
    assert listen(*quiet, Heartbeat(0), *quiet, WorkDone()) == WorkDone()
    assert listen(*quiet, None) == ChildStalled(120.0)


def test_a_call_may_last_two_minutes() -> None:
    assert listen(Heartbeat(119), Heartbeat(1), WorkDone()) == WorkDone()
    assert listen(Heartbeat(120), WorkDone()) == ChildStalled(120.0)


def test_a_process_that_is_gone_is_heard_to_its_end() -> None:
    """Also where another process holds its pipe open, so that the pipe has no end."""
    assert listen(None, code=-11) == ChildEnded()
    assert listen(None, WorkDone(), code=0) == WorkDone()


def test_what_a_child_left_open_is_closed_from_within() -> None:
    heard = Notebook()
    listen(TrackStarted(0, "outer", 5), TrackStarted(1, "inner", 5), TrackAdvanced(0, 3), ChildEnded(), observer=heard)
    assert heard.lines == ["inner: 0 of 5", "outer: 3 of 5"]


@pytest.mark.parametrize(
    ("work", "timeout_s", "kind"), [(hold, 0.1, "timeout"), (partial(leave, 7), None, "crash"), (hang_in_ffmpeg, None, "stalled")]
)
def test_what_is_given_up_has_a_kind(
    work: Callable[[Observer], None], timeout_s: float | None, kind: str, forked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    _quick_beats(monkeypatch)
    with pytest.raises(GivenUpError) as caught:
        run_isolated(work, VIDEO, SilentObserver(), timeout_s=timeout_s, fork=True)
    assert caught.value.kind == kind


def test_a_message_that_is_cut_off_is_the_end() -> None:
    read, write = os.pipe()
    with os.fdopen(write, "wb") as pipe:
        pipe.write(pickle.dumps(ChildNote("whole")) + pickle.dumps(ChildNote("half"))[:-5])
    messages: isolated.SimpleQueue[isolated.Received] = isolated.SimpleQueue()
    isolated._read(os.fdopen(read, "rb"), messages)
    assert [messages.get(), messages.get()] == [ChildNote("whole"), ChildEnded()]


def test_signals_are_held_and_let_go_again_also_where_starting_fails() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with isolated._hold_signals():
        assert {signal.SIGINT, signal.SIGTERM} <= signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
    with pytest.raises(OSError, match="no process"), isolated._hold_signals():
        raise OSError("no process")
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


def test_a_pipe_that_never_ends_does_not_keep_this_process_from_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a killed child waits for a dead disk. Python waits at its end for every thread that is no daemon."""
    read, write = os.pipe()
    monkeypatch.setattr(isolated, "_start_interpreter", lambda work, subject: (Running(0), os.fdopen(read, "rb")))
    monkeypatch.setattr(isolated, "GRACE_S", 0.01)
    before = set(threading.enumerate())
    with os.fdopen(write, "wb"):
        with isolated._start(leave, VIDEO, fork=False):
            pass
        (reader,) = set(threading.enumerate()) - before
        assert reader.daemon
    reader.join()


def heaps(path: Path) -> int:
    """Return the number of heaps that the C library has, which it writes to a file."""
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    file = ctypes.c_void_p(libc.fopen(str(path).encode(), b"w"))
    libc.malloc_info(0, file)
    libc.fclose(file)
    return path.read_text().count("<heap nr=")


def count_heaps(path: Path, observer: Observer) -> None:
    """Note how many heaps there are, and how many with five more threads at work."""
    before, barrier = heaps(path), threading.Barrier(6)

    def work() -> None:
        kept = [bytes(3000) for _ in range(100)]
        barrier.wait()
        barrier.wait()
        kept.clear()

    for _ in range(5):
        threading.Thread(target=work).start()
    barrier.wait()
    observer.note(f"{before} {heaps(path)}")
    barrier.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="of glibc alone")
def test_the_threads_of_a_child_have_no_heaps_of_their_own(tmp_path: Path) -> None:
    heard = Notebook()
    run_isolated(partial(count_heaps, tmp_path / "heaps"), VIDEO, heard, fork=True)
    before, behind = heard.lines[0].split()
    assert before == behind
