"""What an agent may name: files inside the folders that the server was started for, and runs that the server made.

In: a text that an agent wrote. Out: a path without links that lies inside a root. Names are data: a file may be called anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Literal

from vip.errors import InputError, UsageError
from vip.untrusted import one_line

RUN_NAME = re.compile(r"run-[0-9a-f]{12}")
"""Of the runs that the server makes; no file name of others stands in it."""
ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
MOST_LETTERS = 4096
MOST_SHOWN = 200  # letters of a name in a message


@dataclass(frozen=True, slots=True)
class Named:
    """What an agent named."""

    kind: Literal["video", "run", "own run"]
    path: Path


@dataclass(frozen=True, slots=True)
class Roots:
    """The folders that may be read, and the folder of the server's own runs."""

    folders: tuple[Path, ...]
    work: Path

    def find(self, text: str) -> Named:
        """Return the video or the run that is meant.

        Raises:
            UsageError: it is an address, or does not lie inside a root.
            InputError: there is no such file.
        """
        if RUN_NAME.fullmatch(text):
            path = self.work / text
            if not path.is_dir() or path.is_symlink():
                raise InputError(f"There is no run {text} here. Ask for keyframes of the video first.")
            return Named("own run", path)
        path = self._resolve(text)
        if path.is_file():
            return Named("video", path)
        if path.is_dir():
            return Named("run", path)
        raise InputError(f"{shown(text)} is neither a video file nor a run folder.")

    def _resolve(self, text: str) -> Path:
        if len(text) > MOST_LETTERS or "\0" in text or not text.strip():
            raise UsageError("The path is empty, too long, or holds a character that no path has. Give one inside the roots.")
        if ADDRESS.match(text):
            raise UsageError(f"{shown(text)} is an address, and this server reads files inside its roots only.")
        given = PurePath(text)
        if ".." in given.parts:
            raise UsageError(f"{shown(text)} has .. in it. Give the path inside the roots without it.")
        found = [path for folder in self.folders if (path := _real(folder / given)) is not None]
        inside = [path for path in found if any(path.is_relative_to(folder) for folder in self.folders)]
        if inside:
            return inside[0]
        if found or given.is_absolute():
            raise UsageError(f"{shown(text)} does not lie inside the roots of this server, or leads out of them by a link.")
        raise InputError(f"There is no {shown(text)} inside the roots of this server.")


def real_roots(folders: Sequence[Path]) -> tuple[Path, ...]:
    """Return the roots without links, each once.

    Raises:
        InputError: one is missing or no folder.
    """
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"{one_line(str(folder))} is not a folder. Give one whose videos an agent may see.")
    return tuple(dict.fromkeys(folder.resolve() for folder in folders))


def shown(text: str) -> str:
    """Return a name for a message: on one line, and not longer than a name is."""
    line = one_line(text)
    return f'"{line}"' if len(line) <= MOST_SHOWN else f'"{line[:MOST_SHOWN]}…"'


def _real(path: Path) -> Path | None:
    """Return the path without links; None where there is nothing, or links in a circle."""
    try:
        return path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return None
