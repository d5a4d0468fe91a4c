"""`--to parquet`: a data set as `vip batch` writes it. In: clips. Out: OUT/shards/00000.parquet …, each with its sidecar."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vip.corpus.export.in_shards import in_shards
from vip.corpus.output.clip import Clip
from vip.corpus.output.shards import write_shard

OLD = r"shards/\d{5,}\.(parquet|tar|json)"


def write(clips: Iterator[Clip], out: str, note: Callable[[str], None]) -> int:
    files = 0
    for number, some in in_shards(clips):
        write_shard(out, number, some, "parquet")
        files += 2
    return files
