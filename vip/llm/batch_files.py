"""The files of batches: rows, their keys, and what is known of the job that each file became.

In: rows with their keys. Out: `part-0001.jsonl`, the keys beside it in the same order, and `jobs.json`. A part is whole once it
has its name; one that was being written when its process died is left behind under another. The folder may come from a stranger: no
link in it is followed, and a job counts only if this machine handed it in from this folder, or its user trusts it.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Annotated

from pydantic import Field

from vip import files, user_state
from vip.errors import StoreError
from vip.protocols import SERVER_ID
from vip.records import Record, RecordPart
from vip.store import exists, make_folder, read_json, replacing, write_json

FOLDER, JOBS = "batches", "jobs.json"
MOST_JOBS = 100_000
MOST_KEYS_BYTES = 64 * 2**20
LONGEST_REASON = 1000  # letters of what a server says
NOT_OF_THIS_MACHINE = "not handed in by this machine"

Count = Annotated[int, Field(ge=0, le=2**53)]
Tag = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
JobId = Annotated[str, Field(pattern=SERVER_ID)]


class BatchJob(RecordPart):
    """One file of rows and the job that it became."""

    part: Annotated[int, Field(ge=1, le=10 * MOST_JOBS)]
    tag: Tag | None = None
    """By which the server knows the job; noted before it is handed in."""
    job: JobId | None = None
    """The server's name for it."""
    status: Annotated[str, Field(pattern="^[a-z_]{1,40}$")] = "written"
    """`written`, then the server's words, in the end `collected`."""
    rows: Count
    size_bytes: Count
    completed: Count = 0
    failed: Count = 0
    error: Annotated[str, Field(max_length=LONGEST_REASON)] | None = None
    """The server's reason where it took none of the rows."""
    tries: Annotated[int, Field(ge=1, le=1000)] = 1
    """That often its rows have been handed in, this time included."""
    created_utc: Annotated[str, Field(max_length=40)]
    home: Annotated[str, Field(exclude=True)] = ""
    """The run folder that it was read from; never what the file says."""

    def mark(self, name: str) -> str:
        """Return by what its tag or job is remembered: in a copy of its folder it is a stranger."""
        return f"{self.home}\n{name}"

    @property
    def is_open(self) -> bool:
        return self.status != "collected"

    @property
    def is_ours(self) -> bool:
        """Return whether this machine has handed it in, or was about to; or its user trusts it."""
        name = self.job or self.tag
        return name is not None and user_state.knows("jobs", self.mark(name))

    @property
    def is_at_server(self) -> bool:
        """Return whether this machine has handed it in, and its answers are to be collected."""
        return self.is_open and self.job is not None and self.is_ours

    @property
    def is_strange(self) -> bool:
        """Return whether it waits at the server, and only who handed it in may touch it."""
        return self.is_open and self.job is not None and not self.is_ours

    @property
    def status_text(self) -> str:
        """Return the status in words."""
        return NOT_OF_THIS_MACHINE if self.is_strange else self.status


class BatchJobList(Record):
    """jobs.json"""

    jobs: Annotated[tuple[BatchJob, ...], Field(max_length=MOST_JOBS)] = ()


def status(folder: Path, *, below: Path = Path()) -> list[BatchJob]:
    """Return the jobs of a run folder as they were last seen; empty where nothing was handed in.

    Args:
        below: the place in the folder that they are noted in.

    Raises:
        StoreError: what is noted there is damaged.
    """
    path = folder / below / FOLDER / JOBS
    jobs = read_json(path, BatchJobList, inside=folder).jobs if exists(path) else ()
    return [job.model_copy(update={"home": str(folder.resolve())}) for job in jobs]


@dataclass(frozen=True, slots=True)
class BatchFolder:
    """The folder of the files of batches."""

    home: Path
    """The folder that the command names."""
    folder: Path
    """The one of the batches, in it."""

    def make(self) -> None:
        """Make the folder where it is missing.

        Raises:
            StoreError: it cannot be made, or leads out of the one that the command names.
        """
        make_folder(self.home)
        path = self.home
        for name in self.folder.relative_to(self.home).parts:
            path /= name
            make_folder(path, inside=self.home)

    def note(self, jobs: BatchJobList) -> None:
        """Write down what is known of all jobs."""
        write_json(self.folder / JOBS, jobs, inside=self.home, durable=True)

    def rows_of(self, part: int) -> Path:
        return self.folder / f"part-{part:04d}.jsonl"

    def _keys_path(self, part: int) -> Path:
        return self.rows_of(part).with_suffix(".keys")

    def keys_of(self, part: int) -> list[str]:
        """Return the keys of its rows, in their order.

        Raises:
            StoreError: they cannot be read.
        """
        path = self._keys_path(part)
        try:
            return files.read_bytes(path, inside=self.home, most_bytes=MOST_KEYS_BYTES).decode().split("\n")[:-1]
        except OSError as exc:
            raise StoreError(f"{path} cannot be read: {exc.strerror}. {self._retry_advice}") from exc
        except UnicodeDecodeError as exc:
            raise StoreError(f"{path} is damaged (it is not UTF-8). {self._retry_advice}") from exc

    def delete(self, part: int) -> None:
        """Delete the files of a part."""
        for path in (self.rows_of(part), self._keys_path(part)):
            self._remove(path)

    def _remove(self, path: Path) -> None:
        with suppress(OSError):  # a folder in its place is not vip's, and stays
            files.remove(path, inside=self.home)

    def delete_others(self, parts: set[int]) -> None:
        """Delete what belongs to none of these parts: it was never handed in, or its process died before it was whole."""
        known = {self.rows_of(part).stem for part in parts}
        for name in files.names_in(self.folder, inside=self.home):
            is_part = name.startswith("part-") and name.partition(".")[0] not in known
            if is_part or name.endswith(files.PARTIAL_SUFFIX):
                self._remove(self.folder / name)

    def writer(self, part: int, tries: int) -> BatchFileWriter:
        return BatchFileWriter(self.home, self.rows_of(part), self._keys_path(part), part, tries)

    def copy_rows(self, job: BatchJob, keys: set[str], part: int) -> BatchJob:
        """Write these rows of a part as a new part, for another try.

        Raises:
            StoreError: the part is not as it was written.
        """
        writer, path = self.writer(part, job.tries + 1), self.rows_of(job.part)
        try:
            with files.open_file(path, inside=self.home) as rows:
                for key, row in zip(self.keys_of(job.part), rows, strict=True):
                    if key in keys:
                        writer.write(key, row)
        except (OSError, ValueError) as exc:
            writer.drop()
            raise StoreError(f"{path} is damaged ({exc}). {self._retry_advice}") from exc
        return writer.finish()

    @property
    def _retry_advice(self) -> str:
        return f"Delete {self.folder} and try again."


class BatchFileWriter:
    """A part that is being written: its rows, and in a file beside them their keys in the same order."""

    def __init__(self, home: Path, rows: Path, keys: Path, part: int, tries: int) -> None:
        self.home, self.part, self.tries = home, part, tries
        self.rows = self.size_bytes = 0
        self._open = ExitStack()
        self._rows: IO[bytes] = self._open.enter_context(replacing(rows, inside=home))  # a process that dies before has to ask anew
        self._keys: IO[bytes] = self._open.enter_context(replacing(keys, inside=home, durable=True))

    def has_room(self, row: bytes, most_bytes: int, most_rows: int) -> bool:
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

    def finish(self) -> BatchJob:
        self._open.close()
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return BatchJob(
            part=self.part, rows=self.rows, size_bytes=self.size_bytes, tries=self.tries, created_utc=now, home=str(self.home.resolve())
        )

    def drop(self) -> None:
        """Leave nothing of it behind."""
        with suppress(_Dropped), self._open:
            raise _Dropped


class _Dropped(Exception):  # noqa: N818 - nothing went wrong
    pass
