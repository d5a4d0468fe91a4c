"""Sanitizing of texts and names from others: valid as JSON, safe as names of files, without secrets."""

from __future__ import annotations

import math
import re
from pathlib import PurePath
from typing import Any, TypeVar

from vip.records import PICTURE_SUFFIXES, Record

RecordT = TypeVar("RecordT", bound=Record)

KEY = re.compile(r"(?!\.+$)[A-Za-z0-9._-]{1,100}")
PLAIN_NAME = re.compile(r"[^./\\\x00-\x1f\x7f\ud800-\udfff][^/\\\x00-\x1f\x7f\ud800-\udfff]*")
MOST_NAME_BYTES = 200
LOGIN = re.compile(r"(?<=://)(?:[^/?#\s:]*:(?!\d+(?:[/?#\s]|$))\S*@|[^/?#\s]*@)")  # a password may hold a slash; a port is no password
QUERY = re.compile(r"[?#]")
WORD = re.compile(r"\S+")


def is_plain_name(name: str) -> bool:
    """Return whether the name of a picture's file can be written into any folder."""
    is_plain = PLAIN_NAME.fullmatch(name) and len(name.encode()) <= MOST_NAME_BYTES
    return bool(is_plain) and PurePath(name).suffix.lower() in PICTURE_SUFFIXES


def safe_key(text: str) -> str:
    """Return the text as a key: letters that every file system and every reader of shards takes in a name."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", text)[:100].strip("_") or "video"


def without_secrets(text: str) -> str:
    """Return an address, or a text with addresses in it, without logins and queries."""
    return WORD.sub(lambda word: _without_query(word[0]), without_logins(text))


def without_logins(text: str) -> str:
    """Return an address, or a text with addresses in it, without logins."""
    return WORD.sub(lambda word: _without_login(word[0]), text)


def _without_login(word: str) -> str:
    """Look no further than the last `@`: behind it each `://` would be looked through to the end of the word."""
    end = word.rfind("@") + 1
    return LOGIN.sub("", word[:end]) + word[end:] if end and "://" in word else word


def _without_query(word: str) -> str:
    start = word.find("://")
    found = QUERY.search(word, start) if start >= 0 else None
    return word[: found.start()] if found else word


def writable(record: RecordT) -> RecordT:
    """Return the record with texts that UTF-8 can encode; names of files need not be such."""
    try:
        record.model_dump_json()
    except ValueError:
        return type(record).model_validate(json_value(record.model_dump()))
    return record


def json_value(value: Any, *, secret_queries: bool = False) -> Any:
    """Return the value as JSON can hold it, with addresses without login.

    Args:
        secret_queries: remove queries of addresses too.
    """
    if isinstance(value, str):
        text = value.encode("utf-8", "backslashreplace").decode()
        return without_secrets(text) if secret_queries else without_logins(text)
    if isinstance(value, dict):
        return {json_value(str(name)): json_value(one, secret_queries=secret_queries) for name, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [json_value(one, secret_queries=secret_queries) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float) else json_value(str(value))
