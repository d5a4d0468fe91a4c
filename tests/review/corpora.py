"""What is reviewed in tests."""

from __future__ import annotations

import shutil
from pathlib import Path

import cv2

from tests.report.runs import description, picture
from vip import store
from vip.records import Check, Detection, Keyframe, ObjectColour, ObjectCount, Quality, Relation, RichFields, Verification
from vip.review.items import ItemIndex, read_items
from vip.review.log import NAME, Action, NewAction, ReviewLog
from vip.review.replace import rollback_actions
from vip.review.state import ReviewState

QUALITY = Quality(sharpness=50.0, brightness=0.5, contrast=0.2)


RICH = RichFields(
    short_caption="A dancer leaps.",
    main_object="A dancer in red.",
    background="not determined",
    style="photograph",
    shot_size="full shot",
    camera_angle="eye level",
    depth_of_field="not determined",
    counts=(ObjectCount(object="dancer", count=1), ObjectCount(object="rope", count=2)),
    colours=(ObjectColour(object="dress", colour="red"),),
    relations=(Relation(subject="rope", relation="left of", object="dancer"),),
    visible_text=("EXIT", "line one\nline two"),
    characters=(),
    camera_movement="not known",
)


def make_described(
    folder: Path, count: int, *, text: str = "", prefix: str = "k", video: str = "v", rich: RichFields | None = None
) -> Path:
    """A folder of described pictures that share one file; the third has a claim that `--verify` doubts.

    Args:
        rich: of the first picture.
    """
    folder.mkdir(parents=True)
    cv2.imwrite(str(folder / "one.jpg"), picture(1, width_px=640, height_px=360))
    box = Detection(label=f"person{text}", score=0.75, box_xyxy=(0.1, 0.2, 0.5, 0.9), source="opencv")
    rows = [
        Keyframe(
            id=f"{prefix}{number}", video_id=video, time_s=float(number), pts=None, image_path="one.jpg", width_px=640, height_px=360,
            quality=QUALITY, detections=(box,), candidate=None,
        )
        for number in range(count)
    ]  # fmt: skip
    store.write_rows(folder / store.KEYFRAMES, rows)
    doubt = Verification(checks=(Check(field="objects", claim=f"rope{text}", verdict="unsupported"),))
    described = [description(row, text=text) for row in rows]
    described = [row.model_copy(update={"verification": doubt}) if number == 2 else row for number, row in enumerate(described)]
    described = [described[0].model_copy(update={"rich": rich}), *described[1:]]
    store.write_rows(folder / store.DESCRIPTIONS, described)
    return folder


def open_state(folder: Path) -> ReviewState:
    return ReviewState(read_items(folder), ReviewLog(folder / NAME))


def action(item: str, field: str, after: str | None, *, by: str = "Ann", before: str | None = None, uid: str = "") -> NewAction:
    import uuid

    return NewAction(uid=uid or uuid.uuid4().hex, reviewer=by, item=item, field=field, before=before, after=after)


def roll_back(state: ReviewState, batch: str, *, reviewer: str, new_batch: str) -> int:
    """Roll back as the server does, and return how many texts were put back."""
    return sum(isinstance(one, Action) for one in state.record(rollback_actions(state, batch, reviewer=reviewer, new_batch=new_batch)))


__all__ = ["ItemIndex", "action", "make_described", "open_state", "roll_back", "shutil"]
