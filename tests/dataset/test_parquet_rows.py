"""Rows of Parquet files of others: few at once, each with its own values, none from elsewhere in memory."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vip.dataset import parquet_rows
from vip.dataset.parquet_rows import expand, read_batches


def opened(table: Any, **options: Any) -> Any:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return pq.ParquetFile(file)


def test_no_more_rows_are_read_at_once_than_fit_into_memory_if_each_is_as_large_as_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_rows, "ROWS_BYTES", 2**20)
    same = opened(pa.table({"url": ["x" * 2**17] * 100, "n": range(100)}))
    assert same.metadata.row_group(0).total_byte_size < 2**18
    batches = list(read_batches(same, ["url"], most_rows=50))
    assert sum(batch.num_rows for batch in batches) == 100
    assert max(batch.nbytes for batch in batches) <= 2**20
    small = opened(pa.table({"url": ["x"] * 100}), row_group_size=60)
    assert [batch.num_rows for batch in read_batches(small, ["url"], most_rows=50, groups=[0])] == [50, 10]
    large = opened(pa.table({"url": ["x" * 2**21]}))
    assert [batch.num_rows for batch in read_batches(large, ["url"], most_rows=50)] == [1]


def test_a_value_that_is_stored_once_counts_in_each_row() -> None:
    table = pa.table({"url": pa.array(["x" * 1000] * 20).dictionary_encode(), "n": range(20)})
    (batch,) = table.to_batches()
    assert batch.nbytes < 2000
    assert expand(batch).nbytes > 20_000
    assert expand(batch).to_pylist() == batch.to_pylist()


def test_a_value_from_elsewhere_in_memory_is_damage() -> None:
    """pyarrow read what lies before the values where a number is negative."""
    numbers = pa.array([-3, 0], pa.int32())
    elsewhere = pa.DictionaryArray.from_arrays(numbers, pa.array(["a", "b"]), safe=False)
    for column in (elsewhere, pa.ListArray.from_arrays(pa.array([0, 2]), elsewhere)):
        with pytest.raises(ValueError, match="out of bounds"):
            expand(pa.record_batch({"url": column}))


def test_lists_of_values_that_are_stored_once_are_refused() -> None:
    column = pa.ListArray.from_arrays(pa.array([0, 2]), pa.array(["a", "a"]).dictionary_encode())
    with pytest.raises(ValueError, match="lists of categories"):
        expand(pa.record_batch({"labels": column}))
