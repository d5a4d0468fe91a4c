"""The pictures that a model sees of a video: the keyframes of a run folder, or evenly spaced frames of a video file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from vip.errors import InputError
from vip.store import KEYFRAMES, load_run
from vip.tasks.records import SamplePicture
from vip.untrusted import one_line
from vip.video import VIDEO_SUFFIXES, FileSource, open_video

DEFAULT_FRAMES = 8
ItemT = TypeVar("ItemT")


class VideoPictures:
    """Pictures of videos by their id, chosen once a video.

    Args:
        folders: hold `<video>/` (a run folder) or `<video>.mp4`.
        places: where VidOR keeps a video, as `1164/3238737531`.
        frames: how many a video; None: all keyframes of a run, or 8 frames of a video file.
    """

    def __init__(self, folders: Sequence[Path], places: Mapping[str, str], frames: int | None) -> None:
        self.folders = tuple(folders)
        self.places = places
        self.frames = frames
        self._chosen: dict[str, tuple[SamplePicture, ...]] = {}

    def of_video(self, video: str) -> tuple[SamplePicture, ...]:
        """Return the pictures of a video in time order.

        Raises:
            InputError: it is in none of the folders, or cannot be read.
        """
        if video not in self._chosen:
            path = self._find(video)
            self._chosen[video] = _of_run(path, self.frames) if path.is_dir() else _of_file(path, self.frames or DEFAULT_FRAMES)
        return self._chosen[video]

    def _find(self, video: str) -> Path:
        name = video if Path(video).name == video and video not in {"", ".", ".."} else None
        stems = [stem for stem in (name, self.places.get(video)) if stem]
        for folder in self.folders:
            for stem in stems:
                if (folder / stem / KEYFRAMES).is_file():
                    return folder / stem
                for suffix in sorted(VIDEO_SUFFIXES):
                    if (path := folder / f"{stem}{suffix}").is_file():
                        return path
        raise InputError(
            f"There is no run folder and no video {one_line(video)[:60]} in {', '.join(map(str, self.folders))}."
            " Give the folder, and VidOR's map of paths where it keeps VidOR's folders."
        )


def evenly_spaced(items: Sequence[ItemT], count: int) -> list[ItemT]:
    """Return the items in the middle of `count` equal parts; all of them where there are no more."""
    if count >= len(items):
        return list(items)
    return [items[(2 * part + 1) * len(items) // (2 * count)] for part in range(count)]


def _of_run(folder: Path, frames: int | None) -> tuple[SamplePicture, ...]:
    keyframes = load_run(folder).keyframes
    return tuple(
        SamplePicture(source=str(folder), keyframe_id=keyframe.id, time_s=keyframe.time_s, sha256=hashlib.sha256(keyframe.data).hexdigest())
        for keyframe in evenly_spaced(keyframes, frames or len(keyframes))
    )


def _of_file(path: Path, frames: int) -> tuple[SamplePicture, ...]:
    with open_video(FileSource(path)) as video:
        chosen = evenly_spaced(video.index.shown_pts.tolist(), frames)
        return tuple(
            SamplePicture(source=str(path), pts=pts, time_base=video.time_base, time_s=float(pts * video.time_base)) for pts in chosen
        )
