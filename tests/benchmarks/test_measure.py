"""What a program and its children use is counted whole, and a program that fails or hangs says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from measure import FailedError, Measured, _descendants, _summary, in_turn, measure

HOLD = "import time; held = b'1' * 60_000_000; time.sleep(0.3)"
BURN = "import time\nwhile time.process_time() < 0.3: pass"
PARENT = "import subprocess, sys; held = b'1' * 60_000_000; subprocess.run([sys.executable, '-c', sys.argv[1]])"


def test_memory_of_parent_and_child_is_added_up() -> None:
    assert measure([sys.executable, "-c", PARENT, HOLD], watch=True).peak_mb > 115


def test_memory_of_the_measuring_program_does_not_count() -> None:
    ballast = np.ones(20_000_000)  # 160 MB
    assert measure([sys.executable, "-S", "-c", "pass"], watch=True).peak_mb < 40
    assert ballast.all()


def test_processes_are_known_by_their_parents_whatever_they_are_called(tmp_path: Path) -> None:
    odd = tmp_path / "a) S 1"
    odd.symlink_to("/bin/cat")
    with subprocess.Popen([odd], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()  # it runs
        assert process.pid in _descendants(os.getpid())
        assert _descendants(process.pid) == []


def test_without_watching_the_memory_is_that_of_the_largest_process() -> None:
    assert measure([sys.executable, "-c", HOLD]).peak_mb > 57


def test_seconds_are_medians_of_all_rounds_but_the_first_and_memory_is_the_most_of_any() -> None:
    runs = [Measured(90, 90, 300), Measured(1, 20, 50), Measured(5, 10, 60), Measured(3, 30, 70)]
    assert _summary(runs) == Measured(3, 20, 300)


def test_cpu_seconds_of_children_count() -> None:
    assert measure([sys.executable, "-c", PARENT, BURN]).cpu_s >= 0.3


def test_a_program_that_fails_says_how() -> None:
    with pytest.raises(FailedError, match=r"exit 3: no such luck$") as caught:
        measure([sys.executable, "-c", "import sys; print('no such luck', file=sys.stderr); sys.exit(3)"])
    assert caught.value.how == "exit 3: no such luck"


def test_a_program_that_is_missing_says_so() -> None:
    with pytest.raises(FailedError, match="No such file"):
        measure(["no-such-program"])


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    wait = f"import time, pathlib; time.sleep(1.2); pathlib.Path({str(tmp_path / 'late')!r}).touch()"
    with pytest.raises(FailedError, match=r"not done within 0\.4 s"):
        measure([sys.executable, "-c", PARENT, wait], limit_s=0.4)
    with pytest.raises(FailedError, match=r"not done within 1 s"):  # time for the child, were it alive
        measure(["sleep", "9"], limit_s=1)
    assert not (tmp_path / "late").exists()


def test_commands_take_turns_behind_a_first_round_that_does_not_count() -> None:
    order: list[str] = []
    measured = in_turn({"a": ["true"], "b": ["true"]}, 2, order.append)
    assert order == ["a", "b"] * 3
    assert list(measured) == ["a", "b"]
