#!/usr/bin/env python3
"""How fast and lean vip is, as ratios within one run (machines are noisy), against the targets below.

    python benchmarks/speed.py                      # five minutes of 720p H.264 (GOP 150), made from examples/sample.mp4
    python benchmarks/speed.py --video mine.mp4     # a file of your own

The yardstick is `ffmpeg -skip_frame nokey`: it decodes the sync frames and writes nothing. Needs the programs ffmpeg and
vip. Exit 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SAMPLE = Path(__file__).resolve().parent.parent / "examples" / "sample.mp4"
KEYFRAMES = 32
LENGTH_S, GOP = 303, 150

MOST_TIMES_FFMPEG = 4.0
MOST_PEAK_MB = 250.0
MOST_HELP_S = 0.3
MOST_IMPORT_S = 0.15


@dataclass(frozen=True)
class Measured:
    """A whole process, as the operating system accounts for it."""

    wall_s: float
    cpu_s: float
    peak_mb: float


def measure(command: list[str]) -> Measured:
    """Run a command to its end; what it prints is thrown away."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit {process.returncode}")
    return Measured(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def median_of(runs: list[Measured]) -> Measured:
    columns = ([run.wall_s for run in runs], [run.cpu_s for run in runs], [run.peak_mb for run in runs])
    return Measured(*(statistics.median(column) for column in columns))


def make_video(path: Path) -> None:
    """The sample, scaled to 720p and repeated for five minutes, as H.264 with a sync frame every 5 s and at cuts."""
    source = ["-stream_loop", "-1", "-i", str(SAMPLE), "-t", str(LENGTH_S), "-vf", "scale=1280:720,fps=30"]
    codec = ["-c:v", "libx264", "-preset", "veryfast", "-crf", "26", "-g", str(GOP), "-an"]
    subprocess.run(["ffmpeg", "-v", "error", "-y", *source, *codec, str(path)], check=True)


def in_turn(commands: dict[str, list[str]], rounds: int, before: Callable[[], None]) -> dict[str, Measured]:
    """The medians of several rounds in which the commands take turns, after one that is not counted."""
    runs: dict[str, list[Measured]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            before()
            result = measure(command)
            if number > 0:
                runs[name].append(result)
    return {name: median_of(measured) for name, measured in runs.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--video", type=Path, help="measure on this file")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    vip = [sys.executable, "-m", "vip"]
    with tempfile.TemporaryDirectory() as folder:
        video = args.video or Path(folder) / "five-minutes.mp4"
        out = Path(folder) / "out"
        if args.video is None:
            make_video(video)
        commands = {
            "ffmpeg -skip_frame nokey": ["ffmpeg", "-v", "error", "-skip_frame", "nokey", "-i", str(video), "-f", "null", "-"],
            f"vip extract -n {KEYFRAMES}": [*vip, "extract", "-q", "-n", str(KEYFRAMES), "-o", str(out), str(video)],
            "vip --help": [*vip, "--help"],
            "import vip": [sys.executable, "-c", "import vip"],
        }
        medians = in_turn(commands, args.rounds, lambda: shutil.rmtree(out, ignore_errors=True))
    floor, extract, shown_help, imported = medians.values()
    for name, row in medians.items():
        print(f"{name:26} {row.wall_s:6.2f} s wall  {row.cpu_s:6.2f} s CPU  {row.peak_mb:5.0f} MB")
    targets = {
        "extract, times ffmpeg": (extract.wall_s / floor.wall_s, MOST_TIMES_FFMPEG),
        "extract, peak MB": (extract.peak_mb, MOST_PEAK_MB),
        "--help, s": (shown_help.wall_s, MOST_HELP_S),
        "import, s": (imported.wall_s, MOST_IMPORT_S),
    }
    for name, (value, most) in targets.items():
        print(f"{name:26} {value:6.2f}  at most {most:g}{'' if value <= most else '  MISSED'}")
    if any(value > most for value, most in targets.values()):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
