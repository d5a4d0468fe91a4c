"""Facts measured in a keyframe: the ground that descriptions stand on (section 3.2, "grounding list").

In: a keyframe's picture, its record and the picture before. Out: `Facts` for the engine, and the same as short statements
that go into the prompt and stay in descriptions.jsonl. The paper grounds captions with detections and their confidence
because models invent; here the measured colours, light and change of view come along.
"""

from __future__ import annotations

from collections.abc import Sequence

from vip.captioning.colours import colourfulness, dominant_colours
from vip.captioning.view_change import view_change
from vip.protocols import KeyframeFacts, ViewChange
from vip.records import Detection, Image, Keyframe
from vip.words.around import quoted
from vip.words.picture_text import quoted_lines


def measure(image: Image, keyframe: Keyframe, *, previous: Image | None, detector: str | None) -> KeyframeFacts:
    """Return the facts of one keyframe. Size, time, quality and detections come from its record, the rest from the pixels.

    Args:
        previous: picture of the keyframe before, at any size; None for the first.
        detector: who made the record's detections; None when nobody looked.
    """
    return KeyframeFacts(
        width_px=keyframe.width_px,
        height_px=keyframe.height_px,
        time_s=keyframe.time_s,
        quality=keyframe.quality,
        detections=keyframe.detections or (),
        colours=dominant_colours(image),
        colourfulness=colourfulness(image),
        detector=None if keyframe.detections is None else detector,
        change=None if previous is None else view_change(previous, image),
    )


def grounding(facts: KeyframeFacts) -> tuple[str, ...]:
    """Return the facts as short statements with figures, such as `person, 0.82, left third, 21 % of the picture`."""
    quality = facts.quality
    return (
        *_describe_found(facts),
        "dominant colours: " + ", ".join(f"{name} {_percent(share)}" for name, share in facts.colours),
        f"mean colour saturation {facts.colourfulness:.2f} (0 is black-and-white, 1 is pure colour)",
        f"brightness {quality.brightness:.2f} (0 is black, 1 is white), contrast {quality.contrast:.2f} (standard deviation)",
        f"sharpness {quality.sharpness:.0f} (variance of the Laplacian; low means blurred)",
        *([] if facts.change is None else [f"view: {_describe_change(facts.change)}"]),
        *words_statement(facts.words),
        *speech_statement(facts.speech),
        *text_statement(facts.text),
    )


def words_statement(words: str | None) -> list[str]:
    """Return the subtitles around a keyframe as a statement; nothing where there are none."""
    return [f"subtitles around it: {quoted(words)}"] if words else []


def speech_statement(words: str | None) -> list[str]:
    """Return the transcribed speech around a keyframe as a statement; nothing where there is none."""
    return [f"speech around it, transcribed by a program: {quoted(words)}"] if words else []


def text_statement(lines: Sequence[str]) -> list[str]:
    """Return the text in a keyframe as a statement; nothing where none was read."""
    return [f"text read in the picture: {quoted_lines(lines)}"] if lines else []


def _describe_found(facts: KeyframeFacts) -> list[str]:
    return [] if facts.detector is None else describe_detections(facts.detections, facts.detector)


def describe_detections(detections: Sequence[Detection] | None, detector: str) -> list[str]:
    """Return objects and regions as short statements with their confidence; nothing where the detector does not know the picture."""
    if detections is None:
        return []
    if not detections:
        return [f"nothing found by the detector {detector}"]
    return [f"{'region: ' * (one.kind == 'region')}{describe_detection(one)}" for one in detections]


def describe_detection(detection: Detection) -> str:
    """Return `person, 0.82, left third, 21 % of the picture`."""
    return f"{detection.label}, {detection.score:.2f}, {_third_of(detection)}, {_percent(_area_of(detection))} of the picture"


def _third_of(detection: Detection) -> str:
    left, _, right, _ = detection.box_xyxy
    middle = (left + right) / 2
    return "left third" if middle < 1 / 3 else "right third" if middle > 2 / 3 else "centre"


def _area_of(detection: Detection) -> float:
    left, top, right, bottom = detection.box_xyxy
    return abs(right - left) * abs(bottom - top)


def _describe_change(change: ViewChange) -> str:
    if change.kind == "same view":
        return f"same as in the previous keyframe{', but what it shows changed' * change.content_changed}"
    if change.kind == "new view":
        return "nothing of the previous keyframe was recognised"
    return f"since the previous keyframe {describe_shift(change)}"


def describe_shift(change: ViewChange) -> str:
    """Return `the content went 12 % right and 3 % up, and is 1.20 times as large`."""
    across, down = change.shift_xy
    sideways = f"{_percent(abs(across))} {'right' if across > 0 else 'left'}"
    upright = f"{_percent(abs(down))} {'down' if down > 0 else 'up'}"
    return f"the content went {sideways} and {upright}, and is {change.zoom:.2f} times as large"


def _percent(share: float) -> str:
    return "under 1 %" if 0 < share < 0.01 else f"{share:.0%}".replace("%", " %")
