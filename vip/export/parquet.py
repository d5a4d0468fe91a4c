"""`--to parquet`: a data set in Parquet, as `vip batch` writes it. In: samples. Out: OUT/shards/00000.parquet …, each with its sidecar."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vip.dataset.rows import VideoSample
from vip.export.in_shards import STALE_FILES, write_shards

__all__ = ["STALE_FILES", "write"]


def write(samples: Iterator[VideoSample], out: str, note: Callable[[str], None]) -> int:
    """Write the Parquet shards."""
    return write_shards(samples, out, "parquet")
