#!/usr/bin/env python3
"""How many keyframes show a title half faded in or out? Clips over which titles and captions fade; of evenly spaced frames 0.24 do.

python benchmarks/titles.py                    # six photographs under a slow camera: three minutes on two cores
python benchmarks/titles.py --clips FOLDER     # videos, the first 40 s of each
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from mixes import Clip, Image, Recipe, Segment, clips_in, write_mix
from scores import evenly_spaced

import vip

PERIOD_S, STARTS_S, FADE_S, ENDS_S = 6.0, 1.0, 1.0, 4.5  # in each period a title fades in at 1 s and out at 4.5 s, for a second each
HALF = (0.12, 0.85)  # share of a title that is to be seen where it is half faded
LONGEST_S, PHOTOGRAPHS, KEYFRAMES = 40.0, 6, 12


@dataclass(frozen=True)
class Title:
    words: str
    height: float
    """Of the letters, as a share of the picture's height."""
    line: float
    """Of the picture's height, from its top."""
    on_bar: bool


TITLES = {"title": Title("Chapter One", 0.14, 0.55, on_bar=False), "caption": Title("Dr. Ada Lovelace, London", 0.05, 0.88, on_bar=True)}


def share_shown(time_s: float) -> float:
    """How much of the title is to be seen: 0 to 1."""
    time_s %= PERIOD_S
    return float(np.clip(min(time_s - STARTS_S, ENDS_S + FADE_S - time_s) / FADE_S, 0, 1))


class TitledClip:
    """A clip over which a title fades in and out."""

    def __init__(self, clip: Clip, title: Title) -> None:
        self._clip, self._title = clip, title
        self.name, self.length_s = clip.name, min(clip.length_s, LONGEST_S)

    def frames(self, start_s: float, count: int, recipe: Recipe) -> Iterator[Image]:
        for number, image in enumerate(self._clip.frames(start_s, count, recipe)):
            share = share_shown(start_s + number / recipe.fps)
            yield np.asarray(cv2.addWeighted(_written(image, self._title), share, image, 1 - share, 0), np.uint8)


def _written(image: Image, title: Title) -> Image:
    tall, wide = image.shape[:2]
    thick = max(1, round(title.height * tall / 9))
    size = cv2.getFontScaleFromHeight(cv2.FONT_HERSHEY_DUPLEX, round(title.height * tall), thick)
    (width, height), _ = cv2.getTextSize(title.words, cv2.FONT_HERSHEY_DUPLEX, size, thick)
    left, line, written = (wide - width) // 2, round(title.line * tall), image.copy()
    if title.on_bar:
        cv2.rectangle(written, (left - height, line - 2 * height), (left + width + height, line + height), (20, 20, 110), -1)
    cv2.putText(written, title.words, (left, line), cv2.FONT_HERSHEY_DUPLEX, size, (255, 255, 255), thick, cv2.LINE_AA)
    return written


def measure(clips: Sequence[Clip], title: Title, gop: int, work: Path) -> list[str]:
    """The cells of a row: keyframes in a fade of all, evenly spaced, with N and with auto."""
    recipe = Recipe("h264", 640, 360, 0, gop=gop)
    counts = {"evenly": [0, 0], "N": [0, 0], "auto": [0, 0]}
    for place, clip in enumerate(clips):
        titled, video = TitledClip(clip, title), work / f"{place}.mp4"
        truth = write_mix(video, recipe, [Segment(titled, 0.0, round(titled.length_s * recipe.fps), None, 0)])
        times = {"evenly": evenly_spaced(truth["duration_s"], KEYFRAMES)}
        for name, keyframes in (("N", KEYFRAMES), ("auto", "auto")):
            run = vip.extract(video, out=work / "run.vip", keyframes=keyframes, overwrite=True)
            times[name] = [keyframe.time_s or 0.0 for keyframe in run.keyframes]
        for name, found in times.items():
            counts[name][0] += sum(HALF[0] < share_shown(time_s) < HALF[1] for time_s in found)
            counts[name][1] += len(found)
    return [f"{half} of {count} ({half / max(1, count):.3f})" for half, count in counts.values()]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--clips", type=Path, help="folder of videos; photographs by default")
    options = parser.parse_args(arguments)
    clips = clips_in(options.clips)
    clips = clips if options.clips else clips[:PHOTOGRAPHS]
    print(f"| over the picture | GOP | evenly spaced | N = {KEYFRAMES} | auto |\n|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as work:
        for name, title in TITLES.items():
            for gop in (48, 250):
                print("|", " | ".join([name, str(gop), *measure(clips, title, gop, Path(work))]), "|", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
