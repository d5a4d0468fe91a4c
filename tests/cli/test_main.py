"""How the console script ends: at once, and with nothing lost."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.terminal import Done, end, start_command

CAUGHT = "try:\n    vip.cli.main()\nexcept SystemExit as exc:\n    print('caught', exc.code)"


def ended(folder: Path, program: str, *arguments: str) -> Done:
    return end(start_command(folder, sys.executable, "-c", program, *arguments))


@pytest.mark.parametrize(("argument", "code", "out"), [("--version", 0, "vip "), ("nonsense", 2, "")])
def test_nothing_runs_behind_it_and_what_was_printed_is_whole(tmp_path: Path, argument: str, code: int, out: str) -> None:
    done = ended(tmp_path, f"import vip.cli\nprint('before')\n{CAUGHT}", argument)
    assert done.code == code
    assert done.out.startswith(f"before\n{out}")
    assert "caught" not in done.out


def test_what_was_to_run_at_the_end_runs(tmp_path: Path) -> None:
    done = ended(tmp_path, "import atexit, vip.cli\natexit.register(print, 'tidied', flush=True)\nvip.cli.main()", "--version")
    assert done.code == 0
    assert done.out.endswith("tidied\n")


@pytest.mark.parametrize(
    "before",
    [
        "sys.setprofile(lambda *_: None)",
        "sys.settrace(lambda *_: None)",
        "threading.Thread(target=lambda: (time.sleep(0.5), print('worked', flush=True))).start()",
    ],
)
def test_a_profiler_a_debugger_and_a_thread_are_waited_for(tmp_path: Path, before: str) -> None:
    done = ended(tmp_path, f"import sys, threading, time, vip.cli\n{before}\n{CAUGHT}", "--version")
    assert done.code == 0
    assert "caught 0" in done.out
    assert ("worked" in done.out) == ("worked" in before)


def test_a_disk_that_is_full_is_told(tmp_path: Path) -> None:
    program = "import sys, vip.cli\nsys.stdout = open('/dev/full', 'w')\nvip.cli.main()"
    done = ended(tmp_path, program, "--version")
    assert done.code == 7
    assert done.err.splitlines() == ["vip: The result cannot be printed: No space left on device. Run the same command again to see it."]
