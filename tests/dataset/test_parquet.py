"""Shards in Parquet: all rows in groups of a bounded size, and damage is an error of Python, whatever byte it is."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.corpus.making import sample
from vip.dataset.parquet import ParquetShard, open_parquet, read_parquet
from vip.dataset.schema import rows_of
from vip.untrusted import DAMAGE


def test_a_group_that_is_full_is_written_and_the_rest_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    file, rows = io.BytesIO(), list(rows_of(one := sample("a")))
    monkeypatch.setattr("vip.dataset.parquet.GROUP_BYTES", 3 * len(rows[0]["picture"]["bytes"]))  # two rows and their texts
    shard = ParquetShard(file)
    shard.add(one)
    shard.close()
    assert [row["keyframe_id"] for row in read_parquet(file)] == [row["keyframe_id"] for row in rows]
    with open_parquet(file) as read:
        assert [read.metadata.row_group(number).num_rows for number in range(read.num_row_groups)] == [2, 1]


def test_a_row_that_is_larger_than_a_group_is_one_and_no_group_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.dataset.parquet.GROUP_BYTES", 1)
    shard = ParquetShard(file := io.BytesIO())
    shard.add(sample("a", count=2))
    shard.close()
    with open_parquet(file) as read:
        assert [read.metadata.row_group(number).num_rows for number in range(read.num_row_groups)] == [1, 1]


def test_a_shard_without_a_sample_has_no_group() -> None:
    ParquetShard(file := io.BytesIO()).close()
    with open_parquet(file) as read:
        assert read.num_row_groups == 0


def test_words_that_come_again_are_stored_once_and_pictures_are_not_packed() -> None:
    shard = ParquetShard(file := io.BytesIO())
    shard.add(sample("a", count=3))
    shard.close()
    with open_parquet(file) as read:
        group = read.metadata.row_group(0)
        columns = {one.path_in_schema: one for one in (group.column(number) for number in range(group.num_columns))}
    packed = {name for name, one in columns.items() if one.has_dictionary_page}
    assert {"video_id", "keyframe_id", "focus", "objects.list.element"} <= packed
    assert not {name for name in packed if name.startswith(("picture.", "number", "time_s"))}
    assert {name for name, one in columns.items() if one.compression == "UNCOMPRESSED"} == {"picture.bytes"}


def test_no_bit_of_the_footer_ends_the_process() -> None:
    """Statistics that do not fit made pyarrow abort the process when the columns were asked for their sizes."""
    whole = io.BytesIO()
    pq.write_table(pa.table({"objects": [["chair"]]}), whole, store_schema=False)
    data = whole.getvalue()
    errors = 0
    for place in range(len(data) - 8 - int.from_bytes(data[-8:-4], "little"), len(data) - 8):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[place] ^= 1 << bit
            try:
                list(read_parquet(io.BytesIO(damaged)))
            except (OSError, *DAMAGE):
                errors += 1
    assert errors > 500


def test_a_kind_of_column_that_nobody_reads_is_damage() -> None:
    assert issubclass(pa.ArrowNotImplementedError, DAMAGE)


def test_a_group_that_states_to_unpack_to_more_than_the_bound_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"objects": [["chair"]]}), file)
    size = pq.ParquetFile(file).metadata.row_group(0).total_byte_size
    monkeypatch.setattr("vip.dataset.parquet.MOST_GROUP_BYTES", size)
    with open_parquet(file) as shard:
        assert shard.read().num_rows == 1
    monkeypatch.setattr("vip.dataset.parquet.MOST_GROUP_BYTES", size - 1)
    with pytest.raises(ValueError, match=f"a row group of {size} bytes"), open_parquet(file):
        pass
