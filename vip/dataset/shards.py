"""The shards of a data set, under any address: written whole or not at all, and read back.

    OUT/shards/00012.parquet (or .tar)   the keyframes of many videos
    OUT/shards/00012.json                its sidecar, written after it: the name of the file, its length and digest, and the videos in it

A shard counts when its sidecar is there and tells the length of the file that it names. The same clips give the same bytes, so whoever
is killed on the way writes the shard once more.

A shard that is written anew is a new generation: first its file with another name, 00012.g1.parquet, then the sidecar in the place of
the old one, then the old file goes. What readers see is what the sidecar names, at any moment one of the two; a file that no sidecar
names is left over from a writer that was killed. Videos and keyframes keep their order.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from itertools import groupby, islice
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from pydantic import ValidationError

from vip import store
from vip.dataset import storage
from vip.dataset.parquet import ParquetShard, read_parquet
from vip.dataset.parts import read_part
from vip.dataset.rows import VideoRow, VideoSample
from vip.dataset.sanitize import without_secrets
from vip.dataset.schema import clips_of, rows_of
from vip.dataset.statistics import KeyframeStatistics
from vip.dataset.webdataset import TarShard, read_tar
from vip.errors import StoreError
from vip.records import Failure, PlainName, Record
from vip.untrusted import DAMAGE
from vip.wording import counted

Format = Literal["parquet", "webdataset"]
FOLDER = "shards"
SUFFIXES: dict[Format, str] = {"parquet": "parquet", "webdataset": "tar"}
NAME = re.compile(r"(\d{5,})(?:\.(?:g(\d+)\.)?(?:parquet|tar)|\.json)")
"""Of a file in the folder: its number, and its generation where that is not the first."""
AGAIN = "Run the same `vip batch` again to write it."


class UndescribedKeyframe(NamedTuple):
    """A keyframe that could not be described, in a shard."""

    video: str
    """The key of its item."""
    keyframe: str
    kind: str
    message: str


class ShardInfo(Record):
    """The sidecar of a shard."""

    number: int
    file: PlainName
    """Beside this one."""
    format: Format
    bytes: int
    sha256: str
    rows: int
    """Keyframes."""
    counts: KeyframeStatistics | None = None
    """What its rows tell, for the data card, which then need not read them; None in shards of an older vip."""
    videos: tuple[VideoRow, ...]
    """In the order of their keyframes; of the subtitles only the languages."""
    undescribed: tuple[Failure, ...] = ()
    """Keyframes that could not be described, and why."""
    generation: int = 0
    """How often it was written anew."""


class _HashingFile:
    """A file that counts and digests what is written to it."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._digest, self.size = file, hashlib.sha256(), 0

    def write(self, data: Any) -> int:
        with memoryview(data) as view:
            self._digest.update(view)
            if not self._file.closed:  # a writer that is given up still writes its end
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
    """Write one shard and, when it is in place, its sidecar; one clip and one row group are in memory.

    Args:
        generation: of a shard that is written anew, one more than before; the generations before it go.

    Raises:
        StoreError: it cannot be written, or a part is damaged; what lay there before still does, or nothing.
        BackendError: a library is missing.
    """
    file = file_name(number, generation, format)
    info = write_file(number, parts, format, out, FOLDER, file).model_copy(update={"generation": generation})
    storage.write_whole(info.model_dump_json(indent=1).encode() + b"\n", out, FOLDER, f"{number:05d}.json")
    _clear_up(out, file)
    delete_generations_before(out, info)
    return info


def file_name(number: int, generation: int, format: Format) -> str:  # noqa: A002
    """`00012.parquet`, and `00012.g1.parquet` when it is written anew."""
    return f"{number:05d}.{f'g{generation}.' if generation else ''}{SUFFIXES[format]}"


def delete_generations_before(out: str, info: ShardInfo) -> None:
    """The files of a shard that was written anew; those that are gone already are no matter."""
    for generation in range(info.generation):
        storage.remove(out, FOLDER, file_name(info.number, generation, info.format))


def write_file(number: int, parts: Iterable[Path] | Iterable[VideoSample], format: Format, out: str, *names: str) -> ShardInfo:  # noqa: A002
    """Only the file of the shard, with any name below `out`; errors as of `write_shard`."""
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


def _clear_up(out: str, file: str) -> None:
    """Delete what writers of this shard that were killed left half written."""
    if storage.local_path(out):
        beginning = f".{file.partition('.')[0]}."
        for name in storage.sizes_in(out, FOLDER):
            if name.startswith(beginning) and name.endswith(store.PARTIAL_SUFFIX):
                storage.remove(out, FOLDER, name)


# ---------------------------------------------------------------- reading


def undescribed_in(info: ShardInfo) -> Iterator[UndescribedKeyframe]:
    """The keyframes of a shard that could not be described; ids of keyframes begin with the key of their video."""
    for one in info.undescribed:
        yield UndescribedKeyframe(one.item.rpartition(":")[0], one.item, one.kind, one.message)


def read_shards(out: str, report: Callable[[str], None] = lambda text: None) -> Iterator[ShardInfo]:
    """The sidecars of the whole shards, in order; `report` is told of each that is not whole.

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
            size = sizes.get(info.file) or storage.size_of(out, FOLDER, info.file)  # written anew since the folder was read
        except StoreError as exc:
            report(str(exc))
            continue
        if size == info.bytes and info.file.partition(".")[0] == number:
            yield info
        else:
            has = "is missing" if size is None else f"has {counted(size, 'byte')} instead of {info.bytes:,}"
            report(f"{without_secrets(storage.join(out, FOLDER, info.file))} {has}, and is left out. {AGAIN}")


def delete_leftovers(out: str) -> None:
    """Delete the files of generations that are in force no more, or not yet: a writer that was killed left them."""
    for number, sizes in _by_number(out):
        if len(sizes) > 2:
            with suppress(StoreError):  # a sidecar that is damaged is told of when the shards are read
                info = read_sidecar(out, int(number))
                for name in sizes.keys() - {info.file, f"{number}.json"}:
                    storage.remove(out, FOLDER, name)


def _by_number(out: str) -> Iterator[tuple[str, dict[str, int]]]:
    """Of each number its files with their bytes, in order."""
    sizes = {name: size for name, size in storage.sizes_in(out, FOLDER).items() if NAME.fullmatch(name)}
    for number, names in groupby(sorted(sizes, key=lambda name: (int(name.partition(".")[0]), name)), lambda name: name.partition(".")[0]):
        yield number, {name: sizes[name] for name in names}


def read_clips(out: str, report: Callable[[str], None] = lambda text: None) -> Iterator[VideoSample]:
    """The clips of all whole shards; a row group is in memory.

    Raises:
        StoreError: a shard cannot be read, or is damaged.
    """
    for info in read_shards(out, report):
        yield from clips_in(out, info)


def clips_in(out: str, info: ShardInfo) -> Iterator[VideoSample]:
    """The clips of one shard, which may be written anew meanwhile; errors as of `read_clips`."""
    count = 0
    while True:
        try:
            for sample in islice(_clips_of_file(out, info), count, None):
                yield sample
                count += 1
        except StoreError:
            if (now := in_force(out, info)) == info:
                raise
            info = now
        else:
            return


def in_force(out: str, info: ShardInfo) -> ShardInfo:
    """The sidecar of the shard as it is now, where that has been written anew.

    Raises:
        StoreError: it cannot be read.
    """
    now = read_sidecar(out, info.number)
    return now if now.generation > info.generation else info


def _clips_of_file(out: str, info: ShardInfo) -> Iterator[VideoSample]:
    address = storage.join(out, FOLDER, info.file)
    read = read_parquet if info.format == "parquet" else read_tar
    with storage.reading(out, FOLDER, info.file) as file:
        samples = clips_of(read(file))
        while True:
            try:
                sample = next(samples, None)
            except (tarfile.TarError, *DAMAGE) as exc:
                raise _damaged(address, exc) from exc
            if sample is None:
                return
            yield sample


def verify(out: str) -> Iterator[str]:
    """A sentence for everything that is wrong: shards that are not whole, other bytes than were written, a video twice.

    It reads all of the shards, and keeps the keys on the disk.
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
            for sample in clips_in(out, info):
                keys.append(sample.video.key)
                rows += len(sample.frames)
    except StoreError as exc:
        if (now := in_force(out, info)) != info:
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
    """What is in force of a shard.

    Raises:
        StoreError: there is none, or it is damaged.
    """
    address = storage.join(out, FOLDER, f"{number:05d}.json")
    text = storage.read_whole(out, FOLDER, f"{number:05d}.json")
    try:
        return ShardInfo.model_validate_json(text)
    except ValidationError as exc:
        raise _damaged(address, exc.errors()[0]["msg"]) from exc


def _damaged(address: str, why: object) -> StoreError:
    return StoreError(f"{without_secrets(address)}: damaged ({' '.join(str(why).split())}). Delete it, and write the data set again.")
