"""The process that reads a file ends with the one that asked for it, and goes first where memory runs out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from vip.processes import child
from vip.processes.child import NOT_REPORTED, Heartbeat, Message, MessageSender, StepCounter

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="of Linux alone")

ROOT = Path(__file__).parents[2]
CHILD = """
import ctypes, sys
from pathlib import Path
from vip.processes.child import end_with_parent

end_with_parent(int(sys.argv[1]))
told = ctypes.c_int()
ctypes.CDLL(None).prctl(2, ctypes.byref(told))  # PR_GET_PDEATHSIG
print(told.value, Path("/proc/self/oom_score_adj").read_text().strip())
"""


def child_of(parent: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", CHILD, str(parent)], cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_child_is_killed_with_its_parent_and_before_it_where_memory_runs_out() -> None:
    assert child_of(os.getpid()).stdout.split() == ["9", "500"]


def test_a_child_whose_parent_was_gone_before_it_could_say_so_ends() -> None:
    orphan = child_of(os.getppid())
    assert (orphan.returncode, orphan.stdout, orphan.stderr) == (NOT_REPORTED, "", "")


def test_steps_are_told_ten_times_a_second_and_the_rest_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now, told = [100.0], list[int]()
    monkeypatch.setattr(child.time, "monotonic", lambda: now[0])
    steps = StepCounter(told.append)
    for _ in range(5):
        for _ in range(3):
            steps.advance()
        now[0] += 0.06
    assert told == [7, 6]
    steps.flush()
    steps.flush()
    assert told == [7, 6, 2]


def test_a_beat_says_how_long_the_longest_call_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, told = iter([set[int](), {1}, {1, 2}, {1, 2, 3}, {2, 3}, {4}, set[int]()]), list[Heartbeat]()

    class Messenger(MessageSender):
        def __init__(self) -> None:
            pass

        def send(self, message: Message) -> None:
            assert isinstance(message, Heartbeat)
            told.append(message)

    monkeypatch.setattr(child.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(child.inside_ffmpeg, "running", lambda: next(calls))
    with pytest.raises(StopIteration):
        child._beat(Messenger())
    assert [beat.beats for beat in told] == [0, 1, 2, 3, 3, 1, 0]
