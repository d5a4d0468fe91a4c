"""The check of the numbers of the schema `rich`: what a detector counts in the same frame.

In: the numbers that a description states, and the detections of its frame. Out: a Check for each number. A detector that surely finds more
than was stated contradicts, and so does one that finds fewer, if it finds such things in this video at all. In crowds it overlooks some, so
there fewer say nothing. Names are compared in English.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Literal

from vip.captioning.same_thing import is_kind_of
from vip.records import Check, Detection, ObjectCount, RichFields

SURE_DETECTION = 0.5  # score from which on a detection proves an object
MISSES_MOST = frozenset({"opencv"})  # detectors that overlook so much that what they do not find may well be there
MOST_EXACT = 10  # things that a detector finds one and all


def check_counts(
    rich: RichFields | None, found: Sequence[Detection] | None, detector: str | None, findable: Collection[str]
) -> list[Check]:
    """Return a check for each number.

    Args:
        found: the detections of the frame; None where the detector knows nothing about it.
        detector: its name; None where nobody looked.
        findable: the labels of all that it found in the video.
    """
    checks = []
    for entry in rich.counts if rich else ():
        verdict = "unchecked" if found is None or detector is None else _verdict(entry, found, detector, findable)
        by = () if verdict == "unchecked" or detector is None else (detector,)
        checks.append(Check.model_validate({"field": "counts", "claim": entry.phrase, "verdict": verdict, "by": by}))
    return checks


def _verdict(
    entry: ObjectCount, found: Sequence[Detection], detector: str, findable: Collection[str]
) -> Literal["supported", "unsupported", "unchecked"]:
    boxes = [one for one in found if one.kind == "object"]
    sure = Counter(one.label for one in boxes if one.score >= SURE_DETECTION)
    at_least = _most(sure, lambda label: is_kind_of(label, entry.object))
    if at_least > entry.count:
        return "unsupported"
    kinds = [label for label in findable if is_kind_of(entry.object, label)]
    if not kinds:
        return "unchecked"
    at_most = _most(Counter(one.label for one in boxes), lambda label: label in kinds)
    if at_most < entry.count <= MOST_EXACT and detector not in MISSES_MOST:
        return "unsupported"
    return "supported" if at_least == entry.count and (at_least or detector not in MISSES_MOST) else "unchecked"


def _most(numbers: Counter[str], fits: Callable[[str], bool]) -> int:
    """Return the largest number of one label that fits; a person and the face of the same person are not two."""
    return max((number for label, number in numbers.items() if fits(label)), default=0)
