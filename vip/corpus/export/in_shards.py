"""Many clips as shards of a handy size."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from vip.corpus.output.clip import Clip

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
