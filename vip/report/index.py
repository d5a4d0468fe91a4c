"""The index page of a folder of runs: a strip of pictures, the counts and the report of each.

In: a folder that holds run folders. Out: index.html beside them. A damaged run is named on the page and stops nothing. With many runs
the pictures get smaller and fewer; from 5,000 on runs are left out, and the page says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePath

from vip.errors import InputError, StoreError, UsageError
from vip.html.axes import evenly_spaced, span_of
from vip.html.layout import is_page
from vip.html.pictures import Jpeg, shrink
from vip.records import Failure
from vip.report.index_page import RunEntry, RunIndex, index_page
from vip.report.pictures import THUMBNAIL_SIDE_PX, Thumbnails, open_thumbnails
from vip.store import (
    FAILURES,
    KEYFRAMES,
    MANIFEST,
    REPORT,
    KeyframePicture,
    Run,
    exists,
    home_of,
    is_own,
    load_run,
    read_rows,
    replacing,
    runs_in,
)
from vip.video.pillow import open_picture, shown

INDEX = "index.html"
MAX_RUNS = 5000  # with 800 bytes of text and 1.2 kB of picture for each
MAX_PICTURES = 4  # of a run
MOST_LETTERS, MOST_ENGINES = 255, 10  # what a manifest of a stranger states may be longer
PICTURES_BYTES = 6 * 2**20  # of all runs; base64 adds a third: 8 MiB of page
PICTURE_BYTES = 16 * 2**10
TOO_LARGE_FACTOR = 2
ANOTHER_PICTURE_BYTES = 2 * 2**10  # with less for each, a run has fewer pictures


def run_folders_in(folder: Path) -> list[Path]:
    """Return the run folders in a folder, in the order of their names; none where it is a run itself."""
    home = home_of(folder)
    runs = runs_in([home])
    return [] if runs == [home] or exists(home / KEYFRAMES) else runs


def write_index(folder: Path, *, failed: Mapping[Path, str] | None = None, pages_are_new: bool = False) -> Path:
    """Write index.html into a folder of run folders, and return its path.

    It lists each run with a link to its report.html, where there is one; of the folder's failures.jsonl it lists the videos that failed.
    The runs themselves are only read. Call it whenever a command has worked on several of them.

    Args:
        pages_are_new: vip has just written each report.html. Otherwise runs of other machines have no link: theirs may be anything.
        failed: run folders whose report.html could not be written, and why. What the index itself cannot read is added.

    Raises:
        InputError: there are no runs in the folder.
        UsageError: there is an index.html that vip did not write.
        StoreError: the page cannot be written.
    """
    runs, path = run_folders_in(folder), folder / INDEX
    if not runs:
        raise InputError(f"{folder} holds no run folders. Give the folder in which they lie.")
    if exists(path) and not is_page(path):
        raise UsageError(f"{path} was not written by vip. Rename it, so that the index of the runs can have its place.")
    listed = runs[:MAX_RUNS]
    entries = tuple(_entries(listed, failed or {}, pages_are_new))
    index = RunIndex(folder.resolve().name or str(folder), entries, unlisted=len(runs) - len(listed), failures=_failures(folder))
    text = index_page(index)
    with replacing(path) as file:
        file.write(text.encode())
    return path


@dataclass(frozen=True, slots=True)
class PictureShare:
    """The number of pictures a run may show on the page, and their bytes."""

    count: int
    max_bytes: int


def picture_share(runs: int) -> PictureShare:
    """Divide the bytes of the page among the runs."""
    share = PICTURES_BYTES // runs
    count = max(1, min(MAX_PICTURES, share // ANOTHER_PICTURE_BYTES))
    return PictureShare(count, min(PICTURE_BYTES, share // count))


def _entries(runs: Sequence[Path], failed: Mapping[Path, str], pages_are_new: bool) -> Iterator[RunEntry]:
    share = picture_share(len(runs))
    for folder in runs:
        try:
            if folder in failed:
                raise StoreError(failed[folder])
            yield _entry(load_run(folder), share, pages_are_new)
        except (InputError, StoreError) as exc:
            yield RunEntry(folder.name, problem=str(exc))


def _entry(run: Run, share: PictureShare, pages_are_new: bool) -> RunEntry:
    manifest = run.manifest
    if manifest is None:
        raise StoreError(f"{run.folder / MANIFEST} is gone.")
    span = span_of(manifest.video, ())
    engines: dict[str, int] = {}
    for row in run.each_description():
        engines[row.engine] = engines.get(row.engine, 0) + 1
    return RunEntry(
        run.folder.name,
        title=PurePath(manifest.video.path).name[:MOST_LETTERS] or run.folder.name,
        length_s=span.end_s - span.start_s if span else None,
        keyframes=len(run.keyframes),
        described=sum(engines.values()),
        engines=tuple(engine[:MOST_LETTERS] for engine in engines)[:MOST_ENGINES],
        failures=len(run.failures),
        pictures=tuple(_pictures(run, share)),
        has_page=exists(run.folder / REPORT) and (pages_are_new or is_own(manifest)),
    )


def _pictures(run: Run, share: PictureShare) -> Iterator[Jpeg]:
    """Yield small pictures of keyframes that are evenly chosen: the thumbnails of the run, or where it has none the keyframes, shrunk."""
    with open_thumbnails(run.folder) as thumbnails:
        count = len(run.keyframes)
        for number in evenly_spaced(count, share.count) if share.count > 1 else range(count // 2, min(count, count // 2 + 1)):
            picture = _picture(run.keyframes[number], thumbnails, share.max_bytes)
            if picture and len(picture.data) <= TOO_LARGE_FACTOR * share.max_bytes:  # `shrink` stops at a size that shows something
                yield picture


def _picture(frame: KeyframePicture, thumbnails: Thumbnails, max_bytes: int) -> Jpeg | None:
    data = None if frame.record.candidate is None else thumbnails.read(frame.record.candidate)
    try:
        if data is None:
            return shrink(frame.image, longest_side_px=THUMBNAIL_SIDE_PX, max_bytes=max_bytes)
        opened = open_picture(BytesIO(data), "the thumbnail")
        if max(opened.size) > THUMBNAIL_SIDE_PX:
            return None
        if len(data) <= max_bytes:
            return Jpeg(data, *opened.size)
        return shrink(shown(opened), longest_side_px=THUMBNAIL_SIDE_PX, max_bytes=max_bytes)
    except InputError:
        return None


def _failures(folder: Path) -> tuple[Failure, ...]:
    """Return the videos of which the last command made no run."""
    path = folder / FAILURES
    try:
        return tuple(read_rows(path, Failure)) if exists(path) else ()
    except StoreError as exc:
        return (Failure(item=FAILURES, kind="disk", message=str(exc), exit_code=exc.exit_code),)
