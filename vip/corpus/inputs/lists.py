"""The arguments of `vip batch`: which are lists, and which are videos.

In: an argument of the command line. Out: an `ItemList` for each list that it names (a folder or a glob names several), or a `TypedRow` for
a video, a folder of videos, an address or an id, so that `vip batch clip.mp4` works.
"""

from __future__ import annotations

import io
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias, cast
from urllib.parse import urlsplit

from vip.corpus.inputs.rows import YOUTUBE8M_ID, is_glob, shown
from vip.corpus.inputs.tfrecord import starts_like_tfrecord
from vip.download.addresses import YOUTUBE_ID
from vip.errors import BackendError, InputError
from vip.files import leads_out

SUFFIXES = frozenset({".txt", ".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".tfrecord", ".tfrecords"})
VOCABULARY = "vocabulary.csv"  # in the folder of the TFRecords; it is no list
GZIP, PARQUET = b"\x1f\x8b", b"PAR1"
HEAD_BYTES = 4096
REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass(frozen=True, slots=True)
class ItemList:
    """A file, a pipe or an address that holds rows."""

    source: str
    """`-`, a path, or an address for fsspec."""
    name: str
    """The name in messages."""
    suffix: str
    """Lower case, without .gz."""
    folder: Path
    """The folder that its relative paths start from."""


@dataclass(frozen=True, slots=True)
class TypedRow:
    """A row that was typed on the command line."""

    text: str


Given: TypeAlias = ItemList | TypedRow


def given_lists(argument: str) -> Iterator[Given]:
    """Yield the lists that an argument names, in the order of their names.

    Raises:
        InputError: there is none of that name, or it cannot be read.
        BackendError: its file system needs a package that is not installed.
    """
    if argument == "-":
        yield ItemList("-", "standard input", "", Path())
    elif REMOTE.match(argument):
        yield from _remote_lists(argument)
    else:
        yield from _local_lists(argument)


@contextmanager
def open_list(given: ItemList) -> Iterator[io.BufferedReader]:
    """Open a list to read its bytes.

    Raises:
        InputError: it cannot be opened.
        BackendError: its file system needs a package that is not installed.
    """
    if given.source == "-":
        yield from _standard_input()
        return
    with _fsspec_open(given.source) if REMOTE.match(given.source) else _open(given.source) as file:
        yield file


def _standard_input() -> Iterator[io.BufferedReader]:
    if sys.stdin is None:
        raise InputError("There is no standard input. Give the list as a file.")
    stream = sys.stdin.buffer
    if isinstance(stream, io.BufferedReader):
        yield stream
        return
    reader: io.BufferedReader = io.BufferedReader(cast(Any, stream))
    try:
        yield reader
    finally:
        reader.detach()  # or it would close standard input


def _suffix(name: str) -> str:
    path = PurePosixPath(name.lower())
    return PurePosixPath(path.stem).suffix if path.suffix == ".gz" else path.suffix


def _item_list(path: str) -> ItemList:
    return ItemList(path, path, _suffix(path), Path(path).parent)


# ---------------------------------------------------------------- on this machine


def _local_lists(argument: str) -> Iterator[Given]:
    try:
        mode = os.stat(argument).st_mode  # noqa: PTH116 - Path raises nothing of its own for a name that is too long
    except (OSError, ValueError):
        mode = None
    if mode is None:
        yield from _lists_of_absent(argument)
    elif stat.S_ISDIR(mode):
        yield from _folder_lists(argument)
    elif not stat.S_ISREG(mode):  # a pipe can be opened only once
        yield _item_list(argument)
    else:
        yield _item_list(argument) if _is_list(argument) else _path_row(argument)


def _lists_of_absent(argument: str) -> Iterator[Given]:
    if YOUTUBE_ID.fullmatch(argument) or YOUTUBE8M_ID.fullmatch(argument):
        yield TypedRow(argument)
        return
    first = next(_glob(argument), None) if is_glob(argument) else None
    if first is None:
        raise InputError(f"There is no list {shown(argument)}. Give a file with a video a row, or - for standard input.")
    if _is_video(argument):
        yield TypedRow(argument)  # one row for all of them
    else:
        for match in sorted(_glob(argument)):
            if Path(match).is_fifo():
                raise InputError(f"{match} is no regular file. Remove it, or name the lists.")
            yield from _local_lists(match)


def _glob(argument: str) -> Iterator[str]:
    pattern = Path(argument)
    try:
        yield from map(str, Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor))))
    except (OSError, ValueError) as exc:
        raise InputError(f"{shown(argument)} is no pattern for files: {exc}.") from exc


def _path_row(path: str) -> TypedRow:
    return TypedRow(os.path.join(".", path))  # noqa: PTH118 - Path drops "./", without which four letters are an id


def _is_video(path: str) -> bool:
    from vip.video import VIDEO_SUFFIXES

    return Path(path).suffix.lower() in VIDEO_SUFFIXES


def _folder_lists(argument: str) -> Iterator[Given]:
    from vip.video.source import contents

    if contents(Path(argument))[0]:
        yield _path_row(argument)
        return
    lists = sorted(path for path in Path(argument).iterdir() if _suffix(path.name) in SUFFIXES and path.name != VOCABULARY)
    if not lists:
        raise InputError(f"{argument} has neither videos nor lists. Give a folder of either, or a file with a video a row.")
    for path in lists:
        if leads_out(path, Path(argument)):
            raise InputError(f"{path} is a link, and vip follows none inside a folder. Remove it, or name the lists.")
        if not path.is_file():  # a pipe would be waited for
            raise InputError(f"{path} is no regular file. Remove it, or name the lists.")
        yield _item_list(str(path))


def _is_list(path: str) -> bool:
    """Return whether a file holds rows: by its suffix, or because no video starts like it."""
    if _is_video(path):
        return False
    with _open(path) as file:
        head = file.read(HEAD_BYTES)
    return _suffix(path) in SUFFIXES or head.startswith((GZIP, PARQUET)) or b"\0" not in head or starts_like_tfrecord(head)


def _open(path: str) -> io.BufferedReader:
    try:
        return Path(path).open("rb")
    except OSError as exc:
        raise InputError(f"{path} cannot be read: {exc.strerror}.") from exc


# ---------------------------------------------------------------- elsewhere


def _remote_lists(argument: str) -> Iterator[Given]:
    path = urlsplit(argument).path
    if argument.lower().startswith(("http://", "https://")):
        yield ItemList(argument, shown(argument), _suffix(path), Path()) if _suffix(path) in SUFFIXES else TypedRow(argument)
    elif is_glob(argument) or argument.endswith("/"):
        found = _fsspec_names(argument)
        if not found:
            raise InputError(f"There is no list at {shown(argument)}.")
        yield from (ItemList(name, shown(name), _suffix(name), Path()) for name in found)
    else:
        yield ItemList(argument, shown(argument), _suffix(path), Path())


def _fsspec_open(address: str) -> io.BufferedReader:
    with _translate_errors(address):
        import fsspec

        return io.BufferedReader(fsspec.open(address, "rb").open())


def _fsspec_names(address: str) -> list[str]:
    with _translate_errors(address):
        import fsspec

        files, path = fsspec.core.url_to_fs(address)
        names = files.glob(path) if is_glob(address) else files.ls(path, detail=False)
        return sorted(files.unstrip_protocol(name) for name in names if _suffix(name) in SUFFIXES and not name.endswith(VOCABULARY))


@contextmanager
def _translate_errors(address: str) -> Iterator[None]:
    try:
        yield
    except ImportError as exc:
        raise BackendError(
            f"Reading {shown(address)} needs fsspec and its package for this address ({exc}). "
            "Install it with pip install 'vip-keyframes[batch]'."
        ) from exc
    except Exception as exc:  # file systems of fsspec have their own errors
        raise InputError(f"{shown(address)} cannot be read: {exc}.") from exc
