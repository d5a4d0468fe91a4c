"""The text of a frame: what was found in it and where, as sentences that an embedder's text side reads.

    2 person in the centre (90%), frisbee at the top left (80%). A dog that leaps for a frisbee at the left (70%).

Objects come first, in one sentence, those of a label and place counted together; then a sentence for each region that was
described. The surest come first, since a text encoder cuts long texts off. A place is one of nine: the third of the width and
of the height in which the middle of the box lies. Scores are rounded to tens, so that a frame and the next have the same
text where the same things stand in them. "Nothing." where nothing was found.

The paper embeds a frame's "list of detected objects and positions" (section 3.1).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from vip.records import Detection

PEOPLE = frozenset(
    [
        "person",
        "people",
        "human",
        "face",
        "man",
        "men",
        "woman",
        "women",
        "boy",
        "boys",
        "girl",
        "girls",
        "child",
        "children",
        "baby",
        "player",
        "players",
        "crowd",
        "pedestrian",
    ]
)
PLACES = (
    ("at the top left", "at the top", "at the top right"),
    ("at the left", "in the centre", "at the right"),
    ("at the bottom left", "at the bottom", "at the bottom right"),
)


def place_of(detection: Detection) -> str:
    """Return the ninth of the picture in which the middle of the box lies, in words."""
    left, top, right, bottom = detection.box_xyxy
    return PLACES[_third((top + bottom) / 2)][_third((left + right) / 2)]


def _third(middle: float) -> int:
    return min(2, int(3 * middle))


def text_of(detections: Sequence[Detection]) -> str:
    """Return the text of a frame, the same for any order of its detections."""
    scores: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for detection in detections:
        scores[detection.kind, detection.label, place_of(detection)].append(detection.score)
    ordered = sorted(scores.items(), key=lambda item: (-max(item[1]), item[0]))
    objects = [_phrase(label, place, found) for (kind, label, place), found in ordered if kind == "object"]
    regions = [_phrase(label, place, found) for (kind, label, place), found in ordered if kind == "region"]
    sentences = [", ".join(objects)] * bool(objects) + [f"{region[:1].upper()}{region[1:]}" for region in regions]
    return " ".join(f"{sentence}." for sentence in sentences) or "Nothing."


def _phrase(label: str, place: str, scores: Sequence[float]) -> str:
    count = f"{len(scores)} " if len(scores) > 1 else ""
    return f"{count}{label} {place} ({round(10 * max(scores)) * 10}%)"


def has_people(detections: Sequence[Detection]) -> bool:
    """Return whether the people rule of Algorithm 1 applies to the frame: a label or a phrase names one."""
    return any(not PEOPLE.isdisjoint(detection.label.lower().split()) for detection in detections)


def objects_in(detections: Sequence[Detection]) -> int:
    """Return how many objects were found: of a detector that also describes regions, those or the regions, whichever are more."""
    regions = sum(detection.kind == "region" for detection in detections)
    return max(regions, len(detections) - regions)
