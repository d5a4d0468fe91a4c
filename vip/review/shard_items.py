"""The described keyframes of a data set, as items of a review: see `vip.review.items`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from vip.dataset.schema import rich_of
from vip.dataset.shard_names import FOLDER
from vip.dataset.shards import ShardInfo, read_shards
from vip.errors import StoreError
from vip.records import Detection, Verification
from vip.review.fields import TEXTS
from vip.review.items import ReviewItem, details_of, flagged_in
from vip.review.rich import rich_texts
from vip.review.shard_rows import ShardPictures, open_shard


def items_of_shards(folder: Path, note: Callable[[str], None]) -> Iterator[ReviewItem]:
    """Yield the described keyframes of a data set; `note` is called with a sentence for each shard that is not whole.

    Raises:
        StoreError: a shard is damaged.
        BackendError: a library for this kind of shard is missing.
    """
    for info in read_shards(str(folder), note):
        yield from _items_of_shard(folder, info)


def _items_of_shard(folder: Path, info: ShardInfo) -> Iterator[ReviewItem]:
    pictures = _LockedPictures(open_shard(str(folder), info))
    for place, row in pictures.shard.rows():
        try:
            if row["dense_caption"] is not None:
                verification = Verification.model_validate(row["verification"]) if row["verification"] else None
                texts = tuple("\n".join(row[name]) if name == "objects" else str(row[name]) for name in TEXTS)
                yield _item_of_row(row, texts, verification, pictures, place)
        except (ValueError, KeyError, TypeError) as exc:
            raise StoreError(f"{folder / FOLDER / info.file}: damaged ({exc}). Run the command that wrote it again.") from exc


def _item_of_row(
    row: dict[str, Any], texts: tuple[str, ...], verification: Verification | None, pictures: _LockedPictures, place: int
) -> ReviewItem:
    found = None if row["detections"] is None else tuple(Detection.model_validate(one) for one in row["detections"])
    return ReviewItem(
        id=str(row["keyframe_id"]),
        video=str(row["video_id"]),
        time_s=row["time_s"],
        texts=texts,
        engine=str(row["description_engine"]),
        width_px=int(row["width_px"]),
        height_px=int(row["height_px"]),
        suffix=f".{row['picture_format']}",
        details=details_of(found, verification),
        flagged=flagged_in(verification),
        pictures=pictures,
        place=place,
        rich=rich_texts(rich_of(row)),
    )


@dataclass(frozen=True, slots=True)
class _LockedPictures:
    """The pictures of a shard, for several threads."""

    shard: ShardPictures
    lock: Lock = field(default_factory=Lock)

    def read(self, place: int) -> bytes:
        with self.lock:
            return self.shard.read(place)
