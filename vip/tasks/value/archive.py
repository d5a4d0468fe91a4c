"""Zips of submissions, as VALUE's server takes them: unpacked for a while, never more than is bounded and never outside their folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory, gettempdir
from zipfile import ZipFile, ZipInfo

from vip.errors import InputError, VipError
from vip.files import ZIP_DAMAGE, open_named
from vip.tasks.json_rows import MOST_BYTES
from vip.tasks.value.datasets import BY_KEY
from vip.untrusted import one_line

MOST_FILES = 200
MOST_UNPACKED_BYTES = 2**30
"""Of all files together."""
BLOCK_BYTES = 2**20
_LITTER = frozenset({"__MACOSX", ".DS_Store"})
"""What the archiver of macOS adds."""
_PREFIX = "vip-zip-"


@contextmanager
def unpacked_submission(path: Path) -> Iterator[Path]:
    """Return a folder as it is, and of a zip the folder that it was unpacked into, which is removed afterwards.

    Raises:
        InputError: it is damaged, too large, has a folder around its tasks, or a name that is no `<task>/<file>`.
    """
    if path.is_dir() or path.suffix != ".zip":
        yield path
        return
    with named_by_zip(), TemporaryDirectory(prefix=_PREFIX) as place:
        folder = Path(place) / path.name
        folder.mkdir()
        try:
            with open_named(path) as packed, ZipFile(packed) as archive:
                for one in _checked(path, archive.infolist()):
                    _unpack(path, archive, one, folder)
        except ZIP_DAMAGE as exc:
            problem = getattr(exc, "strerror", None) or str(exc)
            raise InputError(f"{path} cannot be unpacked ({one_line(problem)[:80]}). Zip the folders of the tasks again.") from exc
        yield folder


@contextmanager
def named_by_zip() -> Iterator[None]:
    """Name files of an unpacked zip in messages as `s.zip/tvr/…`, without the folder that they are in for a while."""
    try:
        yield
    except VipError as exc:
        place = re.escape(str(Path(gettempdir()) / _PREFIX)) + rf"\w+{re.escape(os.sep)}"
        exc.args = (re.sub(place, "", str(exc)),)
        raise


def _checked(path: Path, members: list[ZipInfo]) -> list[ZipInfo]:
    files = [one for one in members if not one.filename.endswith("/") and _LITTER.isdisjoint(PurePosixPath(one.filename).parts)]
    if len(files) > MOST_FILES:
        raise InputError(f"{path} has {len(files):,} files, and a submission has at most 22. Zip the folders of the tasks alone.")
    for one in files:
        parts = PurePosixPath(one.filename).parts
        if len(parts) == 3 and parts[1] in BY_KEY:
            raise InputError(f"{path} has the folder {one_line(parts[0])[:80]} around its tasks. Zip the folders of the tasks themselves.")
        if len(parts) != 2 or parts[0] not in BY_KEY or ".." in parts or "\\" in one.filename:
            raise InputError(f"{path} holds {one_line(one.filename)[:80]}, no file of a task such as tvr/tvr_val_predictions.json.")
    _check_names(path, files)
    if sum(one.file_size for one in files) > MOST_UNPACKED_BYTES:  # no member unpacks to more than it says
        raise InputError(f"{path} unpacks to more than {MOST_UNPACKED_BYTES:,} bytes. Give the best 100 predictions a query.")
    return files


def _check_names(path: Path, files: list[ZipInfo]) -> None:
    """Refuse a task none of whose files is named as predictions are."""
    names: dict[str, list[str]] = {}
    for one in files:
        key, name = PurePosixPath(one.filename).parts
        names.setdefault(key, []).append(name)
    for key, found in names.items():
        dataset = BY_KEY[key]
        if not any(f"_{split}_predictions" in name for name in found for split in dataset.splits):
            wanted = dataset.submission_name(dataset.split_name("val"))
            raise InputError(f"{path} holds {key}/{one_line(min(found))[:80]}. Name the predictions {wanted}.")


def _unpack(path: Path, archive: ZipFile, member: ZipInfo, folder: Path) -> None:
    parts = PurePosixPath(member.filename).parts
    (folder / parts[0]).mkdir(exist_ok=True)
    left = MOST_BYTES
    with archive.open(member) as packed, (folder / parts[0] / parts[1]).open("wb") as file:
        while block := packed.read(BLOCK_BYTES):
            left -= len(block)
            if left < 0:
                raise InputError(f"{path}: {one_line(member.filename)[:80]} has more than {MOST_BYTES:,} bytes. Give the best 100 a query.")
            file.write(block)
