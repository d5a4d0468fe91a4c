"""Text, JSON, TOML and CSV of others: print the one safely, and parse the others within limits."""

from __future__ import annotations

import csv
import json
import math
import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

JOINERS = "\u200c\u200d"  # letters of Persian and Hindi, and emoji, need them
MOST_JSON_BYTES = MOST_CELL_LETTERS = 64 * 2**20
DAMAGE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, EOFError, RecursionError, MemoryError, NotImplementedError)
"""The errors of parsing a file of somebody else that is damaged."""
MIN_INTEGER, MAX_INTEGER = -(2**63), 2**63 - 1  # of 64 bits, as columns have them

MOST_KEY_PARTS = 16  # of a dotted key in TOML
_KEY_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+"""
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-])(?:{_KEY_PART}\.[ \t]*+){{{MOST_KEY_PARTS}}}")  # the parser takes minutes for one of thousands
_NOT_PLAIN = re.compile(r"[^\x20-\x7e]")
_ESCAPED = re.compile(r"[\x7f-\xa0\xad\u0600-\u0605\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]")
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, the cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*+(?:\x07|\x1b\\|\x9c)"  # OSC and others that hold a text
    r"|\x1b[ -/]*[0-~]"
)


def printable(text: str) -> str:
    """Return the text without escape sequences, control characters, line breaks, and invisible marks such as those of direction."""
    if _NOT_PLAIN.search(text) is None:
        return text
    return _SEQUENCE.sub("", text).translate(_PRINTABLE)


def shorten(text: str, most: int) -> str:
    """Return the text, cut where it has more letters than `most`."""
    return text if len(text) <= most else f"{text[:most]}…"


def one_line(text: str) -> str:
    """Return the printable text with single spaces."""
    return " ".join(printable(text).split())


def clean_answer(text: str) -> str:
    """Return the text on one printable line. In JSON, escape sequences in strings are cleaned too."""
    line = one_line(text)
    for one in (text, line):  # a line break within a string makes it no JSON
        with suppress(ValueError):
            value = parse_json(one)
            return json.dumps(_clean_json(value), ensure_ascii=False) if isinstance(value, dict | list) else line
    return line


def _clean_json(value: Any) -> Any:
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, dict):
        return {one_line(name): _clean_json(one) for name, one in value.items()}
    return [_clean_json(one) for one in value] if isinstance(value, list) else value


class _PrintableLetters(dict[int, str]):
    """What is printed for each letter, by its code point, as `str.translate` asks for it."""

    def __missing__(self, code: int) -> str:
        self[code] = printed = _printable_letter(chr(code))
        return printed


_PRINTABLE = _PrintableLetters()


def _printable_letter(letter: str) -> str:
    if letter.isspace():
        return " "
    if letter.isprintable() or letter in JOINERS:
        return letter
    return {"Cs": "\N{REPLACEMENT CHARACTER}", "Co": letter, "Cn": letter}.get(unicodedata.category(letter), "")


def printable_json(value: Any) -> str:
    """Return the value as JSON on one line, with control characters of terminals escaped as `\\u009b`."""
    return escaped_json(json.dumps(value, ensure_ascii=False))


def escaped_json(text: str) -> str:
    """Return JSON that says the same, and does nothing to a terminal on which it is shown."""
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def parse_json(data: bytes | str, *, most_bytes: int = MOST_JSON_BYTES) -> Any:
    """Return the value of JSON that somebody else wrote.

    Raises:
        ValueError: it is no JSON, too large, nested deeper than 200, or has an integer beyond 64 bits, NaN or Infinity.
    """
    from pydantic_core import from_json  # not at the top, since every command loads this module

    if len(data) > most_bytes:
        raise ValueError(f"more than {most_bytes:,} bytes")
    try:
        value = from_json(data, allow_inf_nan=False, cache_strings="keys")  # caching all texts would keep them in memory
    except TypeError as exc:
        raise ValueError("half a pair of surrogates") from exc
    _check_numbers(value)
    return value


def parse_toml(data: bytes | str) -> dict[str, Any]:
    """Return the tables of TOML that somebody else wrote.

    Raises:
        ValueError: it is no TOML, nested too deep, or has an integer beyond 64 bits.
    """
    import tomllib

    text = data.decode() if isinstance(data, bytes) else data
    if _LONG_KEY.search(text):
        raise ValueError(f"a key of more than {MOST_KEY_PARTS} parts")
    try:
        tables = tomllib.loads(text)
    except RecursionError:
        raise ValueError("lists in lists, too deep") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:
        raise ValueError("a number of thousands of digits") from None
    _check_numbers(tables, infinite=True)
    return tables


@contextmanager
def long_cells() -> Iterator[None]:
    """Let cells of CSV be longer than the 131,072 letters that Python reads by default."""
    before = csv.field_size_limit(MOST_CELL_LETTERS)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _check_numbers(value: Any, *, infinite: bool = False) -> None:
    """Refuse integers beyond 64 bits, and infinite numbers unless they may be there; the parser limits the depth."""
    if isinstance(value, dict):
        for one in value.values():
            _check_numbers(one, infinite=infinite)
    elif isinstance(value, list):
        for one in value:
            _check_numbers(one, infinite=infinite)
    elif (isinstance(value, int) and not MIN_INTEGER <= value <= MAX_INTEGER) or (value in (math.inf, -math.inf) and not infinite):
        raise ValueError("a number beyond 64 bits")
