"""In which frames objects are sought: in every candidate that is neither bad nor a copy of another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import cv2
import numpy as np

from vip.cores import cores
from vip.extraction.analyze import FrameAnalysis
from vip.protocols import Detector, PictureOrigin
from vip.records import Detection, Image


def seek(
    analyses: Sequence[FrameAnalysis], wanted: Collection[int], detector: Detector, *, advance: Callable[[], None]
) -> list[FrameAnalysis]:
    """The looks, with what was found in those of the wanted indices.

    Args:
        advance: called for each of the wanted.
    """
    todo = [index for index in sorted(wanted) if analyses[index].detections is None]
    for _ in range(len(wanted) - len(todo)):
        advance()
    size = detector.capabilities.batch

    def searched(batch: Sequence[int]) -> list[tuple[Detection, ...] | None]:
        where = [PictureOrigin(time_s=analyses[index].time_s) for index in batch]
        found = detector.detect([_decoded(analyses[index].picture) for index in batch], where)
        for _ in batch:
            advance()
        return [None if rows is None else tuple(rows) for rows in found]

    batches = [todo[start : start + size] for start in range(0, len(todo), size)]
    threads = 1 if detector.capabilities.device else cores()  # a model has threads of its own
    with ThreadPoolExecutor(threads) as pool:
        found = [rows for batch in pool.map(searched, batches) for rows in batch]
    rows_of = dict(zip(todo, found, strict=True))
    return [replace(analysis, detections=rows_of.get(index, analysis.detections), picture=b"") for index, analysis in enumerate(analyses)]


def _decoded(picture: bytes) -> Image:
    return np.asarray(cv2.imdecode(np.frombuffer(picture, np.uint8), cv2.IMREAD_COLOR_RGB), np.uint8)
