"""The sources of an export: data sets, under any address, and run folders.

In: what the user named. Out: samples, one after another, each with a key of its own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from vip.dataset import storage
from vip.dataset.rows import VideoSample, sample_of, with_key
from vip.dataset.sanitize import without_secrets
from vip.dataset.shard_names import FOLDER, has_shards
from vip.dataset.shards import read_shards, samples_in
from vip.errors import InputError
from vip.store import Run, load_run, runs_in, unlinked

MOST_KEY = 90  # letters of a key, before a number is added


@dataclass(frozen=True, slots=True)
class ExportSource:
    """A data set, or a run folder."""

    address: str
    run: Run | None = None
    """None for a data set."""


Revise = Callable[[ExportSource, VideoSample], VideoSample]
"""Returns a sample of a source with other texts."""


def sources_of(given: Sequence[str]) -> list[ExportSource]:
    """Return the data sets and runs, each once; a folder of run folders is replaced by them.

    Raises:
        InputError: one is neither, or is not finished.
    """
    found: dict[str, ExportSource] = {}
    for address in given:
        path = storage.local_path(address)
        if has_shards(address):
            found.setdefault(str(path.resolve()) if path else address.rstrip("/"), ExportSource(address))
        elif path:
            for folder in (load_run(folder).folder for folder in runs_in([path])):  # checked, and read again later
                found.setdefault(str(folder.resolve()), ExportSource(str(folder), Run(folder)))
        else:
            raise InputError(f"{without_secrets(address)} holds no shards. Give the folder that `vip batch -o` wrote.")
    return list(found.values())


def read_sources(
    sources: Sequence[ExportSource],
    note: Callable[[str], None],
    advance: Callable[[], None] = lambda: None,
    revise: Revise = lambda source, sample: sample,
) -> Generator[VideoSample, None, None]:
    """Yield the samples in order; a key that occurs again gets a number. `advance` is called after each shard and each run.

    Close it in the thread that reads it: it holds a database.

    Raises:
        StoreError: a source is damaged.
    """
    with closing(sqlite3.connect("")) as seen:  # a temporary file: there may be millions of keys
        seen.execute("CREATE TABLE keys (key TEXT PRIMARY KEY) WITHOUT ROWID")
        for source in sources:
            for samples in _pieces(source, note):
                for sample in samples:
                    yield _with_new_key(revise(source, sample), seen)
                advance()


def _pieces(source: ExportSource, note: Callable[[str], None]) -> Iterator[Iterator[VideoSample]]:
    if source.run:
        yield iter([sample_of(source.run)])
        return
    for info in read_shards(source.address, note):
        yield samples_in(source.address, info)


def _with_new_key(sample: VideoSample, seen: sqlite3.Connection) -> VideoSample:
    names = (f"{sample.video.key[:MOST_KEY]}-{number}" for number in count(2))
    name = sample.video.key
    while not seen.execute("INSERT OR IGNORE INTO keys VALUES (?)", (name,)).rowcount:
        name = next(names)
    return sample if name == sample.video.key else with_key(sample, name)


def count_pieces(sources: Sequence[ExportSource]) -> int:
    """Return how often `read_sources` calls `advance`; shards that are not whole count too."""
    names = (name for source in sources if not source.run for name in storage.sizes_in(source.address, FOLDER))
    return sum(name.endswith(".json") for name in names) + sum(source.run is not None for source in sources)


def default_name(given: Sequence[str], format: str) -> str:  # noqa: A002
    """Return `corpus-hf` for `s3://bucket/corpus/`, in the current folder."""
    path = Path(without_secrets(given[0]).partition("://")[2] or given[0]).absolute() if len(given) == 1 else Path()
    last = path.resolve().name if path.name == ".." else path.name
    return str(unlinked(Path(f"{last.removesuffix('.vip') or 'export'}-{format}")))
