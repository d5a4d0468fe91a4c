"""The files of batches: rows, their keys, and what is known of the job that each file became.

In: rows with their keys. Out: `part-0001.jsonl`, the keys beside it in the same order, and `jobs.json`. A part is whole once it
has its name; one that was being written when its process died is left behind under another.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from vip import files
from vip.errors import StoreError
from vip.records import Part, Record
from vip.store import exists, read_json, replacing

FOLDER, JOBS = "batches", "jobs.json"


class Job(Part):
    """One file of rows and the job that it became."""

    part: int
    tag: str | None = None
    """By which the server knows the job; noted before it is handed in."""
    job: str | None = None
    """The server's name for it."""
    status: str = "written"
    """`written`, then the server's words, in the end `collected`."""
    rows: int
    size_bytes: int
    completed: int = 0
    failed: int = 0
    error: str | None = None
    """The server's reason where it took none of the rows."""
    tries: int = 1
    """That often its rows have been handed in, this time included."""
    created_utc: str

    @property
    def is_open(self) -> bool:
        return self.status != "collected"


class Jobs(Record):
    """jobs.json"""

    jobs: tuple[Job, ...] = ()


def status(folder: Path) -> list[Job]:
    """The jobs of a run folder as they were last seen; empty where nothing was handed in."""
    path = folder / FOLDER / JOBS
    return list(read_json(path, Jobs).jobs) if exists(path) else []


def path_of(folder: Path, part: int) -> Path:
    return folder / f"part-{part:04d}.jsonl"


def keys_of(folder: Path, part: int) -> list[str]:
    """The keys of its rows, in their order."""
    path = path_of(folder, part).with_suffix(".keys")
    try:
        return path.read_text(encoding="utf-8").split("\n")[:-1]
    except OSError as exc:
        raise StoreError(f"{path} cannot be read: {exc.strerror}. {_MAKE_AGAIN.format(folder=folder)}") from exc


def delete(folder: Path, part: int) -> None:
    for path in (path_of(folder, part), path_of(folder, part).with_suffix(".keys")):
        path.unlink(missing_ok=True)


def delete_others(folder: Path, parts: set[int]) -> None:
    """Delete what belongs to none of these parts: their processes died before they were whole, or noted."""
    known = {path_of(folder, part).stem for part in parts}
    for name in files.names_in(folder, inside=folder.parent):
        is_part = name.startswith("part-") and name.partition(".")[0] not in known
        if is_part or name.endswith(files.PARTIAL_SUFFIX):
            files.remove(folder / name, inside=folder.parent)


class Writer:
    """A part that is being written: its rows, and in a file beside them their keys in the same order."""

    def __init__(self, folder: Path, part: int, tries: int) -> None:
        self.part, self.tries = part, tries
        self.rows = self.size_bytes = 0
        self._open = ExitStack()
        path = path_of(folder, part)
        self._rows: IO[bytes] = self._open.enter_context(replacing(path, durable=True))
        self._keys: IO[bytes] = self._open.enter_context(replacing(path.with_suffix(".keys"), durable=True))

    def takes(self, row: bytes, most_bytes: int, most_rows: int) -> bool:
        return self.size_bytes + len(row) <= most_bytes and self.rows < most_rows

    def write(self, key: str, row: bytes) -> None:
        try:
            self._rows.write(row)
            self._keys.write(key.encode() + b"\n")
        except OSError:
            with self._open:  # says what is wrong and leaves no half a part
                raise
        self.rows += 1
        self.size_bytes += len(row)

    def done(self) -> Job:
        self._open.close()
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return Job(part=self.part, rows=self.rows, size_bytes=self.size_bytes, tries=self.tries, created_utc=now)

    def drop(self) -> None:
        """Leave nothing of it behind."""
        with suppress(_Dropped), self._open:
            raise _Dropped


class _Dropped(Exception):  # noqa: N818 - nothing went wrong
    pass


def copied(folder: Path, job: Job, keys: set[str], part: int) -> Job:
    """These rows of a part as a new part, for another try."""
    writer = Writer(folder, part, job.tries + 1)
    try:
        with path_of(folder, job.part).open("rb") as rows:
            for key, row in zip(keys_of(folder, job.part), rows, strict=True):
                if key in keys:
                    writer.write(key, row)
    except (OSError, ValueError) as exc:
        writer.drop()
        raise StoreError(f"{path_of(folder, job.part)} is damaged ({exc}). {_MAKE_AGAIN.format(folder=folder)}") from exc
    return writer.done()


_MAKE_AGAIN = "Delete {folder} and try again."
