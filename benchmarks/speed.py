#!/usr/bin/env python3
"""How fast and lean vip is, as ratios within one run (machines are noisy), against the targets below.

    python benchmarks/speed.py                      # five minutes of 720p H.264 (GOP 150), made from examples/sample.mp4
    python benchmarks/speed.py --video mine.mp4     # a file of your own

The yardstick is `ffmpeg -skip_frame nokey`: it decodes the sync frames and writes nothing. Needs the programs ffmpeg and
vip. Exit 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import FailedError, in_turn, sync_frames

SAMPLE = Path(__file__).resolve().parent.parent / "examples" / "sample.mp4"
KEYFRAMES = 32
LENGTH_S, GOP = 303, 150

MOST_TIMES_FFMPEG = 4.0
MOST_PEAK_MB = 250.0
MOST_HELP_S = 0.3
MOST_IMPORT_S = 0.15


def make_video(path: Path) -> None:
    """The sample, scaled to 720p and repeated for five minutes, as H.264 with a sync frame every 5 s and at cuts."""
    source = ["-stream_loop", "-1", "-i", str(SAMPLE), "-t", str(LENGTH_S), "-vf", "scale=1280:720,fps=30"]
    codec = ["-c:v", "libx264", "-preset", "veryfast", "-crf", "26", "-g", str(GOP), "-an"]
    subprocess.run(["ffmpeg", "-v", "error", "-y", *source, *codec, str(path)], check=True)


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
            "ffmpeg -skip_frame nokey": sync_frames(video),
            f"vip extract -n {KEYFRAMES}": [*vip, "extract", "-q", "-n", str(KEYFRAMES), "-o", out, video],
            "vip --help": [*vip, "--help"],
            "import vip": [sys.executable, "-c", "import vip"],
        }
        try:
            medians = in_turn(commands, args.rounds, lambda _: shutil.rmtree(out, ignore_errors=True))
        except FailedError as error:
            raise SystemExit(str(error)) from error
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
