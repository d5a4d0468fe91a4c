"""The lines of a list, the records of a CSV and the objects of a JSONL file, from untrusted bytes.

In: a binary stream. Out: line numbers with texts, or a `BadRow`. Of a line without an end at most a block is in memory. A quote that is
never closed costs its own line, not the rest of the file.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from vip.corpus.inputs.rows import BadRow, bad_row
from vip.untrusted import long_cells, parse_json

BLOCK_BYTES = 2**18
RECORD_BYTES = 2**18
"""The longest row with columns, which may hold titles and descriptions."""
MOST_LINES_WITHOUT_ROW = 10**6
"""Blank lines, comments and empty cells, one after another: a hundred kilobytes of gzip unpack to a hundred million."""

Lines = Iterator[tuple[int, bytes]]


class LineStream(Protocol):
    """A binary file, a pipe, or a decompressor."""

    def read1(self, size: int = -1, /) -> bytes: ...


class CutOffError(Exception):
    """The stream ended after line `number`, before its end."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(why)
        self.number = number


@dataclass(slots=True)
class RowGap:
    """The lines that were read since the last row."""

    lines: int = 0


def bounded_lines(lines: Lines, gap: RowGap) -> Lines:
    """Yield the lines, as long as rows are among them.

    Args:
        gap: set `lines` to 0 at each row.

    Raises:
        CutOffError: there are too many lines without a row.
    """
    for number, line in lines:
        gap.lines += 1
        if gap.lines > MOST_LINES_WITHOUT_ROW:
            raise CutOffError(number - 1, f"{MOST_LINES_WITHOUT_ROW:,} lines one after another are blank or comments. Remove them")
        yield number, line


def lines_of(stream: LineStream) -> Lines:
    """Yield the number and the bytes of each line, without its end; of a line longer than `RECORD_BYTES` only the beginning.

    Raises:
        CutOffError: the stream cannot be read to its end.
    """
    number, rest, is_skipping = 0, b"", False
    while True:
        try:
            block = stream.read1(BLOCK_BYTES)
        except Exception as exc:  # compressions and file systems of fsspec have their own errors
            raise CutOffError(number, str(exc) or type(exc).__name__) from exc
        if not block:
            break
        lines = (rest + block).split(b"\n")
        rest = lines.pop()
        if is_skipping and lines:
            is_skipping = False
            del lines[0]
        for line in lines:
            number += 1
            yield number, line
        if is_skipping:
            rest = b""
        elif len(rest) > RECORD_BYTES:
            number += 1
            yield number, rest
            rest, is_skipping = b"", True
    if rest:
        yield number + 1, rest


def decode_line(line: bytes, where: str, limit: int = RECORD_BYTES, *, spaces: str | None = None) -> str | BadRow:
    """Return the text of a line without spaces around it, or a BadRow.

    Args:
        spaces: the characters that count as spaces; None means all that Unicode calls so.
    """
    if len(line) > limit:
        return bad_row(line[:limit].decode(errors="replace"), where, f"The row is longer than {limit} bytes.")
    try:
        return line.decode().strip(spaces)
    except UnicodeDecodeError:
        return bad_row(line.decode(errors="replace"), where, "The row is no UTF-8. Save the list as UTF-8.")


def records_of(lines: Lines, name: str, delimiter: str) -> Iterator[tuple[str, list[str] | BadRow]]:
    """Yield the place and the values of each record of a CSV; a field in quotes may span several lines."""
    waiting: deque[tuple[int, bytes]] = deque()
    spaces = " \r\n" if delimiter == "\t" else None  # a tab at an end stands for an empty column
    while True:
        first = waiting.popleft() if waiting else next(lines, None)
        if first is None:
            return
        where = f"{name}, line {first[0]}"
        text = decode_line(first[1], where, spaces=spaces)
        if isinstance(text, BadRow):
            yield where, text
        elif '"' not in text:
            if text.strip():
                yield where, text.split(delimiter)
        elif (values := _values(text, delimiter)) is not None:
            yield where, values
        else:
            taken = _read_to_closing_quote(first, waiting, lines)
            whole = decode_line(b"\n".join(line for _, line in taken), where, spaces=spaces)
            values = _values(whole, delimiter) if len(taken) > 1 and isinstance(whole, str) else None
            if values is None:
                waiting.extendleft(reversed(taken[1:]))
            yield where, bad_row(text, where, "Its quotes do not fit together.") if values is None else values


def _values(text: str, delimiter: str) -> list[str] | None:
    try:
        with long_cells():
            return next(csv.reader([text], delimiter=delimiter, strict=True, skipinitialspace=True))
    except csv.Error:
        return None


def _read_to_closing_quote(first: tuple[int, bytes], waiting: deque[tuple[int, bytes]], lines: Lines) -> list[tuple[int, bytes]]:
    """Return the lines up to the one that closes the quote of the first, or as many as a record may have."""
    taken, size, quotes = [first], len(first[1]), first[1].count(b'"')
    while quotes % 2 and size <= RECORD_BYTES:
        line = waiting.popleft() if waiting else next(lines, None)
        if line is None:
            break
        taken.append(line)
        size += len(line[1]) + 1
        quotes += line[1].count(b'"')
    return taken


def objects_of(lines: Lines, name: str) -> Iterator[tuple[str, dict[str, Any] | str | BadRow]]:
    """Yield the place of each line of a JSONL file, and its object or text."""
    for number, line in lines:
        where = f"{name}, line {number}"
        text = decode_line(line, where)
        if isinstance(text, BadRow):
            yield where, text
        elif text:
            try:
                value = parse_json(text)
            except ValueError:
                value = None
            if isinstance(value, dict | str):
                yield where, value
            else:
                yield where, bad_row(text, where, 'The row is no JSON object. Write one a line, such as {"id": "…"}.')
