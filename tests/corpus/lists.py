"""Lists as users and YouTube-8M write them: TFRecord bytes from an encoder of its own, a vocabulary, items."""

from __future__ import annotations

import csv
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

from vip.corpus.inputs.reading import read_items
from vip.corpus.inputs.rows import BadRow
from vip.corpus.inputs.vocabulary import Vocabulary, load_vocabulary
from vip.dataset.items import ListItem

HEADER = ["Index", "TrainVideoCount", "KnowledgeGraphId", "Name", "WikiUrl", "Vertical1", "Vertical2", "Vertical3", "WikiDescription"]
CONCERT = "A concert is a live music performance in front of an audience. The invention of the U.S. Navy band was not it. Third."
TOPICS: Sequence[tuple[int, str, Sequence[str], str]] = (
    (3, "Concert", ["Arts & Entertainment"], CONCERT),
    (7, "Car", ["Autos & Vehicles"], "A car is a wheeled, self-powered motor vehicle. It has wheels."),
    (252, "Snow", ["News", "Science"], "Snow refers to forms of ice crystals."),
    (9, "", ["(Unknown)"], ""),
)


def vocabulary_file(folder: Path, topics: Iterable[tuple[int, str, Sequence[str], str]] = TOPICS) -> Path:
    path = folder / "vocabulary.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(HEADER)
        for index, name, verticals, description in topics:
            rows.writerow([index, 100, f"/m/{index}", name, "", *[*verticals, "", "", ""][:3], description])
    return path


def vocabulary(folder: Path) -> Vocabulary:
    return load_vocabulary(vocabulary_file(folder))


def read(path: Path | str, *, public_only: bool = False, vocabulary: Vocabulary | None = None) -> list[ListItem | BadRow]:
    return list(read_items([str(path)], public_only=public_only, vocabulary=vocabulary))


def items(rows: Iterable[ListItem | BadRow]) -> list[ListItem]:
    return [row for row in rows if isinstance(row, ListItem)]


def bad(rows: Iterable[ListItem | BadRow]) -> list[BadRow]:
    return [row for row in rows if isinstance(row, BadRow)]


def item(key: str, *, labels: Sequence[str] = (), verticals: Sequence[str] = ()) -> ListItem:
    return ListItem(key, "youtube", key, "list, line 1", tuple(labels), tuple(verticals))


# ---------------------------------------------------------------- TFRecord


def crc32c(data: bytes) -> int:
    """Bit by bit, as RFC 3720 has it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + _masked(length) + data + _masked(data)


def varint(value: int) -> bytes:
    value %= 1 << 64
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def feature(name: str, kind: int, values: bytes) -> bytes:
    return field(1, field(1, name.encode()) + field(2, field(kind, values)))


def features(video_id: bytes, labels: Sequence[int], *, packed: bool = True, name: str = "id") -> bytes:
    numbers = field(1, b"".join(map(varint, labels))) if packed else b"".join(varint(1 << 3) + varint(label) for label in labels)
    floats = field(1, struct.pack("<3f", 1.0, 2.0, 3.0))
    return feature("mean_rgb", 2, floats) + feature("labels", 3, numbers) + feature(name, 1, field(1, video_id))


def example(video_id: bytes, labels: Sequence[int], **options: bool | str) -> bytes:
    """Video level: a tf.train.Example."""
    return field(1, features(video_id, labels, **options))  # type: ignore[arg-type]


def sequence_example(video_id: bytes, labels: Sequence[int]) -> bytes:
    """Frame level: the context, and beside it lists of features with a name `id` that means nothing."""
    frames = field(1, field(1, b"id") + field(2, field(1, field(1, field(1, b"NOPE")))))
    return field(1, features(video_id, labels)) + field(2, frames * 3)
