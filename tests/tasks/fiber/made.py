"""Small files of FIBER and VATEX."""

from __future__ import annotations

import re
from collections.abc import Sequence

from vip.tasks.fiber.records import FiberRecord
from vip.tasks.fiber.vatex import CaptionedVideo


def chunk_articles(text: str) -> Sequence[tuple[int, int]]:
    """Find an article and the word behind it."""
    return [match.span() for match in re.finditer(r"\b(?:[Aa]n?|[Tt]he) \S*\w", text)]


def video(*captions: str, video_id: str = "a_b") -> CaptionedVideo:
    return CaptionedVideo(video_id, 5, 15, captions)


def record(label: str = "a dog", video_id: str = "v", **more: object) -> FiberRecord:
    values = {
        "video_id": video_id,
        "video_start_time": 5,
        "video_end_time": 15,
        "caption": f"There is {label}.",
        "masked_caption": "There is _____.",
        "label": label,
        **more,
    }
    return FiberRecord.model_validate(values)
