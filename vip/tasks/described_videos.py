"""The keyframes of run folders and data sets with their descriptions, video by video."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from vip.dataset.items import UNKNOWN_VERTICAL
from vip.dataset.rows import VideoSample
from vip.dataset.shards import read_shards, samples_in
from vip.errors import InputError
from vip.export.sources import ExportSource, sources_of
from vip.files import MOST_BYTES, read_named
from vip.records import Description
from vip.store import Run
from vip.tasks.records import DescriptionText, SamplePicture
from vip.wording import call

Groups = dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class DescribedKeyframe:
    """A keyframe of a video and what is said about it."""

    id: str
    time_s: float | None
    description: DescriptionText
    picture: Callable[[], SamplePicture] | None = None
    """Reads the picture; None in a data set, whose pictures lie in shards."""


@dataclass(frozen=True, slots=True)
class DescribedVideo:
    """A video whose keyframes are all described, in time order."""

    name: str
    keyframes: Sequence[DescribedKeyframe]
    groups: Groups = field(default_factory=dict)


def described_videos(paths: Sequence[str], labels: Path | None = None) -> Iterator[DescribedVideo]:
    """Yield the videos of runs and data sets, one in memory at a time; those without descriptions are left out.

    Args:
        labels: CSV file with a column `video` and one for each grouping; several values of a cell have semicolons between them.

    Raises:
        InputError: there is none at all, or the file of labels cannot be read.
        StoreError: a run or a shard is damaged.
    """
    known = read_labels(labels) if labels else {}
    names: Counter[str] = Counter()
    for source in sources_of(paths):
        for video in _videos_of(source):
            if video.keyframes:
                names[video.name] += 1
                name = video.name if names[video.name] == 1 else f"{video.name}-{names[video.name]}"  # a second run of one video
                yield DescribedVideo(name, video.keyframes, {**video.groups, **known.get(video.name, {})})
    if not names:
        raise InputError(f"{', '.join(paths)}: no keyframe has a description yet. Run {call('caption', paths[0])} first.")


def _videos_of(source: ExportSource) -> Iterator[DescribedVideo]:
    if source.run:
        yield _video_of_run(source.run)
        return
    for info in read_shards(source.address, lambda note: None):
        yield from map(_video_of_sample, samples_in(source.address, info))


def _video_of_run(run: Run) -> DescribedVideo:
    said = run.described
    name = run.manifest.video_id if run.manifest else run.folder.resolve().name

    def picture(place: int) -> SamplePicture:
        keyframe = run.keyframes[place]
        return SamplePicture(
            source=str(run.folder), keyframe_id=keyframe.id, time_s=keyframe.time_s, sha256=sha256(keyframe.data).hexdigest()
        )

    rows = [
        DescribedKeyframe(frame.id, frame.time_s, _text_of(said[frame.id]), lambda place=place: picture(place))  # type: ignore[misc]
        for place, frame in enumerate(run.keyframes)
        if frame.id in said
    ]
    return DescribedVideo(name, rows)


def _video_of_sample(sample: VideoSample) -> DescribedVideo:
    rows = [
        DescribedKeyframe(frame.keyframe.id, frame.keyframe.time_s, _text_of(frame.description))
        for frame in sample.frames
        if frame.description
    ]
    domains = tuple(name for name in sample.video.verticals if name != UNKNOWN_VERTICAL)
    return DescribedVideo(sample.video.key, rows, {"domain": domains} if domains else {})


def _text_of(description: Description) -> DescriptionText:
    return DescriptionText(famous=description.famous, dense_caption=description.dense_caption)


def read_labels(path: Path) -> dict[str, Groups]:
    """Return the groups of each video from a CSV file.

    Raises:
        InputError: it cannot be read, or has no column `video`.
    """
    try:
        text = read_named(path, most_bytes=MOST_BYTES).decode("utf-8-sig")
    except OSError as exc:
        raise InputError(f"{path} cannot be read: {exc.strerror or exc}. Check the path.") from exc
    except UnicodeDecodeError as exc:
        raise InputError(f"{path} is not UTF-8 text (byte {exc.start}). Save it as UTF-8.") from exc
    rows = csv.DictReader(text.splitlines())
    if "video" not in (rows.fieldnames or ()):
        raise InputError(f"{path} has no column video. Its first row must name the columns: video,domain,causal.")
    return {
        row["video"]: {
            key: values
            for key, cell in row.items()
            if key and key != "video" and (values := tuple(part.strip() for part in str(cell or "").split(";") if part.strip()))
        }
        for row in rows
    }
