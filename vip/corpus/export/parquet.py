"""`--to parquet`: a data set as `vip batch` writes it. In: clips. Out: OUT/shards/00000.parquet …, each with its sidecar."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vip.corpus.export.in_shards import OLD, write_shards
from vip.corpus.output.clip import Clip

__all__ = ["OLD", "write"]


def write(clips: Iterator[Clip], out: str, note: Callable[[str], None]) -> int:
    return write_shards(clips, out, "parquet")
