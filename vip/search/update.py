"""Keeping an index in step with its sources: what is new or has changed is read, and what is gone is removed.

In: an index, run folders and data sets. Out: the same index, up to date.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from vip import store
from vip.dataset import storage
from vip.dataset.sanitize import without_secrets
from vip.dataset.shard_names import FOLDER, NAME
from vip.dataset.shards import read_sidecar
from vip.errors import InputError, StoreError, VipError
from vip.locks import in_use
from vip.protocols import Observer
from vip.review.log import NAME as LOG
from vip.review.reviewed import ReviewedTexts
from vip.search import vector_table
from vip.search.documents import IndexedVideo, stamp_of_run, state_of_log, video_of_run, videos_of_shard
from vip.search.index import SearchIndex, Source
from vip.search.remote_index import is_published, publishing
from vip.store import Run, load_run
from vip.wording import SaidOnce

MOST_EXACT = 2_000_000  # vectors, before the first go to a table
MOST_RECENT = 200_000  # that are new since then


def update_index(index: SearchIndex, sources: Sequence[str], observer: Observer) -> None:
    """Bring an index up to date: read what is new or has changed, and remove what is gone.

    A run or a shard that is damaged is left out, with a note. Where another process is at it, the index is used as it is.

    Raises:
        InputError: one of the sources is neither a run, nor a folder of runs, nor a data set.
        StoreError: the index cannot be written.
    """
    wanted = _stamps(sources, observer)
    if index.stamps() == wanted and is_published(index):
        return
    try:
        with in_use(index.folder), publishing(index):
            new, reviewed = index.update(wanted), ReviewedTexts()
            with observer.track("indexing", len(new)) as advance:
                for source in new:
                    _read(index, source, wanted[source], reviewed, observer, is_only=len(wanted) == 1)
                    settle_vectors(index, observer)
                    advance()
            settle_vectors(index, observer, is_last=True)
            train_tables(index, observer)
    except StoreError as exc:
        if not index.count():
            raise
        observer.note(f"{exc} What is new since the last search may be left out.")


def settle_vectors(index: SearchIndex, observer: Observer, *, is_last: bool = False) -> None:
    """Move the vectors of embedders that have too many in files to their tables; those of an index on S3 all, at the end."""
    for embedder in index.embedders():
        most = 0 if index.is_remote and is_last else MOST_RECENT if embedder.settled else MOST_EXACT
        if embedder.slots - embedder.settled <= most:
            continue
        if index.is_remote or vector_table.is_installed():
            index.settle(embedder)
        else:
            observer.note(SaidOnce(f"{embedder.slots:,} pictures are compared one by one. {vector_table.INSTALL} makes that faster."))


def train_tables(index: SearchIndex, observer: Observer) -> None:
    """Put the vectors that are new in tables into the indexes of these."""
    untrained = [embedder for embedder in index.embedders() if embedder.indexed < embedder.settled]
    if untrained:
        with observer.track("preparing pictures", len(untrained)) as advance:
            for embedder in untrained:
                index.train(embedder)
                advance()


def _read(index: SearchIndex, source: Source, stamp: str, reviewed: ReviewedTexts, observer: Observer, *, is_only: bool) -> None:
    try:
        with index.transaction():
            index.remove([source])
            index.add(source, stamp, _videos(source, reviewed))
    except VipError as exc:
        if is_only or not isinstance(exc, InputError | StoreError):
            raise
        observer.note(f"{exc} It is left out.")


def _videos(source: Source, reviewed: ReviewedTexts) -> Iterator[IndexedVideo]:
    if source.part:
        yield from videos_of_shard(source.address, read_sidecar(source.address, int(source.part)), reviewed)
    else:
        yield video_of_run(load_run(source.address), reviewed)


def _stamps(sources: Sequence[str], observer: Observer) -> dict[Source, str]:
    """Return every run and shard of the sources, with a text that changes when it does."""
    found: dict[Source, str] = {}
    for address in dict.fromkeys(sources):
        sizes = {name: size for name, size in storage.sizes_in(address, FOLDER).items() if NAME.fullmatch(name)}
        if sizes:
            found |= _stamps_of_shards(address, sizes, observer)
        elif path := storage.local_path(address):
            store.check_folder(path)
            runs = [Run(folder) for folder in store.runs_in([path])]
            if len(runs) == 1:
                load_run(runs[0].folder)  # says what is wrong
            found |= {Source(str(run.folder.absolute()), ""): stamp_of_run(run) for run in runs}
        else:
            raise InputError(f"{without_secrets(address)} holds no shards. Give the folder that `vip batch -o` wrote.")
    return found


def _stamps_of_shards(address: str, sizes: Mapping[str, int], observer: Observer) -> dict[Source, str]:
    found, folder = {}, storage.local_path(address)
    log = state_of_log(folder / LOG) if folder else ""
    for number, names in groupby(sorted(sizes), key=lambda name: name.partition(".")[0]):
        files = list(names)
        if f"{number}.json" in files:
            found[Source(address, number)] = " ".join([*(f"{name}:{sizes[name]}" for name in files), log])
        else:
            observer.note(f"{without_secrets(address)}: shard {number} is not whole, and is left out.")
    return found
