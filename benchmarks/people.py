#!/usr/bin/env python3
"""How many pictures with people a detector notices: the people rule of choosing frames rests on it.

    python benchmarks/people.py                                       # the default detector, in half a minute
    python benchmarks/people.py --detector transformers:PekingU/rtdetr_r50vd

Eight frames of each clip that people.toml has labels of, drawn evenly, in the size and compression in which candidates are searched.
The labels were written by looking at the frames, before any detector had run.
"""

from __future__ import annotations

import argparse
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vip import registry
from vip.cores import one_opencv_thread
from vip.extraction.analyze import FrameAnalysis, FrameAnalyzer
from vip.extraction.object_text import has_people
from vip.extraction.objects import seek
from vip.extraction.quality import WORKING_SIDE_PX
from vip.models.classic import ClassicEmbedder
from vip.records import Detection
from vip.video import Video

HERE = Path(__file__).resolve().parent
REAL_CLIPS = HERE.parents[1] / "shared" / "videos" / "real"
FRAMES = 8
"""Of each clip: frame `(k + 1/2) / 8` of all that are shown, for k from 0 to 7."""


@dataclass(frozen=True)
class Label:
    """What is to be seen in a frame."""

    people: bool | None
    """Whether a head or a torso is in the picture; None where only hands or feet are, or it cannot be told: the frame does not count."""
    faces: int
    """Faces of which at least half is visible, at least 1/20 as high as the shorter side of the picture."""


@dataclass
class Tally:
    """Pictures and faces counted so far."""

    found: int = 0
    with_people: int = 0
    false: int = 0
    without_people: int = 0
    faces_found: int = 0
    faces: int = 0

    def add(self, label: Label, detections: Sequence[Detection]) -> None:
        noticed = has_people(detections)
        if label.people is not None:
            self.found += label.people and noticed
            self.false += noticed and not label.people
            self.with_people += label.people
            self.without_people += not label.people
        self.faces_found += min(label.faces, sum(one.label == "face" for one in detections))
        self.faces += label.faces


def labels_of(row: dict[str, str]) -> list[Label]:
    """Return the labels of a clip: `people` has y, n or ? a frame, `faces` a digit."""
    return [Label({"y": True, "n": False, "?": None}[seen], int(faces)) for seen, faces in zip(row["people"], row["faces"], strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=Path, default=REAL_CLIPS, metavar="DIR", help="default: %(default)s")
    parser.add_argument("--detector", default="opencv", metavar="NAME", help="default: %(default)s")
    options = parser.parse_args()
    detector = registry.detector(options.detector, device="auto", precision="auto", labels=None)
    analyzer = FrameAnalyzer(ClassicEmbedder(None), ClassicEmbedder(None), detector)
    labels: list[Label] = []
    analyses: list[FrameAnalysis] = []
    for name, row in tomllib.loads((HERE / "people.toml").read_text()).items():
        with Video(options.clips / name) as video:
            shown = video.index.shown_pts
            wanted = [int(shown[int((number + 0.5) * len(shown) / FRAMES)]) for number in range(FRAMES)]
            analyses += [analyzer(frame) for frame in video.frames(wanted, longest_side_px=WORKING_SIDE_PX)]
        labels += labels_of(row)
    before = time.process_time()
    with one_opencv_thread():
        searched = seek(analyses, range(len(analyses)), detector, advance=lambda: None)
    cpu_s = time.process_time() - before
    tally = Tally()
    for label, analysis in zip(labels, searched, strict=True):
        tally.add(label, analysis.detections or ())
    print(f"{options.detector}: people noticed in {tally.found} of {tally.with_people} pictures with people")
    print(f"and in {tally.false} of {tally.without_people} without; {tally.faces_found} of {tally.faces} faces found")
    print(f"{1000 * cpu_s / len(searched):.1f} ms of CPU a picture")


if __name__ == "__main__":
    main()
