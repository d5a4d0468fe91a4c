"""What is reviewed: the described keyframes of a run folder, of a folder of runs, or of a data set.

In: a folder. Out: an `ItemIndex`, which holds of each keyframe its texts and a few numbers (some 3 kB), and reads its picture on request.
Items have an id, which the log of the review uses, and a number, by which the page asks; nobody asks by path. A folder may come from a
stranger: its rows are checked as those of any run, and pictures are read as `vip.files` reads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import unquote

from pydantic import ConfigDict
from pydantic_core import to_json

from vip import files, store
from vip.dataset.shard_names import has_shards
from vip.errors import InputError, StoreError
from vip.records import Detection, Famous, PathInside, Pixels, PlainName, Record, RichFields, Time, Verification
from vip.report.video_link import PLAYED_SUFFIXES, video_link
from vip.review.fields import ALL_TEXTS, TEXTS
from vip.review.rich import rich_texts
from vip.store import Run, load_run, runs_in
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


class ReviewItem(NamedTuple):
    """A described keyframe, a tuple because a review has ten thousand of them."""

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
    pictures: PictureReader
    place: int
    source: int = 0
    """The number of its run among those of a folder; of a data set 0."""
    rich: tuple[str, ...] = ()
    """The fields of the schema `rich`, in the order of `RICH_TEXTS`; empty where the engine was not asked for them."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the texts that it has."""
        return ALL_TEXTS if self.rich else TEXTS

    @property
    def original(self) -> dict[str, str]:
        """Return all texts as the engine wrote them, by field."""
        return dict(zip(self.fields, (*self.texts, *self.rich), strict=True))

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

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the texts that some item has."""
        return ALL_TEXTS if any(item.rich for item in self.items) else TEXTS

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
    if has_shards(str(folder)):
        from vip.review.shard_items import items_of_shards  # here, since it loads what reads and writes data sets

        index = ItemIndex(folder, list(items_of_shards(folder, note)))
    else:
        runs = [Run(load_run(one).folder) for one in runs_in([folder])]  # checked, and read again later
        is_single = len(runs) == 1 and runs[0].folder.resolve() == folder.resolve()
        items = [item for number, run in enumerate(runs) for item in _items_of_run(run, number, "" if is_single else f"{run.folder.name}/")]
        index = ItemIndex(folder, items, runs)
    if not index.items:
        raise InputError(f"{folder}: no keyframe has a description yet. Run {call('caption', str(folder))} first.")
    return index


class _KeyframeRow(Record):
    """What a review shows of a row of keyframes.jsonl: the rest takes longer to read, and thousands are read before the page opens."""

    model_config = ConfigDict(extra="ignore")

    id: str
    video_id: PlainName
    time_s: Time | None
    image_path: PathInside
    width_px: Pixels
    height_px: Pixels
    detections: tuple[Detection, ...] | None


class _DescriptionRow(Record):
    """What a review shows of a row of descriptions.jsonl."""

    model_config = ConfigDict(extra="ignore")

    keyframe_id: str
    engine: str
    dense_caption: str
    famous: Famous
    rich: RichFields | None = None
    verification: Verification | None = None


@dataclass(frozen=True, slots=True)
class _FolderPictures:
    folder: Path
    paths: list[str] = field(repr=False)

    def read(self, place: int) -> bytes:
        path = self.folder / self.paths[place]
        try:
            return files.read_bytes(path, inside=self.folder, most_bytes=MOST_PICTURE_BYTES)
        except OSError as exc:
            raise InputError(f"{path} cannot be read: {exc.strerror}. Make the run again.") from exc


def _items_of_run(run: Run, source: int, prefix: str) -> Iterator[ReviewItem]:
    pictures = _FolderPictures(run.folder, [])
    described: dict[str, _DescriptionRow] = {}
    for path in (run.folder / store.DESCRIPTIONS, run.folder / store.JOURNAL):
        if path.exists():
            for row in store.read_rows(path, _DescriptionRow, torn_end=path.name == store.JOURNAL):
                described[row.keyframe_id] = row
    for frame in store.read_rows(run.folder / store.KEYFRAMES, _KeyframeRow):
        if frame.id in described:
            pictures.paths.append(frame.image_path)
            yield _item(frame, described.pop(frame.id), f"{prefix}{frame.id}", pictures, source=source)


def _item(frame: _KeyframeRow, row: _DescriptionRow, id_: str, pictures: _FolderPictures, *, source: int) -> ReviewItem:
    return ReviewItem(
        id=id_,
        video=frame.video_id,
        time_s=frame.time_s,
        texts=_texts_of(row),
        engine=row.engine,
        width_px=frame.width_px,
        height_px=frame.height_px,
        suffix=os.path.splitext(frame.image_path)[1].lower(),  # noqa: PTH122 - ten thousand times PurePath would take a tenth of a second
        details=details_of(frame.detections, row.verification),
        flagged=flagged_in(row.verification),
        pictures=pictures,
        place=len(pictures.paths) - 1,
        source=source,
        rich=rich_texts(row.rich),
    )


def details_of(detections: tuple[Detection, ...] | None, verification: Verification | None) -> bytes:
    """Return what an item keeps of them."""
    checks = (
        to_json([one.model_dump(include={"field", "claim", "verdict", "after"}) for one in verification.checks]) if verification else b"[]"
    )
    return b'{"detections":%b,"checks":%b}' % (to_json(detections or ()), checks)


def _texts_of(description: _DescriptionRow) -> tuple[str, ...]:
    famous = description.famous
    return (description.dense_caption, famous.focus, famous.action, famous.mood, "\n".join(famous.objects), famous.setting)


def flagged_in(verification: Verification | None) -> tuple[str, ...]:
    """Return the texts with a claim without support."""
    if verification is None:
        return ()
    return tuple(dict.fromkeys(one.field for one in verification.checks if one.verdict == "unsupported" and one.after in (None, one.claim)))


def _video_of(run: Run) -> Path | None:
    manifest = run.manifest
    if manifest is None:
        return None
    own = Path(manifest.video.path)  # of this machine's own run: it may be a link, but only to a video
    if store.is_own(manifest) and "://" not in manifest.video.path and own.suffix.lower() in PLAYED_SUFFIXES and own.is_file():
        is_same = own.stat().st_size == manifest.video.size_bytes and own.resolve().suffix.lower() in PLAYED_SUFFIXES
        return own if is_same else None
    link = video_link(run)
    if link is None or "://" in link.address:
        return None
    home, address = run.folder.resolve(), unquote(link.address)
    path = (home / address).resolve()
    return path if path == Path(os.path.normpath(home / address)) else None  # else a link in a folder of somebody else led there
