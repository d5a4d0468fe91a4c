"""The source of one video as the user named it: a file, an address, or pictures in a row; and how it is known again later.

Nothing is decoded here. A source says what it is called, where it lies, and whether it has changed.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit

from vip.errors import InputError
from vip.files import leads_out, open_named
from vip.records import PICTURE_SUFFIXES
from vip.video.animated import is_animated, is_animated_webp

VIDEO_SUFFIXES = frozenset(
    {".3gp", ".apng", ".avi", ".divx", ".f4v", ".flv", ".gif", ".m2ts", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg"}
    | {".mts", ".mxf", ".ogm", ".ogv", ".ts", ".vob", ".webm", ".wmv"}
)
ANIMATED_SUFFIXES = frozenset({".png", ".webp"})  # of pictures, that may be animations as well
ADDRESS = re.compile(r"https?://", re.IGNORECASE)
SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
PATTERN = re.compile(r"%0?(\d*)d")
DIGEST = "sha256-"  # what begins the fragment that stands for a query
UNSAFE = re.compile(r"[\x00-\x1f/\\]")  # in a file name; what a server names must not lead to another folder


class FileState(NamedTuple):
    """Size and newest modification time; None where nobody says when it was changed."""

    size_bytes: int
    modified_ns: int | None


@dataclass(frozen=True)
class FileSource:
    """A local file. `called`: what its run folder and keyframes are named after, where that is not its name."""

    path: Path
    called: str | None = None

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def stem(self) -> str:
        """The name for the run folder and for the ids of keyframes."""
        stem = self.path.stem
        return self.called or (stem if stem.strip(".") else f"video{self.path.name}")  # of "..mp4" the stem is a dot

    @property
    def location(self) -> str:
        """The same file from any folder."""
        return str(self.path.absolute())

    @property
    def identity(self) -> str:
        """A text that no other source has. Never shown: it may hold secrets."""
        return self.location

    def state(self) -> FileState | None:
        """Return None where it cannot be asked."""
        try:
            stat = self.path.stat()
        except OSError:
            return None
        return FileState(stat.st_size, stat.st_mtime_ns)

    def sha256(self) -> str | None:
        """Return the hex digest of everything in it."""
        return sha256_of(self.path)

    def is_animated_webp(self) -> bool:
        """Return whether it is an animated WebP, which FFmpeg cannot decode."""
        try:
            with open_named(self.path) as file:
                return is_animated_webp(file)
        except OSError:
            return False

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True)
class AddressSource:
    """A video file behind http(s). What is shown and written down has neither login nor query, which may hold secrets."""

    address: str

    @property
    def name(self) -> str:
        last = unquote(urlsplit(self.address).path.rstrip("/").rpartition("/")[2])
        safe = UNSAFE.sub("_", last).lstrip(".").encode()[:120].decode(errors="ignore")
        return safe or urlsplit(self.address).hostname or "video"

    @property
    def stem(self) -> str:
        return Path(self.name).stem

    @property
    def location(self) -> str:
        parts = urlsplit(self.address)
        try:
            _ = parts.port
        except ValueError:  # it may be the beginning of a password that has a slash in it
            return f"{parts.scheme}://{parts.netloc.partition(':')[0]}:…"
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()

    @property
    def exact_location(self) -> str:
        """The same with a digest of the query, which may be all that tells one video from another."""
        parts = urlsplit(self.address)
        if parts.query:
            return f"{self.location}#{DIGEST}{hashlib.sha256(parts.query.encode()).hexdigest()[:16]}"
        return f"{self.location}#{parts.fragment}" if parts.fragment.startswith(DIGEST) else self.location

    @property
    def identity(self) -> str:
        return self.address

    def state(self) -> FileState | None:
        from vip.video.remote import Remote  # the network is asked only where somebody gave an address

        try:
            return Remote(self).state
        except InputError:
            return None

    def sha256(self) -> str | None:
        """Return None: for that it would have to be downloaded whole."""
        return None

    def __str__(self) -> str:
        return self.location


@dataclass(frozen=True, kw_only=True)
class DownloadedSource(FileSource):
    """A video behind an address, which lies whole in the cache, or is to be downloaded there.

    Args:
        address: as the user gave it.
        shown: what stands for it in a run, without secrets.
    """

    address: str
    shown: str

    @property
    def name(self) -> str:
        return f"{self.stem}{self.path.suffix}"

    @property
    def location(self) -> str:
        return self.shown

    @property
    def identity(self) -> str:
        return self.address

    def __str__(self) -> str:
        return self.shown.partition("#")[0]


@dataclass(frozen=True)
class PicturesSource:
    """Pictures that are one video, one after the other."""

    paths: tuple[Path, ...]
    given: Path
    """The folder, pattern or picture that the user named; for several pictures their folder."""
    stem: str

    @property
    def name(self) -> str:
        return self.given.name or self.stem

    @property
    def location(self) -> str:
        return str(self.given.absolute())

    @property
    def identity(self) -> str:
        return "\0".join([self.location, *(str(path.absolute()) for path in self.paths)])

    def state(self) -> FileState | None:
        try:
            stats = [path.stat() for path in self.paths]
        except OSError:
            return None
        return FileState(sum(stat.st_size for stat in stats), max(stat.st_mtime_ns for stat in stats))

    def sha256(self) -> str | None:
        """Return the hex digest of the digests of the pictures, in their order."""
        return hashlib.sha256(b"".join(bytes.fromhex(sha256_of(path)) for path in self.paths)).hexdigest()

    def __str__(self) -> str:
        return str(self.given)


Source: TypeAlias = FileSource | AddressSource | PicturesSource


def sha256_of(path: Path) -> str:
    """Return the hex digest of the whole file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def source_of(given: str | Path | Sequence[str | Path] | Source) -> Source:
    """Return the one video that is meant by a path, an address, a pattern like `frames/%04d.png`, or several pictures.

    Raises:
        InputError: an address of another kind, a pattern or a folder without pictures, pictures that are none.
    """
    if isinstance(given, FileSource | AddressSource | PicturesSource):
        return given
    if not isinstance(given, str | Path):
        return pictures([Path(path) for path in given])
    if isinstance(given, str) and ADDRESS.match(given):
        return AddressSource(given)
    path = Path(given)
    if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir() raises for a name that is too long
        return _folder_source(path)
    if os.path.exists(path):  # noqa: PTH110 - as above
        if not os.path.isfile(path):  # noqa: PTH113 - as above
            raise InputError(f"{path} is no regular file. Give a video file.")
        return PicturesSource((path,), path, path.stem) if is_picture(path) else FileSource(path)
    if isinstance(given, str) and (scheme := SCHEME.match(given)):
        place = given[scheme.end() :].rpartition("@")[2].partition("?")[0]  # without a login
        raise InputError(f"{scheme[0]}{place}: addresses of the kind {scheme[1]}:// are not read. Give an http(s) address or a file.")
    if PATTERN.search(path.name) and path.suffix.lower() in PICTURE_SUFFIXES:
        return _pattern_source(path)
    return FileSource(path)


def is_picture(path: Path) -> bool:
    """Return whether a file is named like a picture and is not an animation."""
    suffix = path.suffix.lower()
    return suffix in PICTURE_SUFFIXES and not (suffix in ANIMATED_SUFFIXES and is_animated(path))


def pictures(paths: Sequence[Path]) -> PicturesSource:
    """Return several pictures as one video; the order in which they were named does not matter.

    Raises:
        InputError: one is missing or no picture.
    """
    if not paths:
        raise InputError("No pictures were given.")
    for path in paths:
        if not os.path.isfile(path):  # noqa: PTH113 - as above
            raise InputError(f"{path} does not exist. Check the path.")
        if not is_picture(path):
            raise InputError(f"{path} is not a picture: only pictures can be put together to one video.")
    if len(paths) == 1:
        return PicturesSource(tuple(paths), paths[0], paths[0].stem)
    home = Path(os.path.commonpath([path.absolute().parent for path in paths]))
    here = paths[0].parent if all(path.parent == paths[0].parent for path in paths) else home
    return PicturesSource(tuple(dict.fromkeys(paths)), here, home.name or "pictures")


class HashedContents(NamedTuple):
    """Videos and pictures of a folder, each in name order."""

    videos: list[Path]
    pictures: list[Path]
    links: int
    """So many are left out, since they lead out of the folder: who names a folder allows what is in it, and no more."""


def contents(folder: Path) -> HashedContents:
    """Return the videos and the pictures of a folder.

    Raises:
        InputError: it cannot be read.
    """
    try:
        found = sorted(file for file in folder.iterdir() if file.suffix.lower() in VIDEO_SUFFIXES | PICTURE_SUFFIXES and file.is_file())
    except OSError as exc:
        raise InputError(f"{folder} cannot be read: {exc.strerror}.") from exc
    files = [file for file in found if not leads_out(file, folder)]
    shown = [file for file in files if is_picture(file)]
    return HashedContents([file for file in files if file not in set(shown)], shown, len(found) - len(files))


def _folder_source(folder: Path) -> PicturesSource:
    videos, shown, links = contents(folder)
    if videos:
        raise InputError(f"{folder} is a folder of videos. Give one of them.")
    if links and not shown:
        raise InputError(f"{folder} holds only links that lead out of it. Name what they lead to, or the links themselves.")
    if not shown:
        raise InputError(f"{folder} is a folder without videos or pictures. Give a video file, or a folder that holds some.")
    return PicturesSource(tuple(shown), folder, folder.absolute().name or "pictures")


def _pattern_source(path: Path) -> PicturesSource:
    """Return the files whose names have a number where the pattern says `%d`, or one of at least four digits where it says `%04d`."""
    start, digits, end = PATTERN.split(path.name, maxsplit=1)
    wanted = re.compile(rf"{re.escape(start)}\d{{{digits or 1},}}{re.escape(end)}")
    try:
        found = sorted(file for file in path.parent.iterdir() if _is_numbered_file(file, wanted))
    except OSError as exc:
        raise InputError(f"{path}: the folder {path.parent} cannot be read ({exc.strerror}).") from exc
    if not found:
        raise InputError(f"{path}: no file in {path.parent} fits this pattern. Check the folder and the number of digits.")
    stem = start.strip("_-. ") or path.absolute().parent.name or "pictures"
    return PicturesSource(tuple(found), path, stem)


def _is_numbered_file(file: Path, wanted: re.Pattern[str]) -> bool:
    return bool(wanted.fullmatch(file.name)) and file.is_file() and not leads_out(file, file.parent)
