"""JSON `{"section": [row, row, …], …}` or `[row, row, …]` of any length, one row in memory at a time.

The JSON library of vip parses each row; only where a row ends is found here: at its first `}`, or, where that is one inside, by
the decoder of Python. A row is an object.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from json import JSONDecodeError, JSONDecoder
from pathlib import Path
from typing import IO, Any, NoReturn

from pydantic_core import from_json

from vip.errors import InputError
from vip.untrusted import one_line

MOST_BYTES = 160 * 2**20
"""Of a file: the predictions of TVR have some 100 MB."""
MOST_BLANK_LINES = 10**6
"""Of a file: a few hundred kilobytes of gzip unpack to hundreds of millions."""
ANOTHER_FILE = "Give another file, or a part of this one."
MOST_ROW_BYTES = 8 * 2**20
FIRST_BYTES = 2**16
"""Of a row in which its end is sought first."""
LONGEST_WORD = 16
"""Bytes before its end where JSON that is cut off is at fault: `-Infinity`."""
MOST_NAME_BYTES = 1000  # of a section
BLOCK_BYTES = 2**20
_NOT_BLANK = re.compile(rb"[^ \t\r\n]")
_DECODER = JSONDecoder()


@contextmanager
def open_bounded(path: Path, most_bytes: int = MOST_BYTES, *, advice: str = ANOTHER_FILE) -> Iterator[IO[bytes]]:
    """Open a file of predictions, or one that gzip packed.

    Args:
        advice: what to give instead of a file that is none, or too large.

    Raises:
        InputError: it cannot be read, is no file, or is too large.
    """
    if not path.is_file():
        raise InputError(f"{path} is no file. {advice}")
    if path.stat().st_size > most_bytes:
        raise InputError(f"{path} has {path.stat().st_size:,} bytes, and more than {most_bytes:,} are not read. {advice}")
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield _Bounded(file, path, most_bytes, advice)  # type: ignore[misc]  # it reads as the file does
    except (OSError, EOFError, zlib.error) as exc:
        raise InputError(f"{path} cannot be read: {getattr(exc, 'strerror', None) or 'it is damaged'}.") from exc


class _Bounded:
    """A file of which no more than so many bytes and blank lines are read, also if gzip packed them."""

    def __init__(self, file: Any, path: Path, most_bytes: int, advice: str) -> None:
        self._file, self._path, self._left, self._advice = file, path, most_bytes, advice
        self._blank_lines = 0

    def read(self, size: int = -1) -> bytes:
        return self._count(self._file.read(self._left + 1 if size < 0 else size))

    def readline(self, size: int) -> bytes:
        line = self._count(self._file.readline(size))
        self._blank_lines += line.isspace()
        if self._blank_lines > MOST_BLANK_LINES:
            raise InputError(f"{self._path} has more than {MOST_BLANK_LINES:,} blank lines. {self._advice}")
        return line

    def _count(self, data: bytes) -> bytes:
        self._left -= len(data)
        if self._left < 0:
            raise InputError(f"{self._path} has too many bytes unpacked. {self._advice}")
        return data


def iterate_array(file: IO[bytes], path: Path, expected: str) -> Iterator[Any]:
    """Yield the rows of `[row, row, …]`.

    Args:
        expected: the form, for messages.

    Raises:
        InputError: it is no such JSON, or has NaN or Infinity; the message says where.
    """
    reader = _Reader(file, path, expected)
    reader.expect(b"[")
    yield from reader.read_rows("the list")
    reader.check_end()


def iterate_rows(file: IO[bytes], path: Path, expected: str) -> Iterator[tuple[str, Any]]:
    """Yield the section and the value of each row of `{"section": [row, row, …], …}`; arguments and errors as of `iterate_array`."""
    reader = _Reader(file, path, expected)
    reader.expect(b"{")
    while reader.skip() != b"}":
        section = reader.read_key()
        reader.expect(b":")
        reader.expect(b"[")
        for row in reader.read_rows(section):
            yield section, row
        if reader.skip() != b"}":
            reader.expect(b",")
    reader.expect(b"}")
    reader.check_end()


class _Reader:
    """A window of the file that moves on."""

    def __init__(self, file: IO[bytes], path: Path, expected: str) -> None:
        self._file, self._path, self._expected = file, path, expected
        self._window, self._place, self._before = b"", 0, 0

    def refuse(self, problem: str) -> NoReturn:
        place = self._before + self._place + 1
        raise InputError(f"{self._path}, byte {place:,}: {problem}. Expected {self._expected}.")

    def skip(self) -> bytes:
        """Return the next byte that is not blank, and leave it; nothing at the end."""
        while (found := _NOT_BLANK.search(self._window, self._place)) is None:
            self._place = len(self._window)
            if not self._read_on():
                return b""
        self._place = found.start()
        return found[0]

    def expect(self, wanted: bytes) -> None:
        found = self.skip()
        if found != wanted:
            self.refuse(f"expected {wanted.decode()}, found {one_line(found.decode('ascii', 'replace')) or 'the end'}")
        self._place += 1

    def read_key(self) -> str:
        if self.skip() != b'"':
            self.refuse("expected the name of a section")
        while (end := self._window.find(b'"', self._place + 1)) < 0:
            if len(self._window) - self._place > MOST_NAME_BYTES or not self._read_on():
                self.refuse("the name of a section has no end")
        key = self._window[self._place + 1 : end].decode("utf-8", "replace")
        self._place = end + 1
        return key

    def read_rows(self, section: str) -> Iterator[Any]:
        """Yield the rows up to the end of their list."""
        while self.skip() != b"]":
            yield self.read_row(section)
            if self.skip() != b"]":
                self.expect(b",")
        self.expect(b"]")

    def check_end(self) -> None:
        if self.skip():
            self.refuse("something follows the end of the JSON")

    def read_row(self, section: str) -> Any:
        """Return the value of an object, and move behind it."""
        row = f"a row of {one_line(section)[:40]}"
        if self.skip() != b"{":
            self.refuse(f"{row} is no object")
        value, problem = None, ""
        for find in (self._first_brace, self._end_of_object):
            length = find(row)
            try:
                value = from_json(self._window[self._place : self._place + length], allow_inf_nan=False, cache_strings="keys")
            except (ValueError, TypeError) as exc:  # half a pair of surrogates is a TypeError
                problem = one_line(str(exc))[:80]
            else:
                self._place += length
                return value
        return self.refuse(f"{row} is no JSON ({problem})")

    def _first_brace(self, row: str) -> int:
        """Return the length of the row up to its first closing brace, with which most rows end."""
        length = 0
        while (brace := self._window.find(b"}", self._place + length)) < 0:
            length = len(self._window) - self._place
            self._read_more(row, length, "it has no end")
        return brace + 1 - self._place

    def _end_of_object(self, row: str) -> int:
        """Return the length of a row that has objects, or braces in texts, inside."""
        length = FIRST_BYTES
        while True:
            text = self._window[self._place : self._place + length].decode("latin-1")  # a letter a byte
            try:
                return _DECODER.raw_decode(text)[1]
            except RecursionError:
                self.refuse(f"{row} is nested too deep")
            except ValueError as exc:
                is_cut = not isinstance(exc, JSONDecodeError) or exc.pos > len(text) - LONGEST_WORD or exc.msg.startswith("Unterminated")
                if not is_cut:
                    return len(text)  # the JSON library of vip says what is wrong
                if len(text) < length:
                    self._read_more(row, len(text), one_line(str(exc))[:80])
            length *= 4

    def _read_more(self, row: str, length: int, problem: str) -> None:
        if length > MOST_ROW_BYTES:
            self.refuse(f"{row} has more than {MOST_ROW_BYTES:,} bytes")
        if not self._read_on():
            self.refuse(f"{row} is no JSON ({problem})")

    def _read_on(self) -> bool:
        """Move the window on, and return whether there was more."""
        block = self._file.read(BLOCK_BYTES)
        self._before += self._place
        self._window = self._window[self._place :] + block
        self._place = 0
        return bool(block)
