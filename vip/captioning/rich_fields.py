"""The fields of the schema `rich`: an engine's answer made tidy, and the movement of the camera as it was measured.

In: the answer, and two keyframes. Out: `RichFields`. One frame does not show how a camera moves, so no engine is asked: vip compares
the picture with that of the keyframe before, and where nothing of it is recognised the movement is not known.
"""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel

from vip.captioning.facts import describe_shift
from vip.captioning.view_change import view_change
from vip.errors import InputError
from vip.protocols import ViewChange
from vip.records import NOT_DETERMINED, NOT_KNOWN, RecordPart, Rich, RichFields
from vip.store import KeyframePicture

TEXTS = ("short_caption", "main_object", "background", "style")
PartT = TypeVar("PartT", bound=RecordPart)


def tidy(answer: BaseModel | str, movement: str) -> RichFields:
    """Return the fields with "not determined" in place of empty texts, and without entries that name nothing."""
    if not isinstance(answer, Rich):
        raise TypeError(f"expected Rich, got {type(answer).__name__}")
    return RichFields(
        **{name: getattr(answer, name).strip() or NOT_DETERMINED for name in TEXTS},
        **{name: getattr(answer, name) for name in ("shot_size", "camera_angle", "depth_of_field")},
        counts=_named(answer.counts),
        colours=_named(answer.colours),
        relations=_named(answer.relations),
        visible_text=tuple(filter(None, (one.strip() for one in answer.visible_text))),
        characters=tuple(filter(None, (one.strip() for one in answer.characters))),
        camera_movement=movement,
    )


def camera_movement(previous: KeyframePicture | None, item: KeyframePicture, change: ViewChange | None = None) -> str:
    """Return how the view changed since the keyframe before, as it was measured; "not known" where it was not.

    Args:
        change: what was measured already.

    Raises:
        InputError: the picture is missing or damaged; where the one before is, nothing is known.
    """
    if previous is None or previous.record.video_id != item.record.video_id or previous.time_s is None or item.time_s is None:
        return NOT_KNOWN
    if change is None:
        try:
            before = previous.image
        except InputError:
            return NOT_KNOWN
        change = view_change(before, item.image)
    gap = f"{item.time_s - previous.time_s:.1f} s"
    if change.kind == "new view":
        return NOT_KNOWN
    return f"the view is that of {gap} before" if change.kind == "same view" else f"in {gap} {describe_shift(change)}"


def _named(entries: tuple[PartT, ...]) -> tuple[PartT, ...]:
    """Return the entries without spaces around their texts, each once; those with an empty text are dropped."""
    stripped = [one.model_copy(update={name: value.strip() for name, value in one if isinstance(value, str)}) for one in entries]
    return tuple(dict.fromkeys(one for one in stripped if all(value != "" for _, value in one)))
