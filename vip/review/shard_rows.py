"""The rows of a shard without their pictures, and one picture at a time.

In: a shard of a data set. Out: its rows with the place of their pictures. A Parquet shard is read by columns, and a picture by its row
group, the last of which is kept; of a tar the places of the pictures in the file are kept.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from itertools import groupby
from typing import Any, Protocol

from vip.dataset import storage
from vip.dataset.parquet import JSON_COLUMNS, open_parquet, read_columns
from vip.dataset.parts import regular_members
from vip.dataset.shard_names import FOLDER
from vip.dataset.shards import AGAIN, ShardInfo
from vip.errors import StoreError
from vip.review.fields import ALL_TEXTS
from vip.untrusted import DAMAGE, parse_json

COLUMNS = (
    *("video_id", "keyframe_id", "number", "time_s", "picture_format", "width_px", "height_px", "detections"),
    *("description_engine", "verification", *ALL_TEXTS),
)
MOST_MEMBER_BYTES = 64 * 2**20


class ShardPictures(Protocol):
    """A shard that is read by rows and by pictures."""

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield each row, without its picture, and the place of the picture.

        Raises:
            StoreError: the shard is damaged.
        """

    def read(self, place: int) -> bytes:
        """Return the bytes of the picture at this place; errors as of `rows`."""


def open_shard(address: str, info: ShardInfo) -> ShardPictures:
    """Return the shard."""
    return ParquetPictures(address, info) if info.format == "parquet" else TarPictures(address, info)


class ParquetPictures:
    """A shard in Parquet."""

    def __init__(self, address: str, info: ShardInfo) -> None:
        self._address, self._file = address, info.file
        self._group: tuple[int, list[bytes]] = (-1, [])
        self._starts: list[int] = []

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        place = 0
        try:
            with storage.reading(self._address, FOLDER, self._file) as file:
                with open_parquet(file) as shard:
                    groups = [shard.metadata.row_group(number).num_rows for number in range(shard.metadata.num_row_groups)]
                self._starts = [sum(groups[:number]) for number in range(len(groups))]
                for row in read_columns(file, COLUMNS):
                    texts = {name: parse_json(row[name]) for name in JSON_COLUMNS if row.get(name) is not None}
                    yield place, {**row, **texts}
                    place += 1
        except DAMAGE as exc:
            raise self._damaged(exc) from exc

    def read(self, place: int) -> bytes:
        group = max(number for number, start in enumerate(self._starts) if start <= place)
        if self._group[0] != group:
            try:
                with storage.reading(self._address, FOLDER, self._file) as file:
                    pictures = [bytes(row["picture"]["bytes"]) for row in read_columns(file, ["picture"], groups=[group])]
                self._group = (group, pictures)
            except DAMAGE as exc:
                raise self._damaged(exc) from exc
        return self._group[1][place - self._starts[group]]

    def _damaged(self, exc: BaseException) -> StoreError:
        return StoreError(f"{storage.join(self._address, FOLDER, self._file)}: damaged ({exc}). {AGAIN}")


class TarPictures:
    """A shard as a tar file."""

    def __init__(self, address: str, info: ShardInfo) -> None:
        self._address, self._file = address, info.file
        self._places: list[tuple[int, int]] = []

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        try:
            with storage.reading(self._address, FOLDER, self._file) as file, tarfile.open(fileobj=file, mode="r:") as archive:
                for _, group in groupby(regular_members(archive), key=lambda member: member.name.partition(".")[0]):
                    members = {member.name.partition(".")[2]: member for member in group}
                    row = parse_json(self._text(archive, members["json"]))
                    picture = members[row["picture_format"]]
                    self._places.append((picture.offset_data, picture.size))
                    yield len(self._places) - 1, {name: row.get(name) for name in COLUMNS}
        except (tarfile.TarError, *DAMAGE) as exc:
            raise self._damaged(exc) from exc

    def _text(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
        file = archive.extractfile(member)
        if file is None or member.size > MOST_MEMBER_BYTES:
            raise ValueError(f"{member.name} is too large")
        return file.read()

    def read(self, place: int) -> bytes:
        start, size = self._places[place]
        if size > MOST_MEMBER_BYTES:
            raise self._damaged(ValueError(f"a picture has {size:,} bytes"))
        with storage.reading(self._address, FOLDER, self._file) as file:
            file.seek(start)
            return file.read(size)

    def _damaged(self, exc: BaseException) -> StoreError:
        return StoreError(f"{storage.join(self._address, FOLDER, self._file)}: damaged ({exc}). {AGAIN}")
