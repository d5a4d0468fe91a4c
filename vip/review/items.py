"""What is reviewed: the described keyframes of a run folder, of a folder of runs, or of a data set.

In: a folder. Out: an `ItemIndex`, which holds of each keyframe its texts and a few numbers (some 3 kB), and reads its picture on request.
Items have an id, which the log of the review uses, and a number, by which the page asks; nobody asks by path. A folder may come from a
stranger: its rows are checked as those of any run, and pictures are read as `vip.files` reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from threading import Lock
from typing import Any, Protocol
from urllib.parse import unquote

from vip import files, store
from vip.dataset import storage
from vip.dataset.shards import FOLDER, NAME, ShardInfo, read_shards
from vip.errors import InputError, StoreError
from vip.export.sources import sources_of
from vip.records import Description, Detection, Keyframe, Verification
from vip.report.video_link import PLAYED_SUFFIXES, video_link
from vip.review.fields import TEXTS
from vip.review.shard_rows import ShardPictures, open_shard
from vip.store import Run
from vip.wording import call

MEDIA_TYPES = {
    **{".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".webp": "image/webp", ".gif": "image/gif", ".bmp": "image/bmp"},
    **{".mp4": "video/mp4", ".m4v": "video/mp4", ".webm": "video/webm", ".mkv": "video/x-matroska"},
}
MOST_PICTURE_BYTES = 64 * 2**20


class PictureReader(Protocol):
    """Where the pictures of some items lie."""

    def read(self, place: int) -> bytes:
        """Return the bytes of a picture's file.

        Raises:
            InputError, StoreError: it is missing, damaged or too large.
        """


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """A described keyframe."""

    id: str
    """Unique in the folder: the id of the keyframe; in a folder of runs the name of the run before it."""
    video: str
    time_s: float | None
    texts: tuple[str, ...]
    """As the engine wrote them, in the order of `TEXTS`; the objects one a line."""
    engine: str
    width_px: int
    height_px: int
    suffix: str
    """Of the picture's file, with its dot."""
    details: bytes
    """The detections and the verification, as JSON: as objects they would be ten times as large."""
    flagged: tuple[str, ...]
    """The texts of which `--verify` found a claim without support."""
    pictures: PictureReader = field(repr=False, compare=False)
    place: int = field(repr=False, compare=False)
    source: int = 0
    """The number of its run among those of a folder; of a data set 0."""

    @property
    def media_type(self) -> str | None:
        """None for a picture that a browser does not show."""
        return MEDIA_TYPES.get(self.suffix)

    def read_picture(self) -> bytes:
        """Return the bytes of the picture's file; errors as of `PictureReader.read`."""
        return self.pictures.read(self.place)


@dataclass(frozen=True, slots=True)
class ItemIndex:
    """The items of a folder in order: video after video, each in time order."""

    folder: Path
    items: Sequence[ReviewItem]
    runs: Sequence[Run] = ()
    """None for a data set."""
    numbers: dict[str, int] = field(default_factory=dict)
    """The place of each id among the items."""

    def __post_init__(self) -> None:
        self.numbers.update((item.id, number) for number, item in enumerate(self.items))
        if len(self.numbers) != len(self.items):
            raise StoreError(f"{self.folder}: two keyframes have one id. Make the runs again.")

    def neighbours(self, number: int, *, each_side: int = 2) -> list[int]:
        """Return the numbers of the items before and after it in its video, without its own."""
        nearby = range(max(0, number - each_side), min(len(self.items), number + each_side + 1))
        own = self.items[number]
        return [
            other for other in nearby if other != number and (self.items[other].video, self.items[other].source) == (own.video, own.source)
        ]

    def video_file(self, number: int) -> Path | None:
        """Return the video that a browser can play, where the run says where it lies and it is still the same; None otherwise."""
        return _video_of(self.runs[self.items[number].source]) if self.runs else None


def read_items(folder: Path, note: Callable[[str], None] = lambda text: None) -> ItemIndex:
    """Return the items of a folder.

    Raises:
        InputError: there is no such folder, or nothing in it is described.
        StoreError: a file is damaged.
        BackendError: a library for this kind of shard is missing.
    """
    if not store.is_folder(folder):
        raise InputError(f"{folder} is not a folder. Give the folder of a run, a folder of runs, or what `vip batch` wrote.")
    folder = store.home_of(folder)
    if any(NAME.fullmatch(name) for name in storage.sizes_in(str(folder), FOLDER)):
        index = ItemIndex(folder, list(_items_of_shards(folder, note)))
    else:
        runs = [Run(source.run.folder) for source in sources_of([str(folder)]) if source.run]
        is_single = len(runs) == 1 and runs[0].folder.resolve() == folder.resolve()
        items = [item for number, run in enumerate(runs) for item in _items_of_run(run, number, "" if is_single else f"{run.folder.name}/")]
        index = ItemIndex(folder, items, runs)
    if not index.items:
        raise InputError(f"{folder}: no keyframe has a description yet. Run {call('caption', str(folder))} first.")
    return index


@dataclass(frozen=True, slots=True)
class _FolderPictures:
    folder: Path
    paths: list[str]

    def read(self, place: int) -> bytes:
        path = self.folder / self.paths[place]
        try:
            return files.read_bytes(path, inside=self.folder, most_bytes=MOST_PICTURE_BYTES)
        except OSError as exc:
            raise InputError(f"{path} cannot be read: {exc.strerror}. Make the run again.") from exc


def _items_of_run(run: Run, source: int, prefix: str) -> Iterator[ReviewItem]:
    pictures = _FolderPictures(run.folder, [])
    described: dict[str, tuple[str, tuple[str, ...], Verification | None]] = {}
    for path in (run.folder / store.DESCRIPTIONS, run.folder / store.JOURNAL):
        if path.exists():
            for row in store.read_rows(path, Description, torn_end=path.name == store.JOURNAL):
                described[row.keyframe_id] = (row.engine, _texts_of(row), row.verification)
    for frame in store.read_rows(run.folder / store.KEYFRAMES, Keyframe):
        if frame.id in described:
            engine, texts, verification = described.pop(frame.id)
            pictures.paths.append(frame.image_path)
            yield _item(
                frame,
                engine,
                texts,
                verification,
                id_=f"{prefix}{frame.id}",
                pictures=pictures,
                place=len(pictures.paths) - 1,
                source=source,
            )


def _items_of_shards(folder: Path, note: Callable[[str], None]) -> Iterator[ReviewItem]:
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
        details=_details(found, verification),
        flagged=_flagged(verification),
        pictures=pictures,
        place=place,
    )


@dataclass(frozen=True, slots=True)
class _LockedPictures:
    """The pictures of a shard, for several threads."""

    shard: ShardPictures
    lock: Lock = field(default_factory=Lock)

    def read(self, place: int) -> bytes:
        with self.lock:
            return self.shard.read(place)


def _item(
    frame: Keyframe,
    engine: str,
    texts: tuple[str, ...],
    verification: Verification | None,
    *,
    id_: str,
    pictures: PictureReader,
    place: int,
    source: int,
) -> ReviewItem:
    return ReviewItem(
        id=id_,
        video=frame.video_id,
        time_s=frame.time_s,
        texts=texts,
        engine=engine,
        width_px=frame.width_px,
        height_px=frame.height_px,
        suffix=PurePath(frame.image_path).suffix.lower(),
        details=_details(frame.detections, verification),
        flagged=_flagged(verification),
        pictures=pictures,
        place=place,
        source=source,
    )


def _details(detections: tuple[Detection, ...] | None, verification: Verification | None) -> bytes:
    from pydantic_core import to_json

    checks = [one.model_dump(include={"field", "claim", "verdict", "after"}) for one in verification.checks] if verification else []
    return to_json({"detections": [one.model_dump() for one in detections or ()], "checks": checks})


def _texts_of(description: Description) -> tuple[str, ...]:
    famous = description.famous
    return (description.dense_caption, famous.focus, famous.action, famous.mood, "\n".join(famous.objects), famous.setting)


def _flagged(verification: Verification | None) -> tuple[str, ...]:
    if verification is None:
        return ()
    return tuple(dict.fromkeys(one.field for one in verification.checks if one.verdict == "unsupported" and one.after in (None, one.claim)))


def _video_of(run: Run) -> Path | None:
    manifest = run.manifest
    if manifest is None:
        return None
    own = Path(manifest.video.path)
    if store.is_own(manifest) and "://" not in manifest.video.path and own.suffix.lower() in PLAYED_SUFFIXES and own.is_file():
        return own if own.stat().st_size == manifest.video.size_bytes else None
    link = video_link(run)
    return run.folder / unquote(link.address) if link and "://" not in link.address else None
