"""Clips of a folder by the names that annotations call them; what a file of strangers calls a clip is never a path."""

from __future__ import annotations

from pathlib import Path

from vip import files
from vip.errors import InputError
from vip.report.video_link import PLAYED_SUFFIXES


def clips_in(folder: Path) -> dict[str, Path]:
    """Return the videos of a folder that a browser can play, by their names without suffix.

    Raises:
        InputError: the folder cannot be read.
    """
    try:
        names = files.names_in(folder)
    except OSError as exc:
        raise InputError(f"{folder} cannot be read as a folder of clips: {exc.strerror}. Give a folder.") from exc
    return {Path(name).stem: folder / name for name in sorted(names, reverse=True) if Path(name).suffix.lower() in PLAYED_SUFFIXES}


def check_clip(path: Path) -> bool:
    """Return whether the clip is still a file of its own, and no link to somewhere else."""
    return path.is_file() and not path.is_symlink()
