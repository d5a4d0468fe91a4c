"""The shards of a data set, under any address: written whole or not at all, and read back.

    OUT/shards/00012.parquet (or .tar)   the keyframes of many videos
    OUT/shards/00012.json                its sidecar, written after it: the name of the file, its length and digest, and the videos in it

A shard is whole when it has a sidecar that states the length of its file. The same samples give the same bytes, so a writer that was
killed writes the shard again.

A shard that is revised gets a new generation: its file is written under another name, 00012.g1.parquet, then the sidecar replaces the old
one, then the old file is deleted. Readers use the file that the sidecar names. A file that no sidecar names was left by a writer that was
killed. Videos and keyframes keep their order.
"""

from __future__ import annotations

import hashlib
import sqlite3
import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from itertools import groupby, islice
from pathlib import Path
from typing import IO, Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, Field, ValidationError
from pydantic_core import to_json

from vip import store
from vip.dataset import storage
from vip.dataset.parquet import ParquetShard, read_parquet
from vip.dataset.parts import read_part
from vip.dataset.rows import VideoRow, VideoSample
from vip.dataset.sanitize import without_secrets
from vip.dataset.schema import rows_of, samples_of
from vip.dataset.shard_names import FOLDER, NAME
from vip.dataset.statistics import KeyframeStatistics
from vip.dataset.webdataset import TarShard, read_tar
from vip.errors import StoreError
from vip.records import Count, Failure, PlainName, Record
from vip.untrusted import DAMAGE, escaped_json, parse_json
from vip.wording import counted

Format = Literal["parquet", "webdataset"]
SUFFIXES: dict[Format, str] = {"parquet": "parquet", "webdataset": "tar"}
MOST_GENERATIONS = 10_000  # of a shard; the files of all that came before are looked for
MOST_NUMBER = 10**9  # of a shard that is read; the next ones that are written have 64 bits too
AGAIN = "Run the command that wrote it again."


class UndescribedKeyframe(NamedTuple):
    """A keyframe in a shard that could not be described."""

    video: str
    """The key of its item."""
    keyframe: str
    kind: str
    message: str


def _has_no_large_number(counts: KeyframeStatistics | None) -> KeyframeStatistics | None:
    """Refuse integers beyond 64 bits."""
    parse_json(to_json(counts))
    return counts


class ShardInfo(Record):
    """The sidecar of a shard."""

    number: Count
    file: PlainName
    """Beside this one."""
    format: Format
    bytes: Count
    sha256: str
    rows: Count
    """Keyframes."""
    counts: Annotated[KeyframeStatistics | None, AfterValidator(_has_no_large_number)] = None
    """Statistics of its rows, so that a data card need not read them; None where they were not counted."""
    videos: tuple[VideoRow, ...]
    """In the order of their keyframes; of the subtitles only the languages."""
    undescribed: tuple[Failure, ...] = ()
    """Keyframes that could not be described, and why."""
    generation: Annotated[int, Field(ge=0, le=MOST_GENERATIONS)] = 0
    """How often it was revised."""


class _HashingFile:
    """A file that counts and hashes the bytes that are written to it."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._digest, self.size = file, hashlib.sha256(), 0

    def write(self, data: Any) -> int:
        with memoryview(data) as view:
            self._digest.update(view)
            if not self._file.closed:  # a failed writer still writes its footer
                self._file.write(view)
            self.size += view.nbytes
            return view.nbytes

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        pass

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()


# ---------------------------------------------------------------- writing


def write_shard(
    out: str,
    number: int,
    parts: Iterable[Path] | Iterable[VideoSample],
    format: Format,  # noqa: A002
    *,
    generation: int = 0,
) -> ShardInfo:
    """Write one shard and then its sidecar; one sample and one row group are in memory.

    Args:
        generation: for a shard that is revised, one more than before; the generations before it are deleted.

    Raises:
        StoreError: it cannot be written, or a part is damaged; an older shard of this number is kept.
        BackendError: a library is missing.
    """
    file = file_name(number, generation, format)
    info = write_file(number, parts, format, out, FOLDER, file).model_copy(update={"generation": generation})
    storage.write_whole(escaped_json(info.model_dump_json(indent=1)).encode() + b"\n", out, FOLDER, f"{number:05d}.json")
    _delete_partial_files(out, file)
    delete_generations_before(out, info)
    return info


def file_name(number: int, generation: int, format: Format) -> str:  # noqa: A002
    """Return `00012.parquet`, and `00012.g1.parquet` for a revised shard."""
    return f"{number:05d}.{f'g{generation}.' if generation else ''}{SUFFIXES[format]}"


def delete_generations_before(out: str, info: ShardInfo) -> None:
    """Delete the older files of a shard that was revised."""
    for generation in range(info.generation):
        storage.remove(out, FOLDER, file_name(info.number, generation, info.format))


def write_file(number: int, parts: Iterable[Path] | Iterable[VideoSample], format: Format, out: str, *names: str) -> ShardInfo:  # noqa: A002
    """Write only the file of a shard, under any name below `out`; errors as of `write_shard`."""
    videos: list[VideoRow] = []
    undescribed: list[Failure] = []
    rows, counts = 0, KeyframeStatistics()
    with storage.writing(out, *names) as file:
        measured = _HashingFile(file)
        shard: Any = (ParquetShard if format == "parquet" else TarShard)(measured)  # type: ignore[arg-type]
        for part in parts:
            sample = part if isinstance(part, VideoSample) else read_part(part)
            shard.add(sample)
            rows += len(sample.frames)
            for row in rows_of(sample):
                counts.add(row, sample.video)
            undescribed += [frame.failure for frame in sample.frames if frame.failure]
            videos.append(sample.video.model_copy(update={"subtitles": dict.fromkeys(sample.video.subtitles, "")}))
        shard.close()
    return ShardInfo(
        number=number,
        file=names[-1],
        format=format,
        bytes=measured.size,
        sha256=measured.sha256,
        rows=rows,
        counts=counts,
        videos=tuple(videos),
        undescribed=tuple(undescribed),
    )


def _delete_partial_files(out: str, file: str) -> None:
    """Delete the partial files of writers of this shard that were killed."""
    if storage.local_path(out):
        beginning = f".{file.partition('.')[0]}."
        for name in storage.sizes_in(out, FOLDER):
            if name.startswith(beginning) and name.endswith(store.PARTIAL_SUFFIX):
                storage.remove(out, FOLDER, name)


# ---------------------------------------------------------------- reading


def undescribed_in(info: ShardInfo) -> Iterator[UndescribedKeyframe]:
    """Yield the keyframes of a shard that could not be described; their ids begin with the key of their video."""
    for one in info.undescribed:
        yield UndescribedKeyframe(one.item.rpartition(":")[0], one.item, one.kind, one.message)


def read_shards(out: str, report: Callable[[str], None] = lambda text: None) -> Iterator[ShardInfo]:
    """Yield the sidecars of the whole shards, in order; `report` is called with a sentence for each that is not whole.

    Raises:
        StoreError: the folder cannot be read.
    """
    for number, sizes in _by_number(out):
        if f"{number}.json" not in sizes:
            place = without_secrets(storage.join(out, FOLDER, next(iter(sizes))))
            report(f"{place} has no {number}.json, and is left out. {AGAIN}")
            continue
        try:
            info = read_sidecar(out, int(number))
            size = sizes.get(info.file) or storage.size_of(out, FOLDER, info.file)  # revised since the folder was read
        except StoreError as exc:
            report(str(exc))
            continue
        if size == info.bytes and info.file.partition(".")[0] == number:
            yield info
        else:
            has = "is missing" if size is None else f"has {counted(size, 'byte')} instead of {info.bytes:,}"
            report(f"{without_secrets(storage.join(out, FOLDER, info.file))} {has}, and is left out. {AGAIN}")


def delete_leftovers(out: str) -> None:
    """Delete the files that no sidecar names: writers that were killed left them."""
    for number, sizes in _by_number(out):
        if len(sizes) > 2:
            with suppress(StoreError):  # `read_shards` reports a damaged sidecar
                info = read_sidecar(out, int(number))
                for name in sizes.keys() - {info.file, f"{number}.json"}:
                    storage.remove(out, FOLDER, name)


def _by_number(out: str) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield each number with the names and bytes of its files, in order."""
    sizes = {name: size for name, size in storage.sizes_in(out, FOLDER).items() if NAME.fullmatch(name)}
    for number, names in groupby(sorted(sizes, key=lambda name: (int(name.partition(".")[0]), name)), lambda name: name.partition(".")[0]):
        yield number, {name: sizes[name] for name in names}


def read_samples(out: str, report: Callable[[str], None] = lambda text: None) -> Iterator[VideoSample]:
    """Yield the samples of all whole shards; one row group is in memory.

    Raises:
        StoreError: a shard cannot be read, or is damaged.
    """
    for info in read_shards(out, report):
        yield from samples_in(out, info)


def samples_in(out: str, info: ShardInfo) -> Iterator[VideoSample]:
    """Yield the samples of one shard, which may be revised meanwhile; errors as of `read_samples`."""
    count = 0
    while True:
        try:
            for sample in islice(_samples_of_file(out, info), count, None):
                yield sample
                count += 1
        except StoreError:
            if (now := current_sidecar(out, info)) == info:
                raise
            info = now
        else:
            return


def current_sidecar(out: str, info: ShardInfo) -> ShardInfo:
    """Return the sidecar of the shard as it is now; `info` where the shard was not revised.

    Raises:
        StoreError: it cannot be read.
    """
    now = read_sidecar(out, info.number)
    return now if now.generation > info.generation else info


def _samples_of_file(out: str, info: ShardInfo) -> Iterator[VideoSample]:
    address = storage.join(out, FOLDER, info.file)
    read = read_parquet if info.format == "parquet" else read_tar
    with storage.reading(out, FOLDER, info.file) as file:
        samples = samples_of(read(file))
        while True:
            try:
                sample = next(samples, None)
            except (tarfile.TarError, *DAMAGE) as exc:
                raise _damaged(address, exc) from exc
            if sample is None:
                return
            yield sample


def verify(out: str) -> Iterator[str]:
    """Yield a sentence for each problem: a shard that is not whole, bytes that have changed, a video that occurs twice.

    All shards are read; the keys are kept on the disk.
    """
    problems: list[str] = []
    with closing(sqlite3.connect("")) as seen:  # a file of its own that is deleted at the end
        seen.execute("CREATE TABLE videos (key TEXT PRIMARY KEY, file TEXT) WITHOUT ROWID")
        for info in read_shards(out, problems.append):
            yield from problems
            problems.clear()
            for video in info.videos:
                if not seen.execute("INSERT OR IGNORE INTO videos VALUES (?, ?)", (video.key, info.file)).rowcount:
                    (first,) = seen.execute("SELECT file FROM videos WHERE key = ?", (video.key,)).fetchone()
                    yield f"{video.key} is in {first} and once more in {info.file}. Delete one of them with its .json, and run again."
            yield from _problems_of(out, info)
        yield from problems


def _problems_of(out: str, info: ShardInfo) -> Iterator[str]:
    address = storage.join(out, FOLDER, info.file)
    try:
        with storage.reading(out, FOLDER, info.file) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
        keys, rows = [], 0
        if digest == info.sha256:
            for sample in samples_in(out, info):
                keys.append(sample.video.key)
                rows += len(sample.frames)
    except StoreError as exc:
        if (now := current_sidecar(out, info)) != info:
            yield from _problems_of(out, now)
        else:
            yield str(exc)
        return
    if digest != info.sha256:
        yield f"{without_secrets(address)} has other bytes than were written. Delete it with its .json, and run again."
    elif rows != info.rows or keys != [video.key for video in info.videos]:
        has = f"{counted(rows, 'keyframe')} of {counted(len(keys), 'video')}"
        yield f"{without_secrets(address)} holds {has}, its .json says {info.rows:,} of {len(info.videos):,}."


def read_sidecar(out: str, number: int) -> ShardInfo:
    """Return the sidecar of a shard.

    Raises:
        StoreError: it is missing or damaged.
    """
    address = storage.join(out, FOLDER, f"{number:05d}.json")
    text = storage.read_whole(out, FOLDER, f"{number:05d}.json")
    try:
        info = ShardInfo.model_validate_json(text)
    except ValidationError as exc:
        raise _damaged(address, exc.errors()[0]["msg"]) from exc
    if info.number != number or number > MOST_NUMBER:
        raise _damaged(address, "it states the number of another shard" if info.number != number else f"a number above {MOST_NUMBER:,}")
    return info


def _damaged(address: str, why: object) -> StoreError:
    return StoreError(f"{without_secrets(address)}: damaged ({' '.join(str(why).split())}). Delete it, and write the data set again.")
