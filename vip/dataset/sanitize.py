"""Texts and names that any file and any reader can take, and that hold no secrets.

In: what videos, hosts and users brought along. Out: the same, as JSON can say it.
"""

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
LOGIN = re.compile(r"(?<=://)(?:[^/?#\s:]*:(?!\d+(?:[/?#\s]|$))\S*@|[^/?#\s]*@)")  # a password may hold a slash; a port is none
QUERY = re.compile(r"(://[^?#\s]*)[?#]\S*")


def is_plain_name(name: str) -> bool:
    """True for the name of a picture's file that can be written into any folder."""
    plain = PLAIN_NAME.fullmatch(name) and len(name.encode()) <= MOST_NAME_BYTES
    return bool(plain) and PurePath(name).suffix.lower() in PICTURE_SUFFIXES


def safe_key(text: str) -> str:
    """A key of letters that any system and any reader of shards takes as the name of a file."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", text)[:100].strip("_") or "video"


def without_secrets(text: str) -> str:
    """An address, or a text with some in it, without logins and queries."""
    return QUERY.sub(r"\1", LOGIN.sub("", text))


def tidy(record: RecordT) -> RecordT:
    """The record, without what no UTF-8 file can hold: names of files need not be text."""
    try:
        record.model_dump_json()
    except ValueError:
        return type(record).model_validate(plain(record.model_dump()))
    return record


def plain(value: Any, *, secret_queries: bool = False) -> Any:
    """The value as JSON can say it, addresses without login; `secret_queries`: and without query."""
    if isinstance(value, str):
        text = value.encode("utf-8", "backslashreplace").decode()
        return without_secrets(text) if secret_queries else LOGIN.sub("", text)
    if isinstance(value, dict):
        return {plain(str(name)): plain(one, secret_queries=secret_queries) for name, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(one, secret_queries=secret_queries) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float) else plain(str(value))
