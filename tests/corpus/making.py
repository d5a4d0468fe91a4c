"""Clips of any shape, for tests of batches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from hypothesis import strategies as st

from tests.captioning.keyframes import manifest
from tests.report.runs import description, make_run, picture
from vip.dataset.items import ListItem
from vip.dataset.rows import KeyframeRow, VideoRow, VideoSample, sample_of
from vip.records import (
    MOST_COUNTED,
    MOST_VIDEO_TIME_S,
    CandidateCounts,
    Check,
    Description,
    Detection,
    Failure,
    Famous,
    Keyframe,
    KeyframeText,
    ObjectColour,
    ObjectCount,
    Quality,
    Relation,
    RichFields,
    TextLine,
    Verification,
)

JPEG = cv2.imencode(".jpg", picture(0))[1].tobytes()


def sample(key: str = "abc", count: int = 3, *, size: int | None = None, described: bool = True, **video: Any) -> VideoSample:
    """One keyframe every two seconds; pictures of `size` random bytes, or real ones."""
    frames = []
    for number in range(1, count + 1):
        name = f"{key}:{number:04d}"
        keyframe = Keyframe(
            id=name,
            video_id=key,
            time_s=number * 2.0,
            pts=number * 2000,
            image_path=f"keyframes/{number:04d}.jpg",
            width_px=64,
            height_px=48,
            quality=Quality(sharpness=100.0 + number, brightness=0.5, contrast=0.2),
            detections=(Detection(label="dog", score=0.75, box_xyxy=(0.25, 0.5, 0.75, 1.2), source="opencv"),),
            candidate=number,
        )
        data = np.random.default_rng(number).bytes(size) if size else JPEG
        vector = np.array([np.cos(number), np.sin(number)], np.float32)
        frames.append(KeyframeRow(keyframe, data, vector, description(keyframe) if described else None))
    about = {
        "kind": "file",
        "source": f"/films/{key}.mp4",
        "duration_s": 9.0,
        "file": manifest().video,
        "backends": {"embedder": "classic"},
    }
    made = {"backends": {"embedder": "classic"}, "device": "cpu", "created_utc": "2026-01-01T00:00:00+00:00", "seconds": {"select": 1.0}}
    return VideoSample(VideoRow(key=key, **{**about, **made, **video}), tuple(frames))


def clip_from_run(folder: Path, key: str = "abc", **changed: Any) -> VideoSample:
    """Of a run folder with candidates, vectors, descriptions."""
    item = ListItem(key=key, kind="file", source=f"/films/{key}.mp4", where="list.txt, line 3", labels=("Dog", "Surfing"))
    found = sample_of(make_run(folder / f"{key}.vip", **changed), item=item)
    return replace(found, video=found.video.model_copy(update={"backends": {"embedder": "classic", "detector": "opencv"}}))


def with_text(found: VideoSample) -> VideoSample:
    """The clip with a line that was read in its first picture."""
    first = found.frames[0]
    line = TextLine(text="Exit", score=1.0, box_xyxy=(0.0, 0.0, 0.5, 0.5))
    read = KeyframeText(keyframe_id=first.keyframe.id, picture_sha256="0", reader="a reader", lines=(line,))
    return replace(found, frames=(replace(first, text=read), *found.frames[1:]))


# ---------------------------------------------------------------- anything

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.floats(allow_nan=False, allow_infinity=False)
times = st.floats(-MOST_VIDEO_TIME_S, MOST_VIDEO_TIME_S)
keys = st.from_regex(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,20}", fullmatch=True)
names = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\."), min_size=1, max_size=12)
things = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
shares = st.floats(0, 1)
detections = st.builds(
    Detection,
    label=texts,
    score=shares,
    box_xyxy=st.tuples(numbers, numbers, numbers, numbers),
    source=texts,
    kind=st.sampled_from(["object", "region"]),
)
famous = st.builds(Famous, focus=texts, action=texts, mood=texts, objects=st.lists(texts, max_size=2).map(tuple), setting=texts)
rich = st.builds(
    RichFields,
    **dict.fromkeys(("short_caption", "main_object", "background", "style", "camera_movement"), texts),
    shot_size=st.sampled_from(["close-up", "not determined"]),
    camera_angle=st.sampled_from(["eye level", "tilted"]),
    depth_of_field=st.sampled_from(["shallow", "deep"]),
    counts=st.lists(st.builds(ObjectCount, object=texts, count=st.integers(0, MOST_COUNTED)), max_size=2).map(tuple),
    colours=st.lists(st.builds(ObjectColour, object=texts, colour=texts), max_size=2).map(tuple),
    relations=st.lists(st.builds(Relation, subject=texts, relation=texts, object=texts), max_size=2).map(tuple),
    visible_text=st.lists(texts, max_size=2).map(tuple),
    characters=st.lists(texts, max_size=2).map(tuple),
)
checks = st.builds(
    Check,
    field=st.sampled_from(["focus", "objects", "counts"]),
    claim=texts,
    verdict=st.sampled_from(["supported", "unsupported", "unchecked"]),
    similarity=st.none() | numbers,
)


@st.composite
def frames(draw: st.DrawFn, key: str, number: int, vector_length: int | None) -> KeyframeRow:
    name = f"{key}:{number:04d}"
    keyframe = Keyframe(
        id=name,
        video_id=key,
        time_s=draw(st.none() | times),
        pts=draw(st.none() | st.integers(-(2**62), 2**62)),
        image_path=f"keyframes/{number}{draw(names)}.{draw(st.sampled_from(['jpg', 'JPEG', 'png', 'webp']))}",
        width_px=draw(st.integers(1, 10_000)),
        height_px=draw(st.integers(1, 10_000)),
        quality=Quality(sharpness=draw(numbers), brightness=draw(shares), contrast=draw(shares)),
        detections=draw(st.none() | st.lists(detections, max_size=3).map(tuple)),
        detector=draw(st.none() | texts),
        candidate=draw(st.none() | st.integers(0, 10**6)),
    )
    said = draw(st.sampled_from(["described", "failed", "not asked"]))
    row = Description(
        keyframe_id=name,
        time_s=keyframe.time_s,
        engine=draw(texts),
        recipe=draw(st.sampled_from(["direct", "paper"])),
        language=draw(texts),
        context=draw(st.integers(0, 9)),
        topic=draw(st.none() | texts),
        grounding=tuple(draw(st.lists(texts, max_size=2))),
        caption=draw(st.none() | texts),
        dense_caption=draw(texts),
        famous=draw(famous),
        rich=draw(st.none() | rich),
        verification=draw(st.none() | st.builds(Verification, checks=st.lists(checks, max_size=2).map(tuple), before=st.none() | famous)),
        calls=description(keyframe).calls[: draw(st.integers(0, 1))],
    )
    vector = (
        None
        if vector_length is None
        else np.array(draw(st.lists(st.floats(width=32), min_size=vector_length, max_size=vector_length)), "f4")
    )
    failure = Failure(item=name, kind=draw(texts), message=draw(texts), exit_code=draw(st.integers(0, 255)))
    given = (row if said == "described" else None, failure if said == "failed" else None)
    lines = st.builds(TextLine, text=texts.filter(bool), score=shares, box_xyxy=st.tuples(shares, shares, shares, shares))
    read = draw(st.none() | st.lists(lines, max_size=2).map(tuple))
    text = None if read is None else KeyframeText(keyframe_id=name, picture_sha256="0", reader=draw(texts), lines=read)
    return KeyframeRow(keyframe, draw(st.binary(max_size=40)), vector, *given, text)


@st.composite
def samples(draw: st.DrawFn, key: st.SearchStrategy[str] = keys) -> VideoSample:
    """All that a clip may be."""
    name, length = draw(key), draw(st.none() | st.integers(0, 4))
    count = draw(st.integers(1, 3))
    video = VideoRow(
        key=name,
        kind=draw(st.sampled_from(["youtube", "youtube8m", "address", "file"])),
        source=draw(texts),
        where=draw(st.none() | texts),
        title=draw(st.none() | texts),
        duration_s=draw(st.none() | times),
        labels=tuple(draw(st.lists(texts, max_size=2))),
        info=draw(st.dictionaries(texts, things, max_size=3)),
        subtitles=draw(st.dictionaries(texts, texts, max_size=2)),
        file=draw(st.none() | st.just(manifest().video)),
        counts=draw(st.none() | st.just(CandidateCounts(asked=None, candidates=count, bad=0, pruned=0, duplicates=0, keyframes=count))),
        settings=draw(st.dictionaries(texts, things, max_size=2)),
        seconds=draw(st.dictionaries(texts, numbers, max_size=2)),
        captioning=draw(st.none() | st.dictionaries(texts, things, max_size=2)),
    )
    return VideoSample(video, tuple(draw(frames(name, number, length)) for number in range(1, count + 1)))
