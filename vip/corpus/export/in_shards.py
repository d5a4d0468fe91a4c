"""Many clips as shards of a handy size."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from vip.corpus.output.clip import Clip
from vip.corpus.output.shards import FOLDER, NAME, Format, write_shard

OLD = rf"{FOLDER}/{NAME.pattern}"
SHARD_BYTES = 500 * 2**20  # of pictures: large enough for few files, small enough to be fetched again


class _Number:
    """Of the shard that the next clip goes into."""

    def __init__(self) -> None:
        self.number = self.bytes = 0

    def __call__(self, clip: Clip) -> int:
        size = sum(len(frame.picture) for frame in clip.frames)
        if self.bytes and self.bytes + size > SHARD_BYTES:
            self.number, self.bytes = self.number + 1, 0
        self.bytes += size
        return self.number


def in_shards(clips: Iterator[Clip]) -> Iterator[tuple[int, Iterator[Clip]]]:
    """Numbers of shards, and the clips of each, to be taken before the next one."""
    return groupby(clips, _Number())


def write_shards(clips: Iterator[Clip], out: str, kind: Format) -> int:
    """OUT/shards/00000.parquet … or .tar, each with its sidecar. Returns how many files these are."""
    files = 0
    for number, some in in_shards(clips):
        write_shard(out, number, some, kind)
        files += 2
    return files
