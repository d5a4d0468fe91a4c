"""In which frames objects are sought: in those that may become keyframes, and not in all that were looked at.

Seeking objects costs as much as all else that is done with a frame. Algorithm 1 keeps one frame of each scene
(`vip.extraction.scenes`), so two of each are searched: the one that stands for it, and the one least like that, unless
even that shows the same. Pruners that know no scenes get every frame searched that is neither bad nor a copy. A keyframe
that was not searched before is so when it is written.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import cv2
import numpy as np

from vip.extraction.choose import by_picture_only, good_frames, prunable
from vip.extraction.scan import Look
from vip.extraction.scenes import representatives
from vip.protocols import Detector


def worth_searching(looks: Sequence[Look], *, keyframes: int, min_sharpness: float | None, by_scene: bool, redundant: float) -> set[int]:
    """Indices of the looks in which objects are sought.

    Args:
        redundant: the likeness from which on frames show the same.
    """
    good = good_frames(looks, min_sharpness)
    if not by_scene or len(good) <= keyframes:
        return set(good)
    frames = prunable(looks, by_picture_only(looks), good)
    vectors, chosen = frames.embeddings.image, set()
    for row, scene in representatives(frames, keyframes).items():
        alike = vectors[scene.start : scene.stop] @ vectors[row]
        chosen |= {good[row]} if alike.min() >= redundant else {good[row], good[scene[int(alike.argmin())]]}
    return chosen


def seek(looks: Sequence[Look], wanted: Collection[int], detector: Detector) -> list[Look]:
    """The looks, with what was found in those of the wanted indices."""

    def searched(index: int) -> Look:
        picture = cv2.imdecode(np.frombuffer(looks[index].picture, np.uint8), cv2.IMREAD_COLOR_RGB)
        return replace(looks[index], detections=tuple(detector.detect([np.asarray(picture, np.uint8)])[0]))

    todo = [index for index in wanted if looks[index].detections is None]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        found = dict(zip(todo, pool.map(searched, todo), strict=True))
    return [replace(found.get(index, look), picture=b"") for index, look in enumerate(looks)]
