"""From what the user typed to videos and their run folders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from vip.errors import InputError


def find_videos(given: Sequence[Path]) -> list[Path]:
    """The files as they are, and the videos of each folder in name order. A file that is missing stays in the list.

    Raises:
        InputError: a folder without videos.
    """
    from vip.video import VIDEO_SUFFIXES

    found: list[Path] = []
    for path in given:
        if not path.is_dir():
            found.append(path)
            continue
        videos = sorted(file for file in path.iterdir() if file.suffix.lower() in VIDEO_SUFFIXES and file.is_file())
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
    stems = Counter(video.stem for video in videos)
    base = out or Path()
    return {video: base / f"{_name(video, unique=stems[video.stem] == 1)}.vip" for video in videos}


def _name(video: Path, *, unique: bool) -> str:
    return video.stem if unique else "-".join([*[part for part in video.parent.parts if part not in {"/", "..", "."}], video.name])
