"""Frames of videos for tasks over videos: chosen once, kept as a run folder, and shown to every engine.

In: a video file or a run folder, how many frames, and by whom they are chosen. Out: a run folder whose keyframes are these frames. The same
request later returns the folder as it is. `vip` chooses as `vip extract -n N` does; `even` takes N evenly spaced frames, what a model sees
that gets no help: the difference of the two scores is what choosing is worth.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b, sha256
from pathlib import Path

from vip import files, pipeline, store
from vip.config import ExtractSettings, FrameChooser, SampleSettings
from vip.download.sources import resolve_source
from vip.errors import InputError, UsageError
from vip.extraction.reselection import video_of
from vip.records import Manifest
from vip.store import Run, load_run
from vip.tasks.files import MOST_NAME_BYTES, draw_samples
from vip.tasks.records import Sample, SamplePicture
from vip.tasks.task import SampleSource, Task
from vip.untrusted import one_line
from vip.video import VIDEO_SUFFIXES, FileSource, Source
from vip.wording import option

DEFAULT_FRAMES = 8
LONGEST_SUFFIX = max(map(len, VIDEO_SUFFIXES))
MOST_KNOWN = 1000  # clips whose pictures are remembered: questions about one usually follow each other
EVENLY_SPACED = "evenly spaced"


@dataclass(frozen=True, slots=True)
class ShownFrames:
    """The pictures that a model sees of a video, in time order."""

    pictures: tuple[SamplePicture, ...]
    chosen: str
    """By what: `vip algorithm1, classic`, `evenly spaced`."""


@dataclass(slots=True)
class VideoFrames:
    """Frames of videos by their name, chosen once a video.

    Args:
        folders: hold `NAME/` (a run folder) or `NAME.mp4`.
        settings: how many frames, by whom they are chosen, and where they are kept.
        places: where a benchmark keeps a video below its folder, as `1164/3238737531`.
        advice: the end of the message that a video is missing.
    """

    folders: Sequence[Path]
    settings: SampleSettings
    places: Mapping[str, str] = field(default_factory=dict)
    advice: str = "Give the folder that has it."
    _known: dict[tuple[str, float | None, float | None], ShownFrames] = field(default_factory=dict)

    def of_video(self, video: str, start_s: float | None = None, end_s: float | None = None) -> ShownFrames:
        """Return the frames of a video, or of a clip of it.

        Raises:
            InputError: it is in none of the folders, or cannot be read.
            StoreError: its run folder is damaged, or the folder for frames cannot be written.
            UsageError: there is a link in the place of a folder for frames that the user did not name.
        """
        clip = video, start_s, end_s
        if clip not in self._known:
            if len(self._known) == MOST_KNOWN:
                self._known.clear()
            self._known[clip] = self._choose(self.find(video), start_s, end_s)
        return self._known[clip]

    def _choose(self, path: Path, start_s: float | None, end_s: float | None) -> ShownFrames:
        settings = self.settings
        if path.is_dir() and settings.frames is None and settings.frames_by is None:
            shown = show_frames(load_run(path))
            inside = tuple(picture for picture in shown.pictures if _is_inside(picture.time_s, start_s, end_s))
            return replace(shown, pictures=inside)
        count, by, kept_in = settings.frames or DEFAULT_FRAMES, settings.frames_by or "vip", settings.frames_folder
        if "frames_folder" not in settings.model_fields_set:
            kept_in = unlinked_frames(kept_in)
        return show_frames(choose_frames(path, count, by, kept_in=kept_in, start_s=start_s, end_s=end_s))

    def find(self, video: str) -> Path:
        """Return the run folder or the file of a video.

        Raises:
            InputError: it is in none of the folders, or its run folder is a link, which whoever made the folder may have put there.
        """
        is_short = len(video.encode(errors="replace")) + LONGEST_SUFFIX <= MOST_NAME_BYTES
        is_name = Path(video).name == video and video not in {"", ".", ".."} and is_short
        name = video if is_name else None
        for folder in self.folders:
            for stem in filter(None, (name, self.places.get(video))):
                if ((run := folder / stem) / store.KEYFRAMES).is_file():
                    if not files.lies_in(run, folder):
                        raise InputError(f"{run} is a link, and vip follows none to a run. Copy the run folder there.")
                    return run
                for suffix in sorted(VIDEO_SUFFIXES):
                    if (path := folder / f"{stem}{suffix}").is_file():
                        return path
        raise InputError(
            f"There is no run folder and no video {one_line(video)[:60]} in {', '.join(map(str, self.folders))}. {self.advice}"
        )


def make_samples(task: Task, source: SampleSource) -> Iterable[Sample]:
    """Return the samples of a task: as many as the settings say, with frames where they name the folder of the videos.

    Raises:
        UsageError: frames are asked for, and the task shows none.
        InputError, StoreError: as of the task, and of its videos.
    """
    settings = source.settings
    if settings.subtitles is not None and task.info.suite != "value":
        raise UsageError(f"{task.name} has no subtitles. Leave {option('subtitles')} out.")
    for name in ("videos", "frames", "frames_by"):
        if getattr(settings, name) is not None and not task.info.over_videos:
            raise UsageError(f"{task.name} shows no frames of videos. Leave {option(name)} out.")
    for name, lacks in (
        ("chunker", "makes no blanks of captions"),
        ("available", "makes no blanks of captions"),
        ("labels", "takes no labels"),
    ):
        if getattr(settings, name) is not None and name not in task.info.settings:
            raise UsageError(f"{task.name} {lacks}. Leave {option(name)} out.")
    if settings.videos is not None and not settings.videos.is_dir():
        raise InputError(f"{settings.videos} is no folder. Give the folder of the videos, or of their run folders.")
    samples = draw_samples(task.samples(source), settings.most, settings.seed)
    return with_frames(samples, VideoFrames((settings.videos,), settings)) if settings.videos else samples


def with_frames(samples: Iterable[Sample], frames: VideoFrames) -> Iterator[Sample]:
    """Yield the samples with the frames of their videos, or of their clips, in front of what they show."""
    for sample in samples:
        shown = frames.of_video(sample.clip or sample.video, sample.start_s, sample.end_s)
        yield sample.model_copy(update={"context": (*shown.pictures, *sample.context), "frames_chosen": shown.chosen})


def introduce_frames(sample: Sample) -> str:
    """Return the sentence of a prompt about the frames of a video that are shown."""
    count = sum(isinstance(piece, SamplePicture) for piece in sample.context)
    if not count:
        return "You see nothing of the video: answer by the words alone."
    return f"You see {count} frame{'s' if count > 1 else ''} of a video, in order of time."


def choose_frames(
    video: Path, count: int, by: FrameChooser, *, kept_in: Path, start_s: float | None = None, end_s: float | None = None
) -> Run:
    """Return a run folder with so many frames of a video; one that is there already is returned as it is.

    Args:
        video: a video file, or the folder of a run. Of a run the same number of keyframes is taken as they are, another number is
            selected again from its candidates, and evenly spaced frames are taken from its video.
        count: the number of frames; a shorter video gives fewer.
        kept_in: folder for the run folders.
        start_s, end_s: of a clip; a clip of a run is chosen from its video.

    Raises:
        InputError: the video cannot be read, or that of a run is gone.
        StoreError: a folder is damaged or cannot be written.
        UsageError: there is a link in the place of the run folder.
    """
    run = load_run(video) if video.is_dir() else None
    manifest = run.manifest if run else None
    folder = _folder(video, count, by, (start_s, end_s), kept_in)
    if run is not None and by == "vip" and start_s is None and end_s is None:
        if len(run.keyframes) == count and not _is_evenly_spaced(manifest):
            return run
        return pipeline.reselect(run, out=folder, keyframes=count, overwrite=True)
    source: Source = FileSource(video)
    if run is not None:
        found = video_of(manifest, None) if manifest else None
        if found is None:
            raise InputError(f"{video} was made elsewhere, so its video is not opened. Give the folder of the video instead.")
        source = found
    settings = ExtractSettings(keyframes=count, start=start_s, end=end_s)
    if by == "even":
        settings = settings.model_copy(update={"sampler": "uniform", "pruner": "none"})
    return pipeline.extract(resolve_source(source), out=folder, settings=settings, overwrite=True)


def show_frames(run: Run) -> ShownFrames:
    """Return the keyframes of a run as pictures of a sample, with the SHA-256 of each file."""
    pictures = tuple(
        SamplePicture(source=str(run.folder), keyframe_id=frame.id, time_s=frame.time_s, sha256=sha256(frame.data).hexdigest())
        for frame in run.keyframes
    )
    manifest = run.manifest
    if manifest is None:
        return ShownFrames(pictures, "pictures of a folder")
    if _is_evenly_spaced(manifest):
        return ShownFrames(pictures, EVENLY_SPACED)
    return ShownFrames(pictures, f"vip {manifest.backends.get('pruner', '')}, {manifest.backends.get('embedder', '')}")


def _is_evenly_spaced(manifest: Manifest | None) -> bool:
    return manifest is not None and (manifest.backends.get("sampler"), manifest.backends.get("pruner")) == ("uniform", "none")


def _is_inside(time_s: float | None, start_s: float | None, end_s: float | None) -> bool:
    return time_s is None or (start_s or 0.0) <= time_s <= (math.inf if end_s is None else end_s)


def _folder(video: Path, count: int, by: FrameChooser, clip: tuple[float | None, float | None], kept_in: Path) -> Path:
    """Return the run folder for these frames; videos of one name in two folders have one each."""
    place = blake2b(os.fsencode(video.absolute().parent), digest_size=4).hexdigest()
    times = "" if clip == (None, None) else "-" + "-".join("" if time_s is None else f"{time_s:g}s" for time_s in clip)
    return unlinked_frames(kept_in / f"{video.stem}-{place}{times}-{by}-{count}.vip")


def unlinked_frames(folder: Path) -> Path:
    """Return a folder for frames that the user did not name; errors as of `store.unlinked`."""
    return store.unlinked(folder, named_by=f"{option('frames_folder')} of `vip samples`")
