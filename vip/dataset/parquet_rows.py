"""The rows of Parquet files of others, few enough at once that memory does not grow with what a file says.

A value that a file holds once may stand in any number of rows, and each row gets its own copy. As many rows are read at once as fit into
`ROWS_BYTES` if each is as large as its group states to be. In: an open file of pyarrow. Out: batches of its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from vip.dataset.storage import library

ROWS_BYTES = 128 * 2**20  # of the rows that are read at once


def read_batches(file: Any, columns: Sequence[str], *, most_rows: int, groups: Sequence[int] | None = None) -> Iterator[Any]:
    """Yield the rows in batches.

    Args:
        most_rows: in one batch.
        groups: the row groups to read; None means all.
    """
    rows = max(1, min(most_rows, ROWS_BYTES // max(1, largest_group_bytes(file.metadata))))
    yield from file.iter_batches(rows, row_groups=groups, columns=list(columns), use_threads=False)


def expand(batch: Any) -> Any:
    """Return the batch with a value of its own in each row, so that `nbytes` is what its rows have, after a check of all values.

    Raises:
        ValueError: a value is damaged, or a list has values that stand elsewhere.
    """
    batch.validate(full=True)  # pyarrow reads other memory where the number of a value is negative
    arrow = library("pyarrow")
    columns = [column.dictionary_decode() if isinstance(column, arrow.DictionaryArray) else column for column in batch.columns]
    if any("dictionary<" in str(column.type) for column in columns):
        raise ValueError("lists of categories")
    return arrow.RecordBatch.from_arrays(columns, names=batch.schema.names)


def largest_group_bytes(metadata: Any) -> int:
    """Return the bytes that the largest row group states to have once it is unpacked.

    The columns are not asked: for one whose statistics are damaged pyarrow 26 aborts the process.
    """
    return max((metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups)), default=0)
