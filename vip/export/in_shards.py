"""Samples in shards of a practical size."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from vip.dataset.rows import VideoSample
from vip.dataset.shard_names import FOLDER, NAME
from vip.dataset.shards import Format, write_shard

STALE_FILES = rf"{FOLDER}/{NAME.pattern}"
SHARD_BYTES = 500 * 2**20  # of pictures: large enough for few files, small enough to be downloaded again


class _ShardNumber:
    """The number of the shard that the next sample goes into."""

    def __init__(self) -> None:
        self.number = self.bytes = 0

    def __call__(self, sample: VideoSample) -> int:
        size = sum(len(frame.picture) for frame in sample.frames)
        if self.bytes and self.bytes + size > SHARD_BYTES:
            self.number, self.bytes = self.number + 1, 0
        self.bytes += size
        return self.number


def in_shards(samples: Iterator[VideoSample]) -> Iterator[tuple[int, Iterator[VideoSample]]]:
    """Yield the number of each shard with its samples, which have to be read before the next shard."""
    return groupby(samples, _ShardNumber())


def write_shards(samples: Iterator[VideoSample], out: str, kind: Format) -> int:
    """Write OUT/shards/00000.parquet … or .tar, each with its sidecar, and return the number of files."""
    files = 0
    for number, some in in_shards(samples):
        write_shard(out, number, some, kind)
        files += 2
    return files
