"""The columns of the data set: one row a keyframe, the same in every format, and back without loss.

In: a `VideoSample`. Out: rows as dicts. `provenance` holds what few people search by. `video` holds what is the same for all keyframes
of a video, such as its subtitles, in the first row; it is None in the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import PurePath
from typing import Any

import numpy as np

from vip.dataset.rows import KeyframeRow, VideoRow, VideoSample
from vip.dataset.subtitles import choose_subtitles, words_around
from vip.records import Description, Failure, Famous, Keyframe, KeyframeText, Quality, RichFields
from vip.store import PICTURES
from vip.words.picture_text import plain_lines

Row = dict[str, Any]

COLUMNS = {
    "video_id": ("string", "Key of the video in this data set."),
    "keyframe_id": ("string", "Unique in the data set."),
    "number": ("int32", "Of the keyframe in its video, from 1."),
    "time_s": ("float64", "Seconds from the start of the video's clock; null for a picture that comes from no video."),
    "picture": ("picture", "The picture's file, and its name."),
    "picture_format": ("string", "jpg, png or webp."),
    "width_px": ("int32", "Width of the picture."),
    "height_px": ("int32", "Height of the picture."),
    "sharpness": ("float64", "Variance of the Laplacian of the grey picture at a fixed working size; low means blurred."),
    "brightness": ("float64", "Mean grey level, 0 to 1."),
    "contrast": ("float64", "Standard deviation of the grey levels, as a fraction of the full range."),
    "embedding": ("vector", "The picture's vector of length 1."),
    "embedder": ("string", "What made the vector."),
    "detections": ("detections", "Objects: label, score, left, top, right and bottom as fractions of the picture. Null: not sought."),
    "caption": ("string", "The overall caption; null where the recipe asks for none."),
    "dense_caption": ("string", "All that can be seen, in sentences."),
    "focus": ("string", "FAMOuS: what the picture is about."),
    "action": ("string", "FAMOuS: what happens."),
    "mood": ("string", "FAMOuS: how it feels."),
    "objects": ("strings", "FAMOuS: what is to be seen."),
    "setting": ("string", "FAMOuS: where it is."),
    "short_caption": ("string", "Rich fields: one sentence. These are null where only FAMOuS was asked for."),
    "main_object": ("string", "Rich fields: the main object, how it looks and what it does."),
    "background": ("string", "Rich fields: what is behind and around it."),
    "style": ("string", "Rich fields: the kind of picture, such as photograph or cartoon."),
    "shot_size": ("string", "Rich fields: from extreme close-up to extreme long shot."),
    "camera_angle": ("string", "Rich fields: eye level, high angle, low angle, overhead, tilted."),
    "depth_of_field": ("string", "Rich fields: shallow or deep."),
    "counts": ("json", "Rich fields: how many of what are to be seen."),
    "colours": ("json", "Rich fields: which thing has which colour."),
    "relations": ("json", "Rich fields: where things are, seen from others."),
    "visible_text": ("strings", "Rich fields: what can be read in the picture."),
    "characters": ("strings", "Rich fields: made-up characters, and people whose name stands in the picture."),
    "camera_movement": ("string", "Rich fields: how the view changed since the keyframe before, as vip measured it."),
    "language": ("string", "Of the description."),
    "grounding": ("strings", "What was detected or expected, and given to the engine as ground to stand on."),
    "description_engine": ("string", "Engine and model that described the picture."),
    "verification": ("json", "Each claim of the description held against the picture; null where nobody did."),
    "caption_failure": ("string", "Why there is no description; null also where nobody asked for one."),
    "subtitle": (
        "string",
        "Subtitles around this keyframe, half way to its neighbours; where there are none, speech that a program transcribed.",
    ),
    "picture_text": ("strings", "Lines of text that a program read in the picture, from the top. Null: not read."),
    "source": ("string", "The video: an id, a path, or an address without login and query."),
    "youtube_id": ("string", "Where it is on YouTube."),
    "title": ("string", "Of the video."),
    "duration_s": ("float64", "Length of the video in seconds."),
    "labels": ("strings", "Topics of the video."),
    "verticals": ("strings", "Groups of its topics."),
    "topic": ("string", "What the video is about."),
    "provenance": ("json", "How it came about: settings, backends, versions, requests to the engine, candidate, PTS, boxes of text."),
    "video": ("json", "First row of a video: everything that is known of it, subtitles too."),
}
"""Name of a column -> kind and description."""

_OF_VIDEO = ("source", "youtube_id", "title", "duration_s", "labels", "verticals", "topic")
_MADE = {"settings", "backends", "versions", "device", "created_utc"}
_KEYFRAME_REST = {"pts", "candidate", "detector", "image_path"}
_DESCRIPTION_REST = {"recipe", "context", "topic", "calls", "time_s", "reviewed"}
_FAILURE_REST = {"kind", "exit_code"}
_TEXT_REST = {"picture_sha256", "reader", "lines"}


def rows_of(sample: VideoSample) -> Iterator[Row]:
    """Yield one row a keyframe, with a value for each of `COLUMNS`; `picture` holds bytes and path, `embedding` an array (D,)."""
    video = sample.video
    made = video.model_dump(mode="json", include=_MADE)
    around = words_around([frame.keyframe.time_s for frame in sample.frames], choose_subtitles(video.subtitles, video.info.get("language")))
    for number, (frame, subtitle) in enumerate(zip(sample.frames, around, strict=True), 1):
        yield {
            **dict.fromkeys(COLUMNS),
            **_of_keyframe(frame),
            **(_of_description(frame.description) if frame.description else {}),
            **{name: _json(getattr(video, name)) for name in _OF_VIDEO},
            "number": number,
            "subtitle": subtitle,
            "picture_text": list(plain_lines(frame.text)) if frame.text else None,
            "embedder": video.backends.get("embedder"),
            "caption_failure": frame.failure.message if frame.failure else None,
            "provenance": made | _rest(frame),
            "video": video.model_dump(mode="json") if number == 1 else None,
        }


def samples_of(rows: Iterable[Row]) -> Iterator[VideoSample]:
    """Yield the samples of rows, in which the rows of a video come one after another.

    Raises:
        ValueError, KeyError, TypeError: a row is damaged, or a row of a video is missing.
    """
    for _, group in groupby(rows, key=lambda row: row["video_id"]):
        yield _sample(list(group))


def picture_format(name: str) -> str:
    """Return `jpg` for `0001.JPEG`."""
    return PurePath(name).suffix.lower().removeprefix(".").replace("jpeg", "jpg").replace("tiff", "tif")


def sample_key(row: Row) -> str:
    """Return `VIDEO_0001`, without dots: readers of tar shards take all after the first dot as the type of a file."""
    return f"{row['video_id'].replace('.', '_')}_{row['number']:04d}"


# ---------------------------------------------------------------- to rows


def _of_keyframe(frame: KeyframeRow) -> Row:
    row = frame.keyframe
    return {
        "video_id": row.video_id,
        "keyframe_id": row.id,
        "time_s": row.time_s,
        "picture": {"bytes": frame.picture, "path": frame.name},
        "picture_format": picture_format(frame.name),
        "width_px": row.width_px,
        "height_px": row.height_px,
        **row.quality.model_dump(),
        "embedding": frame.vector,
        "detections": None if row.detections is None else [one.model_dump(mode="json") for one in row.detections],
    }


def _of_description(row: Description) -> Row:
    return {
        "caption": row.caption,
        "dense_caption": row.dense_caption,
        **row.famous.model_dump(mode="json"),
        **(row.rich.model_dump(mode="json") if row.rich else {}),
        "language": row.language,
        "grounding": list(row.grounding),
        "description_engine": row.engine,
        "verification": row.verification.model_dump(mode="json") if row.verification else None,
    }


def _rest(frame: KeyframeRow) -> Row:
    return {
        "keyframe": frame.keyframe.model_dump(mode="json", include=_KEYFRAME_REST),
        "description": frame.description.model_dump(mode="json", include=_DESCRIPTION_REST) if frame.description else None,
        "failure": frame.failure.model_dump(mode="json", include=_FAILURE_REST) if frame.failure else None,
        **({"text": frame.text.model_dump(mode="json", include=_TEXT_REST)} if frame.text else {}),
    }


def _json(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


# ---------------------------------------------------------------- from rows


def _sample(rows: Sequence[Row]) -> VideoSample:
    video = VideoRow.model_validate(rows[0]["video"])
    if [row["number"] for row in rows] != list(range(1, len(rows) + 1)):
        raise ValueError(f"keyframes of {video.key} are missing")
    return VideoSample(video, tuple(map(_frame, rows)))


def _frame(row: Row) -> KeyframeRow:
    rest = row["provenance"]
    keyframe = Keyframe(
        id=row["keyframe_id"],
        quality=Quality(**{name: row[name] for name in Quality.model_fields}),
        **{name: row[name] for name in ("video_id", "time_s", "width_px", "height_px", "detections")},
        **rest["keyframe"],
    )
    if row["picture"]["path"] != keyframe.image_path.removeprefix(f"{PICTURES}/"):
        raise ValueError(f"the picture of {keyframe.id} is {row['picture']['path']!r}")
    vector = None if row["embedding"] is None else np.asarray(row["embedding"], np.float32)
    return KeyframeRow(keyframe, row["picture"]["bytes"], vector, _description(row, rest), _failure(row, rest), _text(row, rest))


def _description(row: Row, rest: Row) -> Description | None:
    if rest["description"] is None:
        return None
    return Description(
        keyframe_id=row["keyframe_id"],
        engine=row["description_engine"],
        famous=Famous(**{name: row[name] for name in Famous.model_fields}),
        rich=rich_of(row),
        **{name: row[name] for name in ("language", "grounding", "caption", "dense_caption", "verification")},
        **rest["description"],
    )


def rich_of(row: Row) -> RichFields | None:
    """Return the rich fields; None where there are none, and for a row that is older than they are."""
    if row.get("camera_movement") is None:
        return None
    return RichFields.model_validate({name: row[name] for name in RichFields.model_fields})


def _text(row: Row, rest: Row) -> KeyframeText | None:
    """Return the text with its boxes; None where nobody read it."""
    return KeyframeText(keyframe_id=row["keyframe_id"], **rest["text"]) if rest.get("text") else None


def _failure(row: Row, rest: Row) -> Failure | None:
    return Failure(item=row["keyframe_id"], message=row["caption_failure"], **rest["failure"]) if rest["failure"] else None
