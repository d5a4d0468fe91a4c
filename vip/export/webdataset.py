"""`--to webdataset`: tar files for training. In: clips. Out: OUT/shards/00000.tar …, each with its sidecar."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vip.dataset.rows import VideoSample
from vip.export.in_shards import OLD, write_shards

__all__ = ["OLD", "write"]


def write(samples: Iterator[VideoSample], out: str, note: Callable[[str], None]) -> int:
    return write_shards(samples, out, "webdataset")
