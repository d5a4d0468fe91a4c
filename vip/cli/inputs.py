"""From what the user typed to videos and their run folders."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vip.video import Source


def find_videos(given: Sequence[str]) -> list[Source]:
    """The files and addresses as they are, and the videos of each folder in name order. A file that is missing stays in the list.

    A folder that holds pictures and no videos is one video, and so are all pictures that are named.

    Raises:
        InputError: a folder with neither.
    """
    from vip.store import is_folder
    from vip.video.source import FileSource, contents, is_picture, pictures, source_of

    named = [Path(name) for name in given if os.path.isfile(name) and is_picture(Path(name))]  # noqa: PTH113 - for names that are too long
    found: list[Source] = []
    for name in given:
        path = Path(name)
        if len(named) > 1 and path in named:
            found.append(pictures(named))
            continue
        videos, _ = contents(path) if is_folder(path) else ([], [])
        found.extend(map(FileSource, videos) if videos else [source_of(name)])
    return list(dict.fromkeys(found))


def from_folder(video: Source, given: Sequence[str]) -> bool:
    """Whether the video was not named itself, but lies in a folder that was."""
    from vip.video.source import FileSource

    return isinstance(video, FileSource) and video.path not in map(Path, given)


def run_folders(videos: Sequence[Source], out: Path | None, *, several: bool) -> dict[Source, Path]:
    """The run folder of each video: `out` itself for one, `out/NAME.vip` for several, `./NAME.vip` without `out`.

    Videos of the same name get the name of their folder in front, so that none is refused for another.
    """
    if out is not None and not several:
        return {videos[0]: out}
    base = out or Path()
    return {video: base / f"{name}.vip" for video, name in _names(videos).items()}


def _names(videos: Sequence[Source]) -> dict[Source, str]:
    """The shortest name that no other has: `clip`, `a-clip.mp4` with the folder as typed, or with a hash of the whole path."""
    names = {video: video.stem for video in videos}
    for longer in (_with_folder, _with_hash):
        counts = Counter(names.values())
        names = {video: name if counts[name] == 1 else longer(video) for video, name in names.items()}
    return names


def _with_folder(video: Source) -> str:
    where = Path(str(video)).parent.parts
    return "-".join([*[part for part in where if part not in {"/", "..", ".", "http:", "https:"}], video.name])


def _with_hash(video: Source) -> str:
    return f"{_with_folder(video)}-{hashlib.sha256(os.fsencode(video.identity)).hexdigest()[:8]}"
