"""One video with its keyframes, of a run folder, a part or a shard.

In: a run, and where they are known, its item of a list and the downloaded video. Out: a `VideoSample`, whole in memory: picture files,
vectors, descriptions. Its ids and names are safe as names of files; no text in it holds a login.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import count
from pathlib import PurePath
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, Field

from vip import store
from vip.dataset.items import DownloadedVideo, ItemKind, ListItem
from vip.dataset.sanitize import KEY, is_plain_name, json_value, safe_key, writable
from vip.dataset.subtitles import read_subtitles, subtitles_of
from vip.errors import InputError, StoreError
from vip.records import CandidateCounts, Description, Failure, Keyframe, KeyframeText, Manifest, Pixels, Record, Time, VideoInfo
from vip.store import KeyframePicture, Run
from vip.wording import option

Vector = npt.NDArray[np.float32]  # (D,)


def _key(text: str) -> str:
    if not KEY.fullmatch(text):
        raise ValueError("a key has letters, digits and ._- only, at most 100")
    return text


class VideoRow(Record):
    """A video without its keyframes."""

    key: Annotated[str, AfterValidator(_key)]
    """Unique in the data set, and the `video_id` of its keyframes."""
    kind: ItemKind
    source: str
    """An id, a path, or an address without login and query."""
    where: str | None = None
    """Its place in the list; None for a run folder."""
    youtube_id: str | None = None
    title: str | None = None
    duration_s: Time | None = None
    width_px: Pixels | None = None
    height_px: Pixels | None = None
    codec: str | None = None
    labels: tuple[str, ...] = ()
    verticals: tuple[str, ...] = ()
    topic: str | None = None
    info: dict[str, Any] = Field(default_factory=dict)
    """What else its host says."""
    subtitles: dict[str, str] = Field(default_factory=dict)
    """Language -> WebVTT."""
    file: VideoInfo | None = None
    """What its container says; None for pictures that come from no video."""
    counts: CandidateCounts | None = None
    notes: tuple[str, ...] = ()
    backends: dict[str, str] = Field(default_factory=dict)
    settings: dict[str, Any] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    device: str | None = None
    seconds: dict[str, float] = Field(default_factory=dict)
    captioning: dict[str, Any] | None = None
    """Settings of the descriptions; None where there are none."""
    created_utc: str | None = None

    def manifest(self) -> Manifest | None:
        """Return the manifest of a run folder; None for pictures that come from no video."""
        if self.file is None:
            return None
        shared = {name: getattr(self, name) for name in ("settings", "backends", "versions", "notes", "counts", "captioning", "seconds")}
        made = {"device": self.device or "", "created_utc": self.created_utc or ""}
        return Manifest(command="extract", video_id=self.key, video=self.file, **shared, **made)


@dataclass(frozen=True, slots=True, eq=False)
class KeyframeRow:
    """A keyframe with its picture, vector and description."""

    keyframe: Keyframe
    """`image_path` is `keyframes/NAME`."""
    picture: bytes
    """The bytes of the file."""
    vector: Vector | None
    """Of the embedder that chose the keyframes."""
    description: Description | None = None
    failure: Failure | None = None
    """Why it has no description; None also where none was asked for."""
    text: KeyframeText | None = None
    """The text that a program read in the picture; None where nobody read it."""

    @property
    def name(self) -> str:
        """The name of the picture's file."""
        return PurePath(self.keyframe.image_path).name

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KeyframeRow):
            return NotImplemented
        names = ("keyframe", "picture", "description", "failure", "text")
        is_same = self.vector is other.vector or (
            self.vector is not None and other.vector is not None and np.array_equal(self.vector, other.vector, equal_nan=True)
        )
        return is_same and all(getattr(self, name) == getattr(other, name) for name in names)

    def __repr__(self) -> str:
        return f"KeyframeRow({self.keyframe.id!r}, picture={len(self.picture)} bytes)"


@dataclass(frozen=True, slots=True)
class VideoSample:
    """A video with its keyframes, at least one; all of them have a vector, or none has."""

    video: VideoRow
    frames: tuple[KeyframeRow, ...]

    def __post_init__(self) -> None:
        key, rows = self.video.key, [frame.keyframe for frame in self.frames]
        if not rows or len({row.id for row in rows}) < len(rows):
            raise ValueError(f"{key}: expected keyframes with an id each, got {len(rows)}")
        if any(row.video_id != key for row in rows):
            raise ValueError(f"{key}: has keyframes of another video")
        names = {frame.name for frame in self.frames if frame.keyframe.image_path == f"{store.PICTURES}/{frame.name}"}
        if len(names) < len(rows) or not all(map(is_plain_name, names)):
            raise ValueError(f"{key}: expected pictures keyframes/NAME with a plain name each")
        shapes = {None if frame.vector is None else frame.vector.shape for frame in self.frames}
        if len(shapes) > 1 or any(shape is not None and len(shape) != 1 for shape in shapes):
            raise ValueError(f"{key}: expected vectors (D,) for all or none, got {shapes}")
        for frame in self.frames:
            about = {frame.description and frame.description.keyframe_id, frame.failure and frame.failure.item} - {None}
            if frame.text and frame.text.keyframe_id != frame.keyframe.id:
                raise ValueError(f"{key}: expected the text of {frame.keyframe.id}, got that of {frame.text.keyframe_id}")
            if about - {frame.keyframe.id} or (frame.description and frame.failure):
                raise ValueError(f"{key}: expected a description of {frame.keyframe.id} or why there is none, got {about}")

    def __repr__(self) -> str:
        return f"VideoSample({self.video.key!r}, frames={len(self.frames)})"


# ---------------------------------------------------------------- from a run folder


def sample_of(run: Run, *, item: ListItem | None = None, fetched: DownloadedVideo | None = None) -> VideoSample:
    """Return a run with its pictures, vectors and descriptions; ids begin with the key of the item.

    Raises:
        StoreError: the run cannot be read, or is damaged.
        InputError: it has no keyframes.
    """
    if not run.keyframes:
        raise InputError(
            f"{run.folder} has no keyframes. Run `vip extract` with a lower {option('min_sharpness')} or {option('min_objects')}."
        )
    try:
        video = _video(run, item, fetched)
        vectors = keyframe_vectors(run, [picture.record for picture in run.keyframes])
        sample = VideoSample(video, tuple(_frames(run, video.key, vectors)))
    except ValueError as exc:
        raise StoreError(f"{run.folder}: damaged ({exc}). Run the same `vip extract` with {option('overwrite')} to make it again.") from exc
    return described(sample, run)


def described(sample: VideoSample, run: Run) -> VideoSample:
    """Return the sample with the descriptions that its run folder has now, and with the failures of the others."""
    ids = [picture.id for picture in run.keyframes]
    descriptions = {row.keyframe_id: row for row in run.descriptions}
    failures = {row.item: row for row in run.failures}
    frames = []
    for id_, frame in zip(ids, sample.frames, strict=True):
        row, why = descriptions.get(id_), failures.get(id_)
        description = writable(row.model_copy(update={"keyframe_id": frame.keyframe.id})) if row else None
        failure = writable(why.model_copy(update={"item": frame.keyframe.id})) if why and not row else None
        frames.append(replace(frame, description=description, failure=failure))
    manifest = run.manifest
    changed = {"captioning": json_value(manifest.captioning), "seconds": manifest.seconds} if manifest else {}
    return VideoSample(sample.video.model_copy(update=changed), tuple(frames))


def with_key(sample: VideoSample, key: str) -> VideoSample:
    """Return the sample under another key, with new ids."""

    def frame(number: int, row: KeyframeRow) -> KeyframeRow:
        name = f"{key}:{number:04d}"
        return replace(
            row,
            keyframe=row.keyframe.model_copy(update={"id": name, "video_id": key}),
            description=row.description and row.description.model_copy(update={"keyframe_id": name}),
            failure=row.failure and row.failure.model_copy(update={"item": name}),
            text=row.text and row.text.model_copy(update={"keyframe_id": name}),
        )

    video = sample.video.model_copy(update={"key": key})
    return VideoSample(video, tuple(frame(number, row) for number, row in enumerate(sample.frames, 1)))


def _video(run: Run, item: ListItem | None, fetched: DownloadedVideo | None) -> VideoRow:
    manifest, about = run.manifest, {}
    file = manifest.video if manifest else None
    if manifest and file:
        about = {name: getattr(manifest, name) for name in ("counts", "notes", "backends", "settings", "versions", "device", "seconds")}
        about |= {name: getattr(file, name) for name in ("width_px", "height_px", "codec")}
        about |= {"captioning": manifest.captioning, "created_utc": manifest.created_utc}
    source = item.source if item else file.path if file else str(run.folder.absolute())
    kind = item.kind if item else "address" if "://" in source else "file"
    if item:
        about |= {"where": item.where, "labels": item.labels, "verticals": item.verticals, "topic": item.topic}
    if fetched:
        about |= {"title": fetched.title, "info": fetched.info, "subtitles": read_subtitles(fetched)}
    lengths = (file and file.duration_s_from_header, fetched and fetched.duration_s, file and file.end_time_s, item and item.duration_s)
    about |= {
        "key": item.key if item else safe_key((manifest and manifest.video_id) or run.folder.name),
        "kind": kind,
        "source": source,
        "youtube_id": (fetched and fetched.youtube_id) or (source if kind == "youtube" else None),
        "duration_s": next((length for length in lengths if length), None),
        # not the path of a downloaded file, which was deleted
        "file": file.model_copy(update={"path": source}).model_dump(mode="json") if file else None,
    }
    if (words := run.words) and not about.get("subtitles"):
        about["subtitles"] = subtitles_of(words)
    counts = about.get("counts")
    return VideoRow(**json_value({**about, "counts": counts and counts.model_dump()}, secret_queries=kind == "address"))


def _frames(run: Run, key: str, vectors: list[Vector] | None) -> list[KeyframeRow]:
    frames, taken, texts = [], set(), {row.keyframe_id: row for row in run.texts}
    for number, picture in enumerate(run.keyframes, 1):
        name = PurePath(picture.record.image_path).name
        if not is_plain_name(name) or name in taken:
            suffix = PurePath(name).suffix.lower()
            name = next(free for place in count(number) if (free := f"{place:04d}{suffix}") not in taken)
        taken.add(name)
        changed = {"id": f"{key}:{number:04d}", "video_id": key, "image_path": f"{store.PICTURES}/{name}"}
        row = writable(picture.record.model_copy(update=changed))
        text = texts.get(picture.id)
        text = writable(text.model_copy(update={"keyframe_id": row.id})) if text else None
        frames.append(KeyframeRow(row, _picture_bytes(picture), vectors[number - 1] if vectors else None, text=text))
    return frames


def _picture_bytes(picture: KeyframePicture) -> bytes:
    try:
        return picture.data
    except InputError as exc:
        raise StoreError(f"{exc} Run the same `vip extract` again.") from exc


def keyframe_vectors(run: Run, rows: list[Keyframe]) -> list[Vector] | None:
    """Return the vectors of the keyframes; None where the run has none.

    Raises:
        ValueError: the vectors do not fit the candidates.
    """
    if run.embeddings is None or not (run.folder / store.CANDIDATES).exists():
        return None
    wanted = {row.candidate for row in rows}
    places: dict[int, int] = {}
    place = 0
    try:
        for line in filter(bytes.strip, store.lines(run.folder / store.CANDIDATES)):  # takes a tenth of the time of whole records
            row = json.loads(line)
            if row["index"] in wanted:
                places[row["index"]] = place
            place += row["quality"] is not None
    except (KeyError, TypeError, RecursionError) as exc:
        raise ValueError(f"{store.CANDIDATES}: {exc!r}") from exc
    if place != len(run.embeddings):
        raise ValueError(f"{len(run.embeddings)} vectors of {place} candidates that could be decoded")
    if any(row.candidate not in places for row in rows):
        return None
    return [np.array(run.embeddings.image[places[row.candidate or 0]], np.float32) for row in rows]
