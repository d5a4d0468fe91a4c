"""Reader of the videos of lists, one after another; a list may be longer than memory.

In: text files, `-`, CSV, TSV, JSONL, Parquet and TFRecord files, with or without gzip, folders and globs of them, addresses for fsspec
(s3://…), and videos or ids. Out: a `ListItem` for each video, a `BadRow` for each row that names none.

The first bytes of a file decide its format (Parquet, gzip, TFRecord), or else its suffix. A text file whose first line has names of
columns is a CSV; one that starts with `{` is JSONL. Relative paths start at the folder of the list.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, cast

from vip.corpus.inputs.columns import COLUMNS, SOURCES, column_name, items_of_columns
from vip.corpus.inputs.lines import RECORD_BYTES, CutOffError, Lines, RowGap, bounded_lines, decode_line, lines_of, objects_of, records_of
from vip.corpus.inputs.lists import GZIP, PARQUET, Given, TypedRow, given_lists, open_list
from vip.corpus.inputs.rows import ROW_BYTES, YOUTUBE8M_ID, BadRow, bad_row, items_of
from vip.corpus.inputs.tfrecord import DamagedRecord, read_records, starts_like_tfrecord
from vip.corpus.inputs.vocabulary import Vocabulary
from vip.dataset.items import ListItem
from vip.dataset.parquet_rows import expand, read_batches
from vip.download.addresses import YOUTUBE_ID
from vip.errors import MOST_PROBLEM_LETTERS, BackendError, InputError
from vip.untrusted import DAMAGE, one_line

UTF16 = (b"\xff\xfe", b"\xfe\xff")
DELIMITERS = ",;\t"
NAME = re.compile(r"[A-Za-z_][\w -]*")  # what may be the name of a column
ROWS_A_BATCH = 256  # of Parquet, in memory at once; more are no faster

Rows = Iterator[ListItem | BadRow]


@dataclass(frozen=True, slots=True)
class _Context:
    """The list of a row, and the settings that hold for all rows."""

    name: str
    folder: Path
    public_only: bool
    vocabulary: Vocabulary | None

    def text(self, text: str, where: str) -> Rows:
        return items_of(text, where, folder=self.folder, public_only=self.public_only)

    def row(self, row: Mapping[str, Any], where: str) -> Rows:
        return items_of_columns(row, where, folder=self.folder, public_only=self.public_only, vocabulary=self.vocabulary)


def read_items(lists: Sequence[str], *, public_only: bool = False, vocabulary: Vocabulary | None = None) -> Rows:
    """Yield the videos of all lists in their order.

    Args:
        public_only: local paths and hosts of the private network are bad rows.
        vocabulary: gives labels their names and verticals.

    Raises:
        InputError: a list is missing, unreadable, or no list. A local one that is missing is found before the first row.
        BackendError: a list needs a package that is not installed.
    """
    given = list(chain.from_iterable(map(given_lists, lists)))
    return chain.from_iterable(_read(one, public_only, vocabulary) for one in given)


def _read(given: Given, public_only: bool, vocabulary: Vocabulary | None) -> Rows:
    if isinstance(given, TypedRow):
        yield from items_of(given.text, "command line", folder=Path(), public_only=public_only)
        return
    context = _Context(given.name, given.folder, public_only, vocabulary)
    with ExitStack() as stack:
        stream = stack.enter_context(open_list(given))
        try:
            if stream.peek(2)[:2] == GZIP:
                stream = cast(io.BufferedReader, stack.enter_context(gzip.GzipFile(fileobj=stream)))
            head = stream.peek(len(PARQUET) + 8)
        except (OSError, EOFError, zlib.error) as exc:
            raise InputError(f"{given.name} cannot be read: {exc}.") from exc
        gap = RowGap()
        try:
            for row in _rows(stream, head, given.suffix, context, gap):
                gap.lines = 0
                yield row
        except CutOffError as exc:
            where = f"{context.name}, line {exc.number + 1}"
            yield bad_row("", where, f"The list cannot be read from here on: {exc}.")


def _rows(stream: io.BufferedReader, head: bytes, suffix: str, context: _Context, gap: RowGap) -> Rows:
    if head.startswith(PARQUET) or suffix == ".parquet":
        return _parquet(stream, context)
    if suffix.startswith(".tfrecord") or starts_like_tfrecord(head):
        return _tfrecord(stream, context)
    if head.startswith(UTF16):
        raise InputError(f"{context.name} is UTF-16. Save it as UTF-8.")
    lines = bounded_lines(lines_of(stream), gap)
    first = next(lines, None)
    if first is None:
        return iter(())
    start = first[1].removeprefix(b"\xef\xbb\xbf")
    lines = chain([(1, start)], lines)
    if suffix in (".jsonl", ".ndjson", ".json") or start.lstrip().startswith(b"{"):
        return _jsonl(lines, start, context)
    delimiter = _delimiter(start)
    if delimiter or suffix in (".csv", ".tsv"):
        return _csv(lines, delimiter or ("\t" if suffix == ".tsv" else ","), context)
    return _text(lines, context)


def _text(lines: Lines, context: _Context) -> Rows:
    for number, line in lines:
        where = f"{context.name}, line {number}"
        text = decode_line(line, where, ROW_BYTES)
        if isinstance(text, BadRow):
            yield text
        elif text and not text.startswith("#"):
            yield from context.text(text, where)


def _delimiter(line: bytes) -> str | None:
    """Return the delimiter of a header; None for a line that is no header.

    A single word is a header only where it is unlikely to be a path: `video` may be a folder, `video_id` is not.
    """
    cells = {mark: line[:ROW_BYTES].decode(errors="replace").strip().split(mark) for mark in DELIMITERS}
    if all(len(one) == 1 for one in cells.values()) and not column_name(cells[","][0]).endswith(("id", "url")):
        return None
    return next((mark for mark, one in cells.items() if any(map(_is_source, one))), None)


def _is_source(cell: str) -> bool:
    return column_name(cell.strip().strip('"')) in SOURCES


def _csv(lines: Lines, delimiter: str, context: _Context) -> Rows:
    names: list[str] | None = None
    for where, values in records_of(lines, context.name, delimiter):
        if isinstance(values, BadRow):
            yield values
        elif names is None:
            names = _header(values, context)
            if names is None:
                names = [SOURCES[0]]
                yield from context.row({names[0]: values[0]}, where)
        elif any(values):
            yield from context.row(dict(zip(names, values, strict=False)), where)


def _header(values: Sequence[str], context: _Context) -> list[str] | None:
    """Return the names of the columns; None where the first line is a row."""
    if any(_is_source(value) for value in values):
        return [column_name(value) for value in values]
    if "KnowledgeGraphId" in values:
        raise InputError(f"{context.name} is the vocabulary of YouTube-8M and no list. Give it with --vocabulary {context.name}.")
    first = values[0].strip()
    if len(values) > 1 and NAME.fullmatch(first) and not YOUTUBE_ID.fullmatch(first) and not YOUTUBE8M_ID.fullmatch(first):
        raise _no_column(context, values)
    return None


def _no_column(context: _Context, names: Sequence[str]) -> InputError:
    listed = ", ".join(name[:40] for name in names[:12])
    return InputError(f"{context.name} has no column such as id, url or path. Rename one of its columns: {listed}.")


def _jsonl(lines: Lines, start: bytes, context: _Context) -> Rows:
    if start.lstrip().startswith(b"["):
        raise InputError(f"{context.name} is one JSON array. Write an object a line: jq -c '.[]' {context.name} > list.jsonl")
    for where, value in objects_of(lines, context.name):
        if isinstance(value, BadRow):
            yield value
        elif isinstance(value, str):
            yield from context.text(value, where)
        else:
            yield from context.row({column_name(name): one for name, one in value.items()}, where)


def _parquet(stream: io.BufferedReader, context: _Context) -> Rows:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as exc:
        raise BackendError("Reading Parquet needs pyarrow. Install it with pip install 'vip-keyframes[batch]'.") from exc
    if not stream.seekable():
        raise InputError(f"{context.name} is Parquet, which cannot be read from a pipe. Save it to a file first.")
    try:
        file = parquet.ParquetFile(stream)
        names = {name: column_name(name) for name in file.schema_arrow.names}
    except (pyarrow.ArrowException, OSError, *DAMAGE) as exc:
        raise InputError(f"{context.name} is no Parquet file, or damaged: {one_line(str(exc))[:MOST_PROBLEM_LETTERS]}.") from exc
    if len(names) == 1:
        names = dict.fromkeys(names, SOURCES[0])
    wanted = [name for name in names if names[name] in COLUMNS]
    if not any(name in SOURCES for name in names.values()):
        raise _no_column(context, list(names))
    number = 0
    try:
        for batch in read_batches(file, wanted, most_rows=ROWS_A_BATCH):
            for row in _rows_of(batch):
                number += 1
                where = f"{context.name}, row {number}"
                if isinstance(row, str):
                    yield bad_row("", where, row)
                else:
                    yield from context.row({names[name]: value for name, value in row.items()}, where)
    except (pyarrow.ArrowException, OSError) as exc:
        yield bad_row("", f"{context.name}, row {number + 1}", f"The list cannot be read from here on: {exc}.")


def _rows_of(batch: Any) -> Iterator[dict[str, Any] | str]:
    """Yield the rows of a batch; in the place of one that cannot be read the reason, as a sentence."""
    try:
        whole = expand(batch)
        rows = whole.to_pylist() if whole.nbytes <= RECORD_BYTES else None
    except (OSError, *DAMAGE):  # OSError: a time zone that is a folder
        rows = None
    yield from map(_row_of, (batch.slice(place, 1) for place in range(batch.num_rows))) if rows is None else rows


def _row_of(batch: Any) -> dict[str, Any] | str:
    try:
        whole = expand(batch)
        if whole.nbytes > RECORD_BYTES:
            return f"The row is longer than {RECORD_BYTES} bytes."
        row: dict[str, Any] = whole.to_pylist()[0]
    except UnicodeDecodeError:
        return "The row is no UTF-8."
    except (OSError, *DAMAGE) as exc:
        return f"The row has a value that cannot be read: {one_line(str(exc))[:MOST_PROBLEM_LETTERS].rstrip('.')}."
    return row


def _tfrecord(stream: BinaryIO, context: _Context) -> Rows:
    for record in read_records(stream):
        where = f"{context.name}, record {record.number}"
        if isinstance(record, DamagedRecord):
            yield bad_row("", where, record.message)
        elif YOUTUBE8M_ID.fullmatch(record.video_id) or YOUTUBE_ID.fullmatch(record.video_id):
            yield from context.row({"id": record.video_id, "labels": list(map(str, record.labels))}, where)
        else:
            yield bad_row(record.video_id, where, "The feature id of this record is no id of YouTube-8M or YouTube.")
