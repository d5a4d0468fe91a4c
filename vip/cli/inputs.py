"""From what the user typed to videos and their run folders."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from vip.errors import InputError


def find_videos(given: Sequence[Path]) -> list[Path]:
    """The files as they are, and the videos of each folder in name order. A file that is missing stays in the list.

    Raises:
        InputError: a folder without videos.
    """
    from vip.store import is_folder
    from vip.video import VIDEO_SUFFIXES

    found: list[Path] = []
    for path in given:
        if not is_folder(path):
            found.append(path)
            continue
        try:
            videos = sorted(file for file in path.iterdir() if file.suffix.lower() in VIDEO_SUFFIXES and file.is_file())
        except OSError as exc:
            raise InputError(f"{path} cannot be read: {exc.strerror}.") from exc
        if not videos:
            raise InputError(f"{path} is a folder without videos. Give a video file, or a folder that holds some.")
        found.extend(videos)
    return list(dict.fromkeys(found))


def run_folders(videos: Sequence[Path], out: Path | None, *, several: bool) -> dict[Path, Path]:
    """The run folder of each video: `out` itself for one, `out/NAME.vip` for several, `./NAME.vip` without `out`.

    Videos of the same name get the name of their folder in front, so that none is refused for another.
    """
    if out is not None and not several:
        return {videos[0]: out}
    base = out or Path()
    return {video: base / f"{name}.vip" for video, name in _names(videos).items()}


def _names(videos: Sequence[Path]) -> dict[Path, str]:
    """The shortest name that no other has: `clip`, `a-clip.mp4` with the folder as typed, or with a hash of the whole path."""
    names = {video: video.stem for video in videos}
    for longer in (_with_folder, _with_hash):
        counts = Counter(names.values())
        names = {video: name if counts[name] == 1 else longer(video) for video, name in names.items()}
    return names


def _with_folder(video: Path) -> str:
    return "-".join([*[part for part in video.parent.parts if part not in {"/", "..", "."}], video.name])


def _with_hash(video: Path) -> str:
    return f"{_with_folder(video)}-{hashlib.sha256(os.fsencode(video.absolute())).hexdigest()[:8]}"
