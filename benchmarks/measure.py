"""Run whole programs in turn and account for them: wall seconds, CPU seconds, peak memory, children included.

Why medians of alternating runs: other work on the machine comes and goes, and then hits all commands alike. Linux only: the
memory of a program with children is added up from /proc.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

WATCH_EVERY_S = 0.02
WATCH_SHARE = 10  # looking takes at most about a tenth of the time between two looks


class FailedError(Exception):
    """A program failed or ran past its time; the message says which, how, and the end of what it wrote."""


@dataclass(frozen=True)
class Measured:
    """A program and everything that it started."""

    wall_s: float
    cpu_s: float
    """User and system seconds, those of children that it waited for included."""
    peak_mb: float
    """The most memory that all its processes held together, shared pages counted once; or the largest of them, if that is more."""


def measure(command: Sequence[str | Path], *, limit_s: float | None = None, cwd: Path | None = None, watch: bool = False) -> Measured:
    """Run a command to its end; what it prints is thrown away.

    Args:
        watch: add up the memory of parent and children while they run. Without it `peak_mb` is that of the largest process.

    Raises:
        FailedError: it ended with another status than 0, or not within `limit_s`.
    """
    with tempfile.TemporaryFile() as complaints:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=complaints, cwd=cwd, start_new_session=True
        )
        over, late, together = threading.Event(), threading.Event(), [0.0]
        helpers = [threading.Thread(target=_watch, args=(process.pid, over, together))] if watch else []
        if limit_s is not None:
            helpers.append(threading.Thread(target=_stop_late, args=(process.pid, over, late, limit_s)))
        for helper in helpers:
            helper.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
            wall_s = time.perf_counter() - start
        except BaseException:
            _stop(process.pid)
            raise
        finally:
            over.set()
            for helper in helpers:
                helper.join()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            complaints.seek(0)
            said = complaints.read().decode(errors="replace").strip().splitlines()
            how = f"not done within {limit_s:g} s" if late.is_set() else f"exit {process.returncode}"
            raise FailedError(f"{' '.join(map(str, command))}: {how}" + (f": {said[-1]}" if said else ""))
    return Measured(wall_s, usage.ru_utime + usage.ru_stime, max(usage.ru_maxrss / 1024, together[0]))


def in_turn(
    commands: Mapping[str, Sequence[str | Path]], rounds: int, before: Callable[[], None], *, limit_s: float | None = None
) -> dict[str, Measured]:
    """Medians of the seconds of several rounds in which the commands take turns.

    A round that is not timed goes first: it warms the caches, and in it memory is watched, which would disturb the others.
    """
    runs: dict[str, list[Measured]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            before()
            runs[name].append(measure(command, limit_s=limit_s, watch=number == 0))
    return {name: _summary(measured) for name, measured in runs.items()}


def _summary(runs: Sequence[Measured]) -> Measured:
    """Median seconds of all but the first, most memory of all."""
    timed = runs[1:]
    wall_s, cpu_s = (statistics.median(column) for column in ([run.wall_s for run in timed], [run.cpu_s for run in timed]))
    return Measured(wall_s, cpu_s, max(run.peak_mb for run in runs))


def _stop(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def _stop_late(group: int, over: threading.Event, late: threading.Event, limit_s: float) -> None:
    if not over.wait(limit_s):
        late.set()
        _stop(group)


def _watch(root: int, over: threading.Event, together: list[float]) -> None:
    pause_s = 0.0
    while not over.wait(pause_s):
        start = time.perf_counter()
        together[0] = max(together[0], sum(map(_held_mb, _family(root))))
        pause_s = max(WATCH_EVERY_S, WATCH_SHARE * (time.perf_counter() - start))


def _family(root: int) -> list[int]:
    """The process and its descendants that run now."""
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
    return found


def _held_mb(pid: int) -> float:
    """Memory of a process, each shared page as its share; 0 if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
