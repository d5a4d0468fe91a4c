#!/usr/bin/env python3
"""The paper's tasks on the sample video, answered by the baselines: what a model's figure has to beat.

python examples/evaluate.py [FOLDER]         needs the extra eval; no model, no network

The sample is short, so three parts of it stand for three videos. For your own: `vip evaluate runs/ --task infilling,prediction`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import vip
from vip.cli.console import Console
from vip.config import SampleSettings
from vip.tasks.evaluate import evaluate
from vip.tasks.score_output import all_tables
from vip.tasks.table import render

SAMPLE = Path(__file__).resolve().parent / "sample.mp4"
PARTS_S = {"objects": (0.0, 10.4), "nature": (10.4, 19.0), "people": (19.0, 27.2)}
KEYFRAMES = 8


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "sample-evaluation")
    runs = []
    for name, (start, end) in PARTS_S.items():
        run = vip.extract(SAMPLE, out=folder / f"{name}.vip", keyframes=KEYFRAMES, start=start, end=end)
        runs.append(str(vip.caption(run, engine="offline").folder))
    scores, written = evaluate(
        runs,
        ["infilling", "prediction"],
        folder,
        samples=SampleSettings(representation="dense"),
        metrics=["rouge-l"],
        observer=Console(),
    )
    for table in all_tables(scores):
        print(render(table, "text"), end="\n\n")
    print(f"Open {written[-1]}")


if __name__ == "__main__":
    main()
