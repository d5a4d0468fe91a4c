"""The keyframes of run folders and data sets with their descriptions, video by video."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from vip.dataset.items import UNKNOWN_VERTICAL
from vip.dataset.rows import VideoSample
from vip.dataset.shards import read_shards, samples_in
from vip.errors import InputError
from vip.export.sources import ExportSource, sources_of
from vip.records import Description
from vip.store import Run
from vip.tasks.records import DescriptionText, SamplePicture
from vip.wording import call

Groups = dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class DescribedFrame:
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
    keyframes: Sequence[DescribedFrame]
    groups: Groups = field(default_factory=dict)


def described_videos(paths: Sequence[str]) -> Iterator[DescribedVideo]:
    """Yield the videos of runs and data sets, one in memory at a time; those without descriptions are left out.

    Raises:
        InputError: there is none at all.
        StoreError: a run or a shard is damaged.
    """
    names: Counter[str] = Counter()
    for source in sources_of(paths):
        for video in _videos_of(source):
            if video.keyframes:
                names[video.name] += 1
                name = video.name if names[video.name] == 1 else f"{video.name}-{names[video.name]}"  # a second run of one video
                yield DescribedVideo(name, video.keyframes, video.groups)
    if not names:
        raise InputError(f"{', '.join(paths)}: no keyframe has a description yet. Run {call('caption', paths[0])} first.")


def _videos_of(source: ExportSource) -> Iterator[DescribedVideo]:
    if source.run:
        yield _video_of_run(Run(source.run.folder))  # one of its own: what it reads is not kept
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
        DescribedFrame(frame.id, frame.time_s, _text_of(said[frame.id]), lambda place=place: picture(place))  # type: ignore[misc]
        for place, frame in enumerate(run.keyframes)
        if frame.id in said
    ]
    return DescribedVideo(name, rows)


def _video_of_sample(sample: VideoSample) -> DescribedVideo:
    rows = [
        DescribedFrame(frame.keyframe.id, frame.keyframe.time_s, _text_of(frame.description))
        for frame in sample.frames
        if frame.description
    ]
    domains = tuple(name for name in sample.video.verticals if name != UNKNOWN_VERTICAL)
    return DescribedVideo(sample.video.key, rows, {"domain": domains} if domains else {})


def _text_of(description: Description) -> DescriptionText:
    return DescriptionText(famous=description.famous, dense_caption=description.dense_caption)
