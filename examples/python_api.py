#!/usr/bin/env python3
"""vip from Python: keyframes of a video, their pictures, their descriptions.

python examples/python_api.py [VIDEO]
"""

from __future__ import annotations

import sys
from pathlib import Path

import vip

SAMPLE = Path(__file__).resolve().parent / "sample.mp4"


def main() -> None:
    video = Path(sys.argv[1]) if len(sys.argv) > 1 else SAMPLE
    run = vip.extract(video, keyframes=6, out=f"{video.stem}-api.vip")  # an existing run of the same settings is reused
    for keyframe in run.keyframes:
        print(f"{keyframe.time_s:7.2f} s  {keyframe.image.shape}  {keyframe.path.name}")  # the picture is read here, uint8 RGB

    run = vip.caption(run, engine="offline")  # or engine="openai:gpt-5-mini-2025-08-07" with OPENAI_API_KEY set
    for row in run.descriptions:
        print(f"{row.time_s:7.2f} s  {row.dense_caption}")
        print(f"           focus: {row.famous.focus}; objects: {', '.join(row.famous.objects) or 'none named'}")

    dropped = [candidate for candidate in run.candidates if not candidate.decision.kept]
    print(f"{len(dropped)} candidates were dropped; the first because: {dropped[0].decision.reason}" if dropped else "none was dropped")

    again = vip.load_run(run.folder)  # later, from disk
    print(again)


if __name__ == "__main__":
    main()
