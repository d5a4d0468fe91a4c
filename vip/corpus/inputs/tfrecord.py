"""Ids and labels from the TFRecord files of YouTube-8M, video level and frame level, without TensorFlow.

In: the bytes of a file. Out: a `LabelledVideo` for each record, or a `DamagedRecord` with its number. The masked CRC-32C of a record
is checked before it is parsed. A record with damaged content is skipped; one with a damaged length ends the file, since the start of the
next one is unknown.

Field 1 holds the features of a tf.train.Example, and the context of a tf.train.SequenceExample. The frames of the frame level, which are
nearly all of a file, are skipped without being parsed.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from vip.errors import BackendError

RECORD_BYTES = 64 * 2**20  # those of YouTube-8M have 5 kB at video level and 400 kB at frame level
IDS = ("id", "video_id")  # the second in the edition of 2016
_HEAD = struct.Struct("<QI")
_FOOT = struct.Struct("<I")
_MASK = 0xA282EAD8
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIGN, _RANGE = 1 << 63, 1 << 64


@dataclass(frozen=True, slots=True)
class LabelledVideo:
    """A video with its labels, from one record."""

    number: int
    """The number of the record in its file, from 1."""
    video_id: str
    labels: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DamagedRecord:
    """A record that is damaged."""

    number: int
    message: str


def read_records(file: BinaryIO) -> Iterator[LabelledVideo | DamagedRecord]:
    """Yield all records of an uncompressed stream.

    Raises:
        BackendError: the package that computes CRC-32C is not installed.
    """
    crc32c = _crc32c()
    number = 0
    while True:
        number += 1
        try:
            head = file.read(_HEAD.size)
            if not head:
                return
            length = _length(head, crc32c)
            data = file.read(length + _FOOT.size)
        except (EOFError, OSError, ValueError, zlib.error) as exc:  # of gzip; OSError: of the disk as well
            yield DamagedRecord(number, f"The file cannot be read from this record on: {exc or 'it is cut off'}.")
            return
        if len(data) < length + _FOOT.size:
            yield DamagedRecord(number, "The file ends in the middle of this record.")
            return
        yield _parse_record(number, memoryview(data), crc32c)


def starts_like_tfrecord(head: bytes) -> bool:
    """Return whether the first 12 bytes of a file are the length of a record and its checksum."""
    try:
        return len(head) >= _HEAD.size and bool(_length(head[: _HEAD.size], _crc32c()) or True)
    except (ValueError, BackendError):
        return False


def _crc32c() -> Callable[[bytes], int]:
    try:
        import google_crc32c
    except ImportError as exc:
        raise BackendError("Reading TFRecord files needs google-crc32c. Install it with pip install 'vip-keyframes[batch]'.") from exc

    def masked_crc(data: bytes) -> int:
        crc = google_crc32c.value(data)
        return int(((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF)

    return masked_crc


def _length(head: bytes, crc32c: Callable[[bytes], int]) -> int:
    if len(head) < _HEAD.size:
        raise ValueError("it ends in the middle of a record")
    length, crc = _HEAD.unpack(head)
    if crc32c(head[:8]) != crc:
        raise ValueError("the checksum of its length is wrong")
    if length > RECORD_BYTES:
        raise ValueError(f"it says to have {length} bytes, more than the {RECORD_BYTES} that are read")
    return int(length)


def _parse_record(number: int, data: memoryview, crc32c: Callable[[bytes], int]) -> LabelledVideo | DamagedRecord:
    content = bytes(data[: -_FOOT.size])
    if crc32c(content) != _FOOT.unpack(data[-_FOOT.size :])[0]:
        return DamagedRecord(number, "The checksum of this record is wrong; the file is damaged. Download it again.")
    try:
        video_id, labels = _parse_example(memoryview(content))
    except (ValueError, TypeError, struct.error):
        return DamagedRecord(number, "This record is neither a tf.train.Example nor a SequenceExample.")
    if video_id is None:
        return DamagedRecord(number, "This record has no feature id.")
    return LabelledVideo(number, video_id, labels)


# ---------------------------------------------------------------- protocol buffers


def _parse_example(example: memoryview) -> tuple[str | None, tuple[int, ...]]:
    """Return the id and the labels of an Example or SequenceExample."""
    names: dict[str, str] = {}
    labels: tuple[int, ...] = ()
    for features in _read_messages(example, 1):
        for entry in _read_messages(features, 1):
            name = b"".join(_read_messages(entry, 1)).decode()
            if name not in IDS and name != "labels":
                continue
            for feature in _read_messages(entry, 2):
                if name == "labels":
                    labels = tuple(number for numbers in _read_messages(feature, 3) for number in _read_int64s(numbers))
                else:
                    values = [bytes(value).decode("ascii") for texts in _read_messages(feature, 1) for value in _read_messages(texts, 1)]
                    names[name] = values[0] if len(values) == 1 else ""
    return next((names[name] for name in IDS if names.get(name)), None), labels


def _read_messages(message: memoryview, number: int) -> Iterator[memoryview]:
    """Yield the length-delimited fields of this number."""
    return (value for found, value in _read_fields(message) if found == number and isinstance(value, memoryview))


def _read_int64s(message: memoryview) -> Iterator[int]:
    """Yield the numbers in field 1 of an Int64List, packed or one by one."""
    for number, value in _read_fields(message):
        if number != 1:
            continue
        if isinstance(value, int):
            yield _to_signed(value)
            continue
        at = 0
        while at < len(value):
            one, at = _read_varint(value, at)
            yield _to_signed(one)


def _read_fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield number and value of each field, without those of fixed width, which are not used here."""
    at = 0
    while at < len(message):
        tag, at = _read_varint(message, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _read_varint(message, at)
            yield number, value
            continue
        if wire == _BYTES:
            size, at = _read_varint(message, at)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {wire}")
        if size > len(message) - at:
            raise ValueError("a field is longer than its message")
        if wire == _BYTES:
            yield number, message[at : at + size]
        at += size


def _read_varint(message: memoryview, at: int) -> tuple[int, int]:
    if at < len(message) and message[at] < 0x80:  # the fast path for nearly all of millions
        return message[at], at + 1
    value = 0
    for place in range(10):
        if at >= len(message):
            raise ValueError("a number is cut off")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value % _RANGE, at
    raise ValueError("a number has more than ten bytes")


def _to_signed(value: int) -> int:
    return value - _RANGE if value >= _SIGN else value
