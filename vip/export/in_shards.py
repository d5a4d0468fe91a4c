"""Many clips as shards of a handy size."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from vip.dataset.rows import VideoSample
from vip.dataset.shards import FOLDER, NAME, Format, write_shard

OLD = rf"{FOLDER}/{NAME.pattern}"
SHARD_BYTES = 500 * 2**20  # of pictures: large enough for few files, small enough to be fetched again


class _ShardNumber:
    """Of the shard that the next clip goes into."""

    def __init__(self) -> None:
        self.number = self.bytes = 0

    def __call__(self, sample: VideoSample) -> int:
        size = sum(len(frame.picture) for frame in sample.frames)
        if self.bytes and self.bytes + size > SHARD_BYTES:
            self.number, self.bytes = self.number + 1, 0
        self.bytes += size
        return self.number


def in_shards(samples: Iterator[VideoSample]) -> Iterator[tuple[int, Iterator[VideoSample]]]:
    """Numbers of shards, and the clips of each, to be taken before the next one."""
    return groupby(samples, _ShardNumber())


def write_shards(samples: Iterator[VideoSample], out: str, kind: Format) -> int:
    """OUT/shards/00000.parquet … or .tar, each with its sidecar. Returns how many files these are."""
    files = 0
    for number, some in in_shards(samples):
        write_shard(out, number, some, kind)
        files += 2
    return files
