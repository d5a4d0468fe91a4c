"""One pass over a data set for its card: the sidecars, and of the shards only the columns with texts and times.

In: an address. Out: `Counts`; its size is that of what is counted, not of the data set.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO

from vip.dataset import storage
from vip.dataset.parquet import read_columns
from vip.dataset.parts import regular_members
from vip.dataset.sanitize import without_secrets
from vip.dataset.schema import Row
from vip.dataset.shard_names import FOLDER
from vip.dataset.shards import ShardInfo, read_shards
from vip.dataset.statistics import COUNTED_COLUMNS, KeyframeStatistics, VideoStatistics
from vip.errors import StoreError
from vip.untrusted import DAMAGE, parse_json

MOST_PROBLEMS = 10


@dataclass(slots=True)
class DataSetCounts:
    """Counts over all shards."""

    shards: int = 0
    bytes: int = 0
    files: dict[str, str] = field(default_factory=dict)
    """The first shard of each format."""
    videos: VideoStatistics = field(default_factory=VideoStatistics)
    keyframes: KeyframeStatistics = field(default_factory=KeyframeStatistics)
    problems: list[str] = field(default_factory=list)
    """Sentences about the first shards that are not whole."""
    broken: int = 0
    """Shards that are not whole."""


def count(out: str) -> DataSetCounts:
    """Read what there is; a shard that cannot be read is named among the problems and left out.

    Raises:
        StoreError: the folder cannot be read.
        BackendError: a library is missing.
    """
    counts = DataSetCounts()

    def report(text: str) -> None:
        counts.broken += 1
        if len(counts.problems) < MOST_PROBLEMS:
            counts.problems.append(text)

    for info in read_shards(out, report):
        try:
            rows = info.counts or keyframes_of(out, info)
        except StoreError as exc:
            report(str(exc))
            continue
        counts.shards += 1
        counts.bytes += info.bytes
        counts.files.setdefault(info.format, info.file)
        for video in info.videos:
            counts.videos.add(video)
        counts.keyframes.merge(rows)
    return counts


def keyframes_of(out: str, info: ShardInfo) -> KeyframeStatistics:
    """Count the rows of one shard; pictures and vectors are not read.

    Raises:
        StoreError: it cannot be read, or is damaged.
    """
    counts, videos = KeyframeStatistics(), {video.key: video for video in info.videos}
    address = storage.join(out, FOLDER, info.file)
    read: Callable[[IO[bytes]], Iterator[Row]] = _in_parquet if info.format == "parquet" else _in_tar
    with storage.reading(out, FOLDER, info.file) as file:
        try:
            for row in read(file):
                counts.add(row, videos.get(row["video_id"]))
        except (tarfile.TarError, *DAMAGE) as exc:
            raise StoreError(f"{without_secrets(address)}: damaged ({' '.join(str(exc).split())}), and is left out of the card.") from exc
    return counts


def _in_parquet(file: IO[bytes]) -> Iterator[Row]:
    for row in read_columns(file, COUNTED_COLUMNS):
        checks = row["verification"]
        yield {**row, "provenance": parse_json(row["provenance"]), "verification": None if checks is None else parse_json(checks)}


def _in_tar(file: IO[bytes]) -> Iterator[Row]:
    with tarfile.open(fileobj=file, mode="r:") as archive:
        for member in regular_members(archive):
            if member.name.endswith(".json") and (data := archive.extractfile(member)):
                yield parse_json(data.read(member.size))
