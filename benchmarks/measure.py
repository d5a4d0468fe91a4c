"""Run whole programs in turn and account for them: wall seconds, CPU seconds, peak memory, children included.

Why medians of alternating runs: other work on the machine comes and goes, and then hits all commands alike. Linux only: the
memory of a program with children is added up from /proc.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LAUNCH = Path(__file__).with_name("launch.py")
WATCH_EVERY_S = 0.02
WATCH_SHARE = 10  # looking takes at most about a tenth of the time between two looks


class FailedError(Exception):
    """A program failed or ran past its time.

    Attributes:
        how: its exit status, or the time, and the last line of its complaints. The message names the command as well.
    """

    def __init__(self, command: Sequence[str | Path], how: str) -> None:
        super().__init__(f"{' '.join(map(str, command))}: {how}")
        self.how = how


@dataclass(frozen=True)
class Measured:
    """A program and everything that it started."""

    wall_s: float
    cpu_s: float
    """User and system seconds, those of children that it waited for included."""
    peak_mb: float
    """The most memory that all its processes held together, shared pages counted once; or the largest of them, if that is more."""


def measure(command: Sequence[str | Path], *, limit_s: float | None = None, cwd: Path | None = None, watch: bool = False) -> Measured:
    """Run a command to its end; what it prints is thrown away. Python programs keep their bytecode, as installed ones do.

    Args:
        watch: add up the memory of parent and children while they run. Without it `peak_mb` is that of the largest process.

    Raises:
        FailedError: it ended with another status than 0, or not within `limit_s`.
    """
    launch = [sys.executable, "-I", "-S", LAUNCH, *command]
    plumbing = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "cwd": cwd, "start_new_session": True}
    plumbing["env"] = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryFile() as complaints, subprocess.Popen(launch, stderr=complaints, **plumbing) as process:
        over, together = threading.Event(), [0.0]
        watcher = threading.Thread(target=_watch, args=(process.pid, over, together))
        if watch:
            watcher.start()
        try:
            answer, _ = process.communicate(timeout=limit_s)
            usage = json.loads(answer) if answer else {"exit_code": process.returncode}  # without an answer it did not even start
            how = f"exit {usage['exit_code']}" if usage["exit_code"] else ""
        except subprocess.TimeoutExpired:
            how = f"not done within {limit_s:g} s"
        finally:
            over.set()
            with contextlib.suppress(ProcessLookupError):  # what is left of it and of what it started
                os.killpg(process.pid, signal.SIGKILL)
            if watch:
                watcher.join()
        if how:
            complaints.seek(0)
            said = complaints.read().decode(errors="replace").strip().splitlines()
            raise FailedError(command, how + (f": {said[-1]}" if said else ""))
    return Measured(usage["wall_s"], usage["cpu_s"], max(usage["peak_mb"], together[0]))


def in_turn(
    commands: Mapping[str, Sequence[str | Path]], rounds: int, before: Callable[[str], None], *, limit_s: float | None = None
) -> dict[str, Measured]:
    """Medians of the seconds of several rounds in which the commands take turns.

    A round that is not timed goes first: it warms the caches, and in it memory is watched, which would disturb the others.
    `before` is told the name of each command before it runs.

    Raises:
        FailedError: a command failed.
    """
    runs: dict[str, list[Measured]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            before(name)
            runs[name].append(measure(command, limit_s=limit_s, watch=number == 0))
    return {name: _summary(measured) for name, measured in runs.items()}


def sync_frames(video: Path) -> list[str | Path]:
    """The yardstick: ffmpeg decodes the sync frames and writes nothing."""
    return ["ffmpeg", "-v", "error", "-skip_frame", "nokey", "-i", video, "-f", "null", "-"]


def _summary(runs: Sequence[Measured]) -> Measured:
    """Median seconds of all but the first, most memory of all."""
    timed = runs[1:]
    wall_s, cpu_s = (statistics.median(column) for column in ([run.wall_s for run in timed], [run.cpu_s for run in timed]))
    return Measured(wall_s, cpu_s, max(run.peak_mb for run in runs))


def _watch(root: int, over: threading.Event, together: list[float]) -> None:
    pause_s = 0.0
    while not over.wait(pause_s):
        start = time.perf_counter()
        together[0] = max(together[0], sum(map(_held_mb, _descendants(root))))
        pause_s = max(WATCH_EVERY_S, WATCH_SHARE * (time.perf_counter() - start))


def _descendants(root: int) -> list[int]:
    """The processes that this one and its children started, as far as they run now."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:  # gone meanwhile
                continue
            parent = int(stat.rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.name))
    found = [root]
    for pid in found:  # grows while it is walked
        found += children.get(pid, [])
    return found[1:]


def _held_mb(pid: int) -> float:
    """Memory of a process, each shared page as its share; 0 if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
