"""Videos that the user named, and their run folders."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from vip.errors import InputError

if TYPE_CHECKING:
    from vip.video import Source


class FoundInputs(NamedTuple):
    """The videos that were named, and how many files of the named folders are left out."""

    videos: list[Source]
    pictures: int
    """How many lie beside videos."""
    links: int
    """How many lead out of the folder."""


def find_videos(given: Sequence[str], *, recursive: bool = False) -> FoundInputs:
    """Return the videos that the arguments name.

    Files and addresses are taken as they are, and of a folder its videos in name order. A file that is missing stays in the list. A
    folder that holds pictures and no videos is one video, and so are all pictures that are named.

    Args:
        recursive: look into folders inside folders; there every folder of pictures is a video of its own.

    Raises:
        InputError: a folder has neither.
    """
    from vip.download.sources import resolve_source
    from vip.store import is_folder
    from vip.video.source import is_picture, pictures, source_of

    named = [Path(name) for name in given if os.path.isfile(name) and is_picture(Path(name))]  # noqa: PTH113 - for names that are too long
    found: list[Source] = []
    beside = links = 0
    for name in given:
        path = Path(name)
        if len(named) > 1 and path in named:
            found.append(pictures(named))
        elif is_folder(path):
            inside = _find_in_folder(path, recursive)
            found += inside.videos or [_picture_source(path)]
            beside, links = beside + inside.pictures, links + inside.links
        else:
            found.append(resolve_source(source_of(name)))
    return FoundInputs(list(dict.fromkeys(found)), beside, links)


def _picture_source(folder: Path) -> Source:
    """Return a folder without videos as one video of pictures.

    Raises:
        InputError: it has no pictures either.
    """
    from vip.video.source import source_of

    try:
        return source_of(folder)
    except InputError as exc:
        inside = any(path.is_dir() for path in folder.iterdir())
        raise InputError(f"{exc} Add -r to look into the folders in it." if inside else str(exc)) from exc


def _find_in_folder(folder: Path, recursive: bool) -> FoundInputs:
    """Return the videos of a folder. Folders that vip wrote are left out."""
    from vip.store import MANIFEST
    from vip.video.source import FileSource, contents, source_of

    videos, shown, links = contents(folder)
    found: list[Source] = list(map(FileSource, videos))
    beside = len(shown) if videos else 0
    if not recursive:
        return FoundInputs(found, beside, links)
    if shown and not videos:
        found.append(source_of(folder))
    for inside in sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink() and not path.name.startswith(".")):
        if not (inside / MANIFEST).exists():
            deeper = _find_in_folder(inside, recursive)
            found, beside, links = found + deeper.videos, beside + deeper.pictures, links + deeper.links
    return FoundInputs(found, beside, links)


def is_from_folder(video: Source, given: Sequence[str]) -> bool:
    """Return whether the video was found in a named folder and not named itself."""
    from vip.video.source import FileSource

    return isinstance(video, FileSource) and video.path not in map(Path, given)


def run_folders(videos: Sequence[Source], out: Path | None, *, several: bool) -> dict[Source, Path]:
    """Return the run folder of each video: `out` itself for one, `out/NAME.vip` for several, `./NAME.vip` without `out`.

    Videos of the same name get the name of their folder in front, so that each has a folder of its own.

    Raises:
        UsageError: a folder that was not named is a link.
    """
    from vip.store import unlinked

    if out is not None and not several:
        return {videos[0]: out}
    base = out or Path()
    return {video: unlinked(base / f"{name}.vip") for video, name in _unique_names(videos).items()}


def _unique_names(videos: Sequence[Source]) -> dict[Source, str]:
    """Return for each video its shortest name that no other has: `clip`, `a-clip.mp4` with its folder, or one with a hash of the path."""
    names = {video: video.stem for video in videos}
    for longer in (_name_with_folder, _name_with_hash):
        counts = Counter(names.values())
        names = {video: name if counts[name] == 1 else longer(video) for video, name in names.items()}
    return names


def _name_with_folder(video: Source) -> str:
    where = Path(str(video)).parent.parts
    return "-".join([*[part for part in where if part not in {"/", "..", ".", "http:", "https:"}], video.name])


def _name_with_hash(video: Source) -> str:
    return f"{_name_with_folder(video)}-{hashlib.sha256(os.fsencode(video.identity)).hexdigest()[:8]}"
