"""Objects: they are sought in every candidate that is neither bad nor a copy, and frames with too few of them are dropped."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace

import cv2
import numpy as np

from vip.cores import cores, one_opencv_thread
from vip.errors import InputError
from vip.extraction.analyze import FrameAnalysis
from vip.extraction.object_text import objects_in
from vip.extraction.spool import Spooled
from vip.protocols import Detector, PictureOrigin
from vip.records import Decision, Detection, Image
from vip.wording import counted, option


def seek(
    analyses: Sequence[FrameAnalysis], wanted: Collection[int], detector: Detector, *, advance: Callable[[], None]
) -> list[FrameAnalysis]:
    """Search the frames of the wanted indices for objects.

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
    with one_opencv_thread() if threads > 1 else nullcontext(), ThreadPoolExecutor(threads) as pool:
        found = [rows for batch in pool.map(searched, batches) for rows in batch]
    rows_of = dict(zip(todo, found, strict=True))
    return [replace(one, detections=rows_of[index], picture=None) if index in rows_of else one for index, one in enumerate(analyses)]


def poor_in_objects(analyses: Sequence[FrameAnalysis], remaining: Sequence[int], least: int) -> dict[int, Decision]:
    """Return frames with fewer objects than `least` (section 3.1: "filter keyframes that contain minimal objects"). Unknown is not few.

    Raises:
        InputError: none of the remaining would be left.
    """
    counts = {index: objects_in(found) for index in remaining if (found := analyses[index].detections) is not None}
    few = {index: count for index, count in counts.items() if count < least}
    if remaining and len(few) == len(remaining):
        most = max(few.values())
        advice = (
            f"Try {option('min_objects', most)}, or another {option('detector')}."
            if most
            else f"Leave {option('min_objects')} out, or try another {option('detector')}."
        )
        raise InputError(f"0 of {counted(len(remaining), 'candidate')} show enough objects (most {most}, asked {least}). {advice}")
    return {
        index: Decision(
            kept=False,
            rule="too_few_objects",
            reason=f"dropped: {counted(count, 'object') if count else 'no objects'} found in it, fewer than the {least} asked for",
        )
        for index, count in few.items()
    }


def _decoded(picture: Spooled | None) -> Image:
    assert picture is not None, "what shows nothing is not searched"
    return np.asarray(cv2.imdecode(np.frombuffer(picture.read(), np.uint8), cv2.IMREAD_COLOR_RGB), np.uint8)
