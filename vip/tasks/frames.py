"""Frames of videos for tasks over videos: chosen once, kept as a run folder, and shown to every engine.

In: a video file or a run folder, how many frames, and by whom they are chosen. Out: a run folder whose keyframes are these frames. The same
request later returns the folder as it is. `vip` chooses as `vip extract -n N` does; `even` takes N evenly spaced frames, what a model sees
that gets no help: the difference of the two scores is what choosing is worth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from pathlib import Path

from vip import pipeline, store
from vip.config import ExtractSettings, FrameChooser, SampleSettings
from vip.download.sources import resolve_source
from vip.errors import InputError
from vip.extraction.reselection import video_of
from vip.records import Manifest
from vip.store import Run, load_run
from vip.tasks.records import SamplePicture
from vip.untrusted import one_line
from vip.video import VIDEO_SUFFIXES, FileSource, Source

DEFAULT_FRAMES = 8
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
    _known: dict[str, ShownFrames] = field(default_factory=dict)

    def of_video(self, video: str) -> ShownFrames:
        """Return the frames of a video.

        Raises:
            InputError: it is in none of the folders, or cannot be read.
            StoreError: its run folder is damaged, or the folder for frames cannot be written.
        """
        if video not in self._known:
            path = self._find(video)
            if path.is_dir() and self.settings.frames is None and self.settings.frames_by is None:
                run = load_run(path)
            else:
                run = choose_frames(
                    path, self.settings.frames or DEFAULT_FRAMES, self.settings.frames_by or "vip", kept_in=self.settings.frames_folder
                )
            self._known[video] = show_frames(run)
        return self._known[video]

    def _find(self, video: str) -> Path:
        name = video if Path(video).name == video and video not in {"", ".", ".."} else None
        for folder in self.folders:
            for stem in filter(None, (name, self.places.get(video))):
                if (folder / stem / store.KEYFRAMES).is_file():
                    return folder / stem
                for suffix in sorted(VIDEO_SUFFIXES):
                    if (path := folder / f"{stem}{suffix}").is_file():
                        return path
        raise InputError(
            f"There is no run folder and no video {one_line(video)[:60]} in {', '.join(map(str, self.folders))}. {self.advice}"
        )


def choose_frames(video: Path, count: int, by: FrameChooser, *, kept_in: Path) -> Run:
    """Return a run folder with so many frames of a video; one that is there already is returned as it is.

    Args:
        video: a video file, or the folder of a run. Of a run the same number of keyframes is taken as they are, another number is
            selected again from its candidates, and evenly spaced frames are taken from its video.
        count: the number of frames; a shorter video gives fewer.
        kept_in: folder for the run folders.

    Raises:
        InputError: the video cannot be read, or that of a run is gone.
        StoreError: a folder is damaged or cannot be written.
    """
    run = load_run(video) if video.is_dir() else None
    manifest = run.manifest if run else None
    if run is not None and by == "vip":
        if len(run.keyframes) == count and not _is_evenly_spaced(manifest):
            return run
        return pipeline.reselect(run, out=_folder(video, count, by, kept_in), keyframes=count, overwrite=True)
    source: Source = FileSource(video)
    if run is not None:
        found = video_of(manifest, None) if manifest else None
        if found is None:
            raise InputError(f"{video} was made elsewhere, so its video is not opened. Give the folder of the video instead.")
        source = found
    settings = ExtractSettings(keyframes=count, sampler="uniform", pruner="none") if by == "even" else ExtractSettings(keyframes=count)
    return pipeline.extract(resolve_source(source), out=_folder(video, count, by, kept_in), settings=settings, overwrite=True)


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


def _folder(video: Path, count: int, by: FrameChooser, kept_in: Path) -> Path:
    """Return the run folder for these frames; videos of one name in two folders have one each."""
    place = blake2b(str(video.absolute().parent).encode(), digest_size=4).hexdigest()
    return kept_in / f"{video.stem}-{place}-{by}-{count}.vip"
