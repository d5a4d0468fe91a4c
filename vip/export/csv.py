"""`--to csv`: a table for spreadsheets, one row a keyframe.

In: samples. Out: OUT/keyframes.csv (RFC 4180, UTF-8 with a byte order mark, which Excel needs), and its pictures in
OUT/pictures/VIDEO/. Texts come from models and strangers: none becomes a formula, and each is on one line.
"""

from __future__ import annotations

import codecs
import csv
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from vip.dataset import storage
from vip.dataset.rows import VideoSample
from vip.dataset.schema import rows_of
from vip.records import ObjectColour, ObjectCount, Phrase, Relation
from vip.untrusted import one_line

STALE_FILES = ""
FILE = "keyframes.csv"
FORMULA = re.compile(r"(^|;[ \"]*)(?=[=+\-@＝＋－＠])")
"""Where a spreadsheet would start a formula (OWASP: CSV injection); also after a semicolon, which separates cells in many countries."""
CELLS = (
    *("video_id", "title", "keyframe_id", "number", "time_s", "time", "picture", "width_px", "height_px"),
    *("sharpness", "brightness", "contrast", "detections", "dense_caption", "focus", "action", "mood", "objects", "setting"),
    *("short_caption", "main_object", "background", "style", "shot_size", "camera_angle", "depth_of_field"),
    *("counts", "colours", "relations", "visible_text", "characters", "camera_movement"),
    *("language", "description_engine", "caption_failure", "subtitle", "picture_text"),
    *("source", "youtube_id", "duration_s", "labels", "topic"),
)
"""The columns of `vip.dataset.schema` that fit a cell, and `time` as h:mm:ss."""

PHRASES: dict[str, type[Phrase]] = {"counts": ObjectCount, "colours": ObjectColour, "relations": Relation}


def write(samples: Iterator[VideoSample], out: str, note: Callable[[str], None]) -> int:
    """Write the table and the pictures."""
    files = 1
    with storage.writing(out, FILE) as file:
        file.write(codecs.BOM_UTF8)
        table = csv.writer(codecs.getwriter("utf-8")(file))
        table.writerow(CELLS)
        for sample in samples:
            for row in rows_of(sample):
                place = ("pictures", row["video_id"], row["picture"]["path"])
                storage.write_whole(row["picture"]["bytes"], out, *place)
                cells = {
                    **row,
                    "picture": "/".join(place),
                    "time": hours_minutes_seconds(row["time_s"]),
                    "detections": _detections_cell(row["detections"]),
                    **{name: _phrases_cell(kind, row[name]) for name, kind in PHRASES.items()},
                }
                table.writerow([cell(cells[name]) for name in CELLS])
                files += 1
    return files


def cell(value: Any) -> str | int | float | None:
    """Return the value as a cell: numbers as they are, texts on one line, with an apostrophe where they would be a formula."""
    if value is None or isinstance(value, int | float):
        return value
    text = one_line("; ".join(value) if isinstance(value, list) else str(value))
    return FORMULA.sub(r"\1'", text)


def hours_minutes_seconds(time_s: float | None) -> str | None:
    """Return `0:01:02` for 62.9: the second that a player shows."""
    if time_s is None or not math.isfinite(time_s):
        return None
    minutes, second = divmod(int(abs(time_s)), 60)
    return f"{'-' if time_s <= -1 else ''}{minutes // 60}:{minutes % 60:02}:{second:02}"


def _phrases_cell(kind: type[Phrase], entries: list[dict[str, Any]] | None) -> str | None:
    """Return `dog: 3; person: 1`; None where it was not asked for."""
    return None if entries is None else "; ".join(kind.model_validate(entry).phrase for entry in entries)


def _detections_cell(detections: list[dict[str, Any]] | None) -> str | None:
    """Return `dog 0.75; person 0.61`; None where no objects were sought."""
    if detections is None:
        return None
    return "; ".join(f"{one['label']} {one['score']:.2f}" for one in detections) or "none"
