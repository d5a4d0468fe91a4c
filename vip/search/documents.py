"""What a search knows of a video: for each keyframe its texts, its vector and the stretch of time that it stands for.

In: run folders and shards of data sets. Out: `IndexedVideo`, one at a time. Pictures are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vip import store
from vip.dataset.rows import VideoSample, keyframe_vectors
from vip.dataset.shards import ShardInfo, samples_in
from vip.dataset.subtitles import choose_subtitles, words_around
from vip.errors import StoreError
from vip.export.sources import ExportSource
from vip.extraction.object_text import has_people
from vip.records import Description, Keyframe, VideoInfo
from vip.review.reviewed import ReviewedTexts, logs_of_run
from vip.review.rich import rich_texts
from vip.store import Run
from vip.words.picture_text import plain_lines, text_by_keyframe
from vip.words.run_words import words_by_keyframe

MOST_LETTERS = 20_000  # of one text of a keyframe


class KeyframeTexts(NamedTuple):
    """The texts of a keyframe; their names are those that `--field` takes."""

    caption: str
    focus: str
    action: str
    mood: str
    objects: str
    setting: str
    words: str
    """What is said around it."""
    text: str
    """What stands in the picture."""


@dataclass(frozen=True, slots=True, eq=False)
class IndexedKeyframe:
    """A keyframe as it goes into the index."""

    record: Keyframe
    start_s: float | None
    """Half way to the keyframe before it."""
    end_s: float | None
    texts: KeyframeTexts
    has_people: bool
    vector: npt.NDArray[np.float32] | None


@dataclass(frozen=True, slots=True, eq=False)
class IndexedVideo:
    """A video as it goes into the index."""

    name: str
    """Its title, or its id."""
    source: str
    youtube_id: str | None
    domains: tuple[str, ...]
    """Labels, groups of labels and the topic."""
    embedder: str | None
    """What made the vectors."""
    keyframes: tuple[IndexedKeyframe, ...]

    @property
    def aspect(self) -> float | None:
        """The width of its pictures in units of their height."""
        first = self.keyframes[0].record if self.keyframes else None
        return round(first.width_px / first.height_px, 2) if first else None


def video_of_run(run: Run, reviewed: ReviewedTexts) -> IndexedVideo:
    """Return the video of a run folder, with the texts as people have corrected them.

    Raises:
        StoreError: the run is damaged.
    """
    manifest = run.manifest
    records = [frame.record for frame in run.keyframes]
    try:
        vectors = keyframe_vectors(run, records)
    except ValueError as exc:
        raise StoreError(f"{run.folder}: damaged ({exc}). Extract the video again.") from exc
    video = manifest.video if manifest else None
    frames = _keyframes(records, reviewed.descriptions(run), words_by_keyframe(run), text_by_keyframe(run), vectors, video)
    name = manifest.video_id if manifest else run.folder.resolve().name
    embedder = run.embeddings.model if vectors and run.embeddings else None
    return IndexedVideo(name, video.path if video else str(run.folder), None, (), embedder, frames)


def videos_of_shard(address: str, info: ShardInfo, reviewed: ReviewedTexts) -> Iterator[IndexedVideo]:
    """Yield the videos of a shard of a data set, with the texts as people have corrected them; errors as of `samples_in`."""
    for sample in samples_in(address, info):
        yield _video_of_sample(reviewed(ExportSource(address), sample))


def _video_of_sample(sample: VideoSample) -> IndexedVideo:
    video = sample.video
    records = [frame.keyframe for frame in sample.frames]
    descriptions = {frame.keyframe.id: frame.description for frame in sample.frames if frame.description}
    around = words_around([record.time_s for record in records], choose_subtitles(video.subtitles, video.info.get("language")))
    words = {record.id: said for record, said in zip(records, around, strict=True) if said}
    text = {frame.keyframe.id: plain_lines(frame.text) for frame in sample.frames if frame.text}
    vectors = [frame.vector for frame in sample.frames if frame.vector is not None] or None
    domains = tuple(dict.fromkeys([*video.labels, *video.verticals, *([video.topic] if video.topic else [])]))
    return IndexedVideo(
        video.title or video.key,
        video.source,
        video.youtube_id,
        domains,
        video.backends.get("embedder") if vectors else None,
        _keyframes(records, descriptions, words, text, vectors, video.file),
    )


def _keyframes(
    records: Sequence[Keyframe],
    descriptions: Mapping[str, Description],
    words: Mapping[str, str],
    text: Mapping[str, Sequence[str]],
    vectors: Sequence[npt.NDArray[np.float32]] | None,
    video: VideoInfo | None,
) -> tuple[IndexedKeyframe, ...]:
    spans = _spans([record.time_s for record in records], video)
    return tuple(
        IndexedKeyframe(
            record,
            *span,
            _texts(descriptions.get(record.id), words.get(record.id, ""), " · ".join(text.get(record.id, ()))),
            has_people(record.detections or ()),
            vectors[place] if vectors else None,
        )
        for place, (record, span) in enumerate(zip(records, spans, strict=True))
    )


def _spans(times_s: Sequence[float | None], video: VideoInfo | None) -> list[tuple[float | None, float | None]]:
    """Return what each keyframe stands for: from half way to the one before it to half way to the one after it."""
    known = sorted({time for time in times_s if time is not None})
    if not known:
        return [(None, None)] * len(times_s)
    first, last = (video.start_time_s, video.end_time_s) if video else (known[0], known[-1])
    edges = [min(first, known[0]), *((one + other) / 2 for one, other in pairwise(known)), max(last, known[-1])]
    spans = dict(zip(known, pairwise(edges), strict=True))
    return [(None, None) if time is None else spans[time] for time in times_s]


def _texts(description: Description | None, words: str, text: str) -> KeyframeTexts:
    if description is None:
        return KeyframeTexts("", "", "", "", "", "", words[:MOST_LETTERS], text[:MOST_LETTERS])
    famous = description.famous
    unknown = famous.undetermined
    said = {name: "" if name in unknown else getattr(famous, name) for name in type(famous).model_fields}
    objects = ", ".join(said.pop("objects") or ())
    caption = " ".join(one for one in (description.caption, description.dense_caption, *rich_texts(description.rich)) if one)
    texts = KeyframeTexts(caption=caption, objects=objects, words=words, text=text, **said)
    return KeyframeTexts(*(one[:MOST_LETTERS] for one in texts))


def stamp_of_run(run: Run) -> str:
    """Return a text that changes when the run does, or what people have corrected in it."""
    names = (store.MANIFEST, store.KEYFRAMES, store.DESCRIPTIONS, store.JOURNAL, store.WORDS, store.TEXT, store.EMBEDDINGS)
    return " ".join([*(_state(run.folder / name) for name in names), *map(state_of_log, logs_of_run(run))])


def state_of_log(path: Path) -> str:
    """Return a text that changes when a log of a review does; SQLite keeps what is new in a second file."""
    return f"{_state(path)}+{_state(path.with_name(f'{path.name}-wal'))}"


def _state(path: Path) -> str:
    try:
        state = path.stat(follow_symlinks=False)
    except OSError:
        return "-"
    return f"{state.st_ino}.{state.st_mtime_ns}.{state.st_size}" if state.st_size else "-"
