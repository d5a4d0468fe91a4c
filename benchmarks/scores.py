"""How good a choice of keyframes is, given which clip every moment of the video comes from.

coverage   share of the segments that at least one good keyframe shows (a bad one does not count)
bad        share of the keyframes that are out of focus, black or in a cross-fade
"""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import av
import cv2
import numpy as np
import numpy.typing as npt
from mixes import Truth

PICTURES = frozenset({".jpg", ".jpeg", ".png"})
SMALL = (48, 27)  # width and height at which pictures are compared with frames
EVERY = 2  # compared with every second frame


@dataclass(frozen=True)
class Score:
    """`coverage` and `bad` are shares from 0 to 1."""

    keyframes: int
    coverage: float
    bad: float


def score(truth: Truth, times_s: Sequence[float]) -> Score:
    """Coverage and bad share of keyframes at these times."""
    ends = [segment["end_s"] for segment in truth["segments"]]
    shown, bad = set(), 0
    for time_s in times_s:
        if any(fault["start_s"] <= time_s < fault["end_s"] for fault in truth["faults"]):
            bad += 1
        elif time_s < ends[-1]:
            shown.add(bisect.bisect_right(ends, time_s))
    return Score(len(times_s), len(shown) / len(ends), bad / max(1, len(times_s)))


def evenly_spaced(duration_s: float, count: int) -> list[float]:
    """The middles of `count` equal parts."""
    return [(number + 0.5) * duration_s / count for number in range(count)]


def times_of_pictures(video: Path, folder: Path) -> list[float]:
    """For each picture in the folder the time of the frame that looks most like it: some programs write no times."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in PICTURES)
    if not paths:
        return []
    times_s, frames = _frames(video)
    images = (cv2.imread(str(path)) for path in paths)
    small = (cv2.resize(image, SMALL, interpolation=cv2.INTER_AREA) for image in images if image is not None)
    signatures = (cv2.cvtColor(image, cv2.COLOR_BGR2RGB).astype(np.float32).ravel() for image in small)
    return [times_s[int(((frames - signature) ** 2).sum(axis=1).argmin())] for signature in signatures]


@functools.lru_cache(maxsize=1)  # several programs are scored on one video after another
def _frames(video: Path) -> tuple[list[float], npt.NDArray[np.float32]]:
    """Times of every second frame, and their pictures made small: float32 (frames, 48 * 27 * 3), RGB."""
    times_s, rows = [], []
    with av.open(str(video)) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        for number, frame in enumerate(container.decode(stream)):
            if number % EVERY == 0 and frame.time is not None:
                small = frame.reformat(width=SMALL[0], height=SMALL[1], format="rgb24", interpolation="AREA")
                rows.append(small.to_ndarray().astype(np.float32).ravel())
                times_s.append(frame.time)
    return times_s, np.array(rows, np.float32).reshape(len(rows), math.prod(SMALL) * 3)
