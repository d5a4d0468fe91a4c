"""`vip export`: write keyframes in the format of another program.

In: data sets and run folders, a format, and a folder. Out: files in it, and `export.json`, which says what was exported. One sample is in
memory at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from typing import Literal, Protocol

from pydantic import ValidationError

from vip import store
from vip.dataset import storage
from vip.dataset.rows import VideoSample
from vip.dataset.sanitize import without_secrets, writable
from vip.dataset.shard_names import FOLDER
from vip.errors import InputError, UsageError, did_you_mean
from vip.export.sources import ExportSource, Revise, count_pieces, default_name, read_sources, sources_of
from vip.protocols import Observer, SilentObserver
from vip.records import Record
from vip.untrusted import escaped_json
from vip.wording import counted, option

Target = Literal["parquet", "webdataset", "hf", "jsonl", "csv", "coco", "vtt", "sheet"]
TARGETS: tuple[Target, ...] = ("parquet", "webdataset", "hf", "jsonl", "csv", "coco", "vtt", "sheet")
RECORD = "export.json"


class ExportRecord(Record):
    """The content of export.json."""

    format: str
    sources: tuple[str, ...]
    out: str
    videos: int = 0
    keyframes: int = 0
    described: int = 0
    files: int = 0
    is_finished: bool = False


class ExportFormat(Protocol):
    """The interface of a format's module."""

    STALE_FILES: str
    """Pattern of the paths of files, below the folder, that would be taken for a part of the new export; "" if there are none."""

    def write(self, samples: Iterator[VideoSample], out: str, note: Callable[[str], None]) -> int:
        """Write the samples, at least one, and return the number of files."""
        ...


@dataclass
class _SampleCounts:
    """Counts of the samples that were exported."""

    videos: int = 0
    keyframes: int = 0
    described: int = 0

    def count_samples(self, samples: Iterator[VideoSample]) -> Iterator[VideoSample]:
        """Yield the samples and count them."""
        for sample in samples:
            self.videos += 1
            self.keyframes += len(sample.frames)
            self.described += sum(frame.description is not None for frame in sample.frames)
            yield sample


def export(
    sources: Sequence[str],
    to: str,
    *,
    out: str | None = None,
    overwrite: bool = False,
    observer: Observer | None = None,
    revise: Revise = lambda source, sample: sample,
) -> ExportRecord:
    """Write the keyframes of data sets and runs to `out`, a folder under any address.

    Args:
        revise: called for each sample before it is written; `vip export` puts in the reviewed texts.

    Raises:
        UsageError: there is no such format, or the folder is not empty.
        InputError: a source is missing or not finished, or lacks what the format shows.
        BackendError: a library is missing.
        StoreError: a source is damaged, or the folder cannot be written.
    """
    if to not in TARGETS:
        raise UsageError(f'There is no format "{to}".{did_you_mean(to, TARGETS)}')
    observer = observer or SilentObserver()
    out = out or default_name(sources, to)
    given = sources_of(sources)
    format_: ExportFormat = import_module(f"vip.export.{to}")
    record = writable(ExportRecord(format=to, sources=tuple(without_secrets(source.address) for source in given), out=without_secrets(out)))
    _check(out, given, record, overwrite)
    done = _SampleCounts()
    with (
        observer.track("Exporting", count_pieces(given), lambda: counted(done.videos, "video")) as advance,
        closing(read_sources(given, observer.note, advance, revise)) as read,
    ):
        samples = done.count_samples(read)
        if (first := next(samples, None)) is None:
            raise InputError(f"{without_secrets(sources[0])} holds no whole shard. Run the same `vip batch` again to finish it.")
        _start_export(out, record, format_)
        try:
            files = format_.write(chain([first], samples), out, observer.note)
        except InputError:  # nothing of it fits this format
            _delete_record(out)
            raise
    return _write_record(out, record.model_copy(update={**vars(done), "files": files, "is_finished": True}))


def _check(out: str, sources: Sequence[ExportSource], record: ExportRecord, overwrite: bool) -> None:
    if any(_is_same_address(out, source.address) for source in sources):
        raise UsageError(f"{without_secrets(out)} is what is to be exported. Choose another folder with {option('out')}.")
    if storage.is_empty(out):
        return
    if RECORD in storage.sizes_in(out):
        if overwrite or _read_record(out) == record:  # it was killed
            return
    elif storage.sizes_in(out, FOLDER):
        raise UsageError(f"{without_secrets(out)} holds a data set of `vip batch`. Choose another folder with {option('out')}.")
    if not overwrite:
        raise UsageError(f"{without_secrets(out)} is not empty. Choose another folder with {option('out')}, or add {option('overwrite')}.")


def _read_record(out: str) -> ExportRecord | None:
    text = storage.read_whole(out, RECORD)
    try:
        return ExportRecord.model_validate_json(text)
    except ValidationError:
        return None


def _is_same_address(one: str, other: str) -> bool:
    first, second = storage.local_path(one), storage.local_path(other)
    if first and second:
        return first.resolve() == second.resolve()
    return one.rstrip("/") == other.rstrip("/")


def _start_export(out: str, record: ExportRecord, format_: ExportFormat) -> None:
    """Mark the folder as an unfinished export, and delete files that would be taken for a part of this one."""
    if path := storage.local_path(out):
        store.make_folder(path)
    _write_record(out, record)
    folder, _, pattern = format_.STALE_FILES.rpartition("/")
    place = [folder] if folder else []
    for name in storage.sizes_in(out, *place):
        if pattern and re.fullmatch(pattern, name):
            storage.remove(out, *place, name)


def _write_record(out: str, record: ExportRecord) -> ExportRecord:
    storage.write_whole(escaped_json(record.model_dump_json(indent=1)).encode() + b"\n", out, RECORD)
    return record


def _delete_record(out: str) -> None:
    storage.remove(out, RECORD)
    if path := storage.local_path(out):
        with suppress(OSError):  # it holds other files
            path.rmdir()
