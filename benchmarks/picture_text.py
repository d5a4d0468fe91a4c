#!/usr/bin/env python3
"""How many words of slides the extra `text` reads correctly.

    python benchmarks/picture_text.py               # in a quarter of a minute, with pip install 'vip-keyframes[text]'
    python benchmarks/picture_text.py --side 640    # as if the video were that small

The frames of picture_text.toml, which has their words as a person reads them. A word is a run of letters and digits, with its capitals; it
counts as read once for each time that it stands in the frame.
"""

from __future__ import annotations

import argparse
import re
import time
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from vip import registry
from vip.video import Video

HERE = Path(__file__).resolve().parent
REAL_CLIPS = HERE.parents[1] / "shared" / "videos" / "real"
WORD = re.compile(r"[^\W_]+")


@dataclass
class WordCounts:
    """Words counted so far."""

    right: int = 0
    read: int = 0
    there: int = 0

    def add(self, truth: str, lines: list[str]) -> list[str]:
        """Count the words of a frame, and return those that are missing or wrong, as `-missing` and `+wrong`."""
        there, read = Counter(WORD.findall(truth)), Counter(word for line in lines for word in WORD.findall(line))
        self.right += (there & read).total()
        self.read += read.total()
        self.there += there.total()
        return [*(f"-{word}" for word in (there - read).elements()), *(f"+{word}" for word in (read - there).elements())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=Path, default=REAL_CLIPS, metavar="DIR", help="default: %(default)s")
    parser.add_argument("--side", type=int, metavar="PX", help="longest side to which frames are scaled down; default: as they are")
    options = parser.parse_args()
    registry.check_text_reader()
    reader, counts, seconds, frames = registry.text_reader(), WordCounts(), 0.0, 0
    for name, truths in tomllib.loads((HERE / "picture_text.toml").read_text(encoding="utf-8")).items():
        with Video(options.clips / name) as video:
            pts = {min(video.index.shown_pts.tolist(), key=lambda one: abs(one * video.time_base - float(at))): at for at in truths}
            for frame in video.frames(sorted(pts), longest_side_px=options.side):
                start = time.perf_counter()
                lines = [line.text for line in reader.read(frame.image)]
                seconds, frames = seconds + time.perf_counter() - start, frames + 1
                wrong = counts.add(truths[pts[frame.pts]], lines)
                print(f"{name} at {frame.time_s:.2f} s: {' '.join(wrong) or 'all words are right'}")
    share = counts.right / counts.there
    print(f"{counts.right} of {counts.there} words are read right ({share:.1%}), {counts.read} were read in all")
    print(f"{seconds / frames:.1f} s a frame, {reader.name}")


if __name__ == "__main__":
    main()
