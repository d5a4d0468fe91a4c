"""Shards in Parquet: one row a keyframe, with the columns of `vip.dataset.schema`.

In: samples, one after another. Out: a file of row groups, of which writer and reader hold one in memory; and the rows of such a file.
All columns are compressed, except for the pictures, which are compressed already.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from vip.dataset.parquet_rows import expand, largest_group_bytes, read_batches
from vip.dataset.rows import VideoSample
from vip.dataset.schema import COLUMNS, Row, rows_of
from vip.dataset.storage import library
from vip.untrusted import parse_json

GROUP_BYTES = 16 * 2**20  # of a row group, which is in memory several times while it is written
MOST_GROUP_BYTES = 2**30  # that is read; a group of vip has GROUP_BYTES and one more row
MOST_RATIO = 50  # of the bytes of rows to those of their file, most of which are pictures
ROWS_A_BATCH = 16  # in memory while a shard is read
JSON_COLUMNS = [name for name, (kind, _) in COLUMNS.items() if kind == "json"]
HUGGING_FACE = {"info": {"features": {"picture": {"_type": "Image"}}}}  # the library `datasets` then shows pictures


class ParquetShard:
    """A writer of samples to an open file; close it at the end."""

    def __init__(self, file: IO[bytes]) -> None:
        parquet = library("pyarrow.parquet")
        self._schema = schema()
        small = [name for name, (kind, _) in COLUMNS.items() if kind in {"string", "strings"}]
        self._writer = parquet.ParquetWriter(
            file,
            self._schema,
            compression={name: "NONE" if name == "picture.bytes" else "ZSTD" for name in _leaves(self._schema)},
            use_dictionary=[name for name in _leaves(self._schema) if name.partition(".")[0] in small],
            write_statistics=["video_id", "keyframe_id", "number", "time_s"],
        )
        self._rows: list[Row] = []
        self._bytes = 0

    def add(self, sample: VideoSample) -> None:
        for row in rows_of(sample):
            texts = {name: None if row[name] is None else json.dumps(row[name], ensure_ascii=False) for name in JSON_COLUMNS}
            size = len(row["picture"]["bytes"]) + sum(len(text) for text in texts.values() if text)
            if self._rows and self._bytes + size > GROUP_BYTES:
                self._flush()
            self._rows.append({**row, **texts})
            self._bytes += size

    def _flush(self) -> None:
        table = library("pyarrow").Table.from_pylist(self._rows, schema=self._schema)
        self._rows, self._bytes = [], 0
        self._writer.write_table(table)

    def close(self) -> None:
        if self._rows:
            self._flush()
        self._writer.close()


def read_parquet(file: IO[bytes]) -> Iterator[Row]:
    """Yield the rows of a shard.

    Raises:
        ValueError, KeyError: it is damaged, no shard, or unpacks to more than any shard of vip.
    """
    for row in read_columns(file, list(COLUMNS)):
        texts = {name: None if row.get(name) is None else parse_json(row[name]) for name in JSON_COLUMNS}
        yield {**row, **texts}


def read_columns(file: IO[bytes], columns: Sequence[str], *, groups: Sequence[int] | None = None) -> Iterator[Row]:
    """Yield these columns of the rows of a shard, as they are stored.

    Args:
        groups: the row groups to read; None means all.

    Raises:
        ValueError: it is damaged, no shard, or unpacks to more than any shard of vip.
    """
    with open_parquet(file) as shard:
        most_bytes = left_bytes = GROUP_BYTES + MOST_RATIO * file.seek(0, os.SEEK_END)
        for batch in read_batches(shard, columns, most_rows=ROWS_A_BATCH, groups=groups):
            rows = expand(batch)
            left_bytes -= rows.nbytes
            if left_bytes < 0:
                raise ValueError(f"rows of more than {most_bytes:,} bytes")
            yield from rows.to_pylist()


@contextmanager
def open_parquet(file: IO[bytes]) -> Iterator[Any]:
    """Open a shard, as pyarrow does.

    Raises:
        ValueError: a group of its rows states to have more than MOST_GROUP_BYTES once it is unpacked.
    """
    with library("pyarrow.parquet").ParquetFile(file, pre_buffer=False) as shard:
        if (largest := largest_group_bytes(shard.metadata)) > MOST_GROUP_BYTES:
            raise ValueError(f"a row group of {largest:,} bytes")
        yield shard


def schema() -> Any:
    """Return the schema for pyarrow, with a description of each column."""
    arrow = library("pyarrow")
    detection = [("label", arrow.string()), ("score", arrow.float64()), ("box_xyxy", arrow.list_(arrow.float64()))]
    kinds = {
        "string": arrow.string(),
        "json": arrow.string(),
        "strings": arrow.list_(arrow.string()),
        "int32": arrow.int32(),
        "float64": arrow.float64(),
        "vector": arrow.list_(arrow.float32()),
        "picture": arrow.struct([("bytes", arrow.binary()), ("path", arrow.string())]),
        "detections": arrow.list_(arrow.struct([*detection, ("source", arrow.string()), ("kind", arrow.string())])),
    }
    fields = [arrow.field(name, kinds[kind], metadata={"description": text}) for name, (kind, text) in COLUMNS.items()]
    return arrow.schema(fields, metadata={"huggingface": json.dumps(HUGGING_FACE)})


def _leaves(schema: Any) -> list[str]:
    """Return the paths of the stored values: `picture.bytes`, `objects.list.element`."""
    arrow = library("pyarrow")

    def under(kind: Any, path: str) -> Iterator[str]:
        if arrow.types.is_struct(kind):
            for field in kind:
                yield from under(field.type, f"{path}.{field.name}")
        elif arrow.types.is_list(kind):
            yield from under(kind.value_type, f"{path}.list.element")
        else:
            yield path

    return [leaf for field in schema for leaf in under(field.type, field.name)]
