"""The text of a frame: its object list with positions, as a sentence that an embedder's text side reads.

    3 face left, 1 person centre       (sorted; "nothing" where nothing was found)

The paper embeds "its list of detected objects and positions" (section 3.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from vip.records import Detection

PEOPLE = frozenset({"person", "face", "man", "woman", "boy", "girl", "child", "people", "human"})
THIRDS = ("left", "centre", "right")


def position_of(detection: Detection) -> str:
    """The third of the picture in which the middle of the box lies: left, centre or right."""
    middle = (detection.box_xyxy[0] + detection.box_xyxy[2]) / 2
    return THIRDS[min(2, int(3 * middle))]


def text_of(detections: Sequence[Detection]) -> str:
    """The object list in words, the same for any order of the detections."""
    counts = Counter((detection.label, position_of(detection)) for detection in detections)
    return ", ".join(f"{count} {label} {label}-{where}" for (label, where), count in sorted(counts.items())) or "nothing"


def has_people(detections: Sequence[Detection]) -> bool:
    """Whether the people rule of Algorithm 1 applies to the frame."""
    return any(detection.label.lower() in PEOPLE for detection in detections)
