"""Zips of submissions, as VALUE's server takes them: unpacked for a while, never more than is bounded and never outside their folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from zipfile import ZipFile, ZipInfo

from vip.errors import InputError
from vip.files import ZIP_DAMAGE, open_named
from vip.tasks.json_rows import MOST_BYTES
from vip.tasks.value.datasets import BY_KEY
from vip.untrusted import one_line

MOST_FILES = 200
BLOCK_BYTES = 2**20
_LITTER = frozenset({"__MACOSX", ".DS_Store"})
"""What the archiver of macOS adds."""


@contextmanager
def unpacked_submission(path: Path) -> Iterator[Path]:
    """Return a folder as it is, and of a zip the folder that it was unpacked into, which is removed afterwards.

    Raises:
        InputError: it is damaged, too large, has a folder around its tasks, or a name that is no `<task>/<file>`.
    """
    if path.is_dir() or path.suffix != ".zip":
        yield path
        return
    with TemporaryDirectory(prefix="vip-zip-") as place:
        try:
            with open_named(path) as packed, ZipFile(packed) as archive:
                for one in _checked(path, archive.infolist()):
                    _unpack(path, archive, one, Path(place))
        except ZIP_DAMAGE as exc:
            problem = getattr(exc, "strerror", None) or str(exc)
            raise InputError(f"{path} cannot be unpacked ({one_line(problem)[:80]}). Zip the folders of the tasks again.") from exc
        yield Path(place)


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
    return files


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
