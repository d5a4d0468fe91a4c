"""A plain folder of pictures gets its keyframes.jsonl, so that its pictures are described like keyframes.

In: a folder that vip did not extract. Out: one row for each picture that can be read. A picture that was looked at before, and has
not changed since, keeps its row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from vip import files, store
from vip.config import CaptionSettings
from vip.errors import InputError
from vip.extraction.backends import detector_for
from vip.extraction.pictures import keyframes_of, pictures_in
from vip.protocols import Detector, Observer
from vip.records import Failure, Keyframe


def list_pictures(folder: Path, settings: CaptionSettings, observer: Observer) -> tuple[Failure, ...]:
    """Write keyframes.jsonl for a folder of pictures; nothing for a run folder.

    Returns:
        The pictures that cannot be read.

    Raises:
        InputError: there is no picture, or none that can be read.
    """
    if store.exists(folder / store.MANIFEST) or not store.is_folder(folder):
        return ()
    pictures = pictures_in(folder)
    detector = f"{settings.detector} for {', '.join(settings.labels)}" if settings.labels else settings.detector
    known = _known_pictures(folder, detector)
    new = [path for path in pictures if path.name not in known]
    if not new and store.count_rows(folder / store.KEYFRAMES) == len(pictures):
        return ()
    failures: list[Failure] = []
    rows = _rows_of(new, detector_for(settings), observer, failures)
    store.make_folder(folder)
    with store.in_use(folder):
        _merge_rows(folder, pictures, known, (row.model_copy(update={"detector": detector}) for row in rows), failures)
    return tuple(failures)


def _rows_of(pictures: Sequence[Path], detector: Detector, observer: Observer, failures: list[Failure]) -> Iterator[Keyframe]:
    with observer.track("Looking at pictures", len(pictures)) as advance:
        yield from keyframes_of(pictures, detector, on_failure=failures.append, advance=advance)


def _merge_rows(folder: Path, pictures: Sequence[Path], known: set[str], new_rows: Iterator[Keyframe], failures: list[Failure]) -> None:
    """Write the new rows and those of the known pictures, in the order of the pictures."""
    new = folder / f"{store.KEYFRAMES}.looked{store.PARTIAL_SUFFIX}"
    store.write_rows(new, new_rows)
    listed = known | {row.id for row in store.read_rows(new, Keyframe)}
    if not listed:
        files.remove(new)
        which = "The only picture" if len(pictures) == 1 else f"None of the {len(pictures):,} pictures"
        raise InputError(f"{which} in {folder} {'cannot' if len(pictures) == 1 else 'can'} be read: {failures[0].message}")
    order = (path.name for path in pictures if path.name in listed)
    store.merge_rows(folder / store.KEYFRAMES, [folder / store.KEYFRAMES, new], Keyframe, key=lambda row: row.id, order=order)
    files.remove(new)


def _known_pictures(folder: Path, detector: str) -> set[str]:
    """Return the names of the pictures that an earlier run has looked at, and that have not changed since."""
    path = folder / store.KEYFRAMES
    if not store.exists(path):
        return set()
    listed_ns = path.stat().st_mtime_ns
    rows = (row for row in store.read_rows(path, Keyframe) if row.detector == detector)
    return {row.id for row in rows if _changed_ns(folder / row.image_path) < listed_ns}


def _changed_ns(path: Path) -> float:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return math.inf
