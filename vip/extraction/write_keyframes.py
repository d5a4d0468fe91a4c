"""The last stage of extraction: the pictures of the selected frames at full size, and keyframes.jsonl.

Pictures that are there already are kept: those of a killed run, those that the decoder kept while frames were analyzed, and those
that another run of the video has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter

from vip import store
from vip.errors import InputError
from vip.extraction import analyze
from vip.extraction.existing_run import WRITTEN, is_same_file
from vip.extraction.picture_cache import PictureCache
from vip.protocols import Observer
from vip.records import Candidate, Frame, Keyframe, Manifest
from vip.store import Run
from vip.video import Reader, Source, open_video
from vip.wording import counted, option


def write_keyframes(folder: Path, manifest: Manifest, observer: Observer, video: Reader | None) -> None:
    """Decode the keyframes at full size and write them.

    Args:
        video: None where every picture is there already.

    Raises:
        InputError: a frame that could be decoded before cannot be decoded now.
    """
    start = perf_counter()
    kept = _kept(folder)
    names = _names(kept, manifest)
    store.make_folder(folder / store.PICTURES, inside=folder)
    cache = PictureCache(folder, manifest.settings["format"])
    with observer.track("Writing keyframes", len(kept)) as advance:

        def write(frame: Frame) -> tuple[int, tuple[int, ...]]:
            store.write_picture(folder / store.PICTURES / names[frame.pts], frame.image, inside=folder)
            advance()
            return frame.pts, frame.image.shape

        def work(reader: Reader, batch: Sequence[int]) -> Iterator[tuple[int, tuple[int, ...]]]:
            return analyze.map_over(reader, missing)(write, reader.frames(batch))

        for pts in filter(cache.has, _missing(folder, names)):
            cache.move(pts, folder / store.PICTURES / names[pts])
            advance()
        missing = _missing(folder, names)
        shapes = dict(analyze.in_parallel(video, missing, work)) if video else {}
    if failed := set(missing) - set(shapes):
        raise InputError(
            f"{manifest.video.path}: {counted(len(failed), 'keyframe')} could be decoded before and cannot now. Did the file change?"
        )
    for pts in names.keys() - set(missing):  # written before; pictures in a row have each a size of its own
        shapes[pts] = store.read_picture(folder / store.PICTURES / names[pts], inside=folder).shape
    store.write_rows(folder / store.KEYFRAMES, _rows(kept, names, shapes, manifest.video_id))
    cache.clear()
    seconds = {**manifest.seconds, WRITTEN: round(perf_counter() - start, 3)}
    store.write_json(folder / store.MANIFEST, manifest.model_copy(update={"seconds": seconds}))


def copy_keyframes(old: Run, folder: Path, manifest: Manifest, named: Source | None, observer: Observer) -> None:
    """Copy the pictures that another run of the video has, and decode the others.

    Args:
        named: the video; None where it may not be opened, since another machine made the run and nobody named it.

    Raises:
        InputError: a picture is missing, and the video is gone, changed or not named.
    """
    missing = _copy_pictures(old, folder, manifest)
    if missing == 0:
        write_keyframes(folder, manifest, observer, None)
        return
    selected = f"{missing} of the chosen frames {'has' if missing == 1 else 'have'} no picture in {old.folder} yet"
    if named is None:
        raise InputError(
            f"{selected}, and another machine made it: its video is not opened unasked. Name it with {option('video', 'VIDEO')},"
            f" or run `vip trust {old.folder}`."
        )
    if named.state() is None or not is_same_file(manifest.video, named):
        state = "is gone" if named.state() is None else "has changed since"
        raise InputError(f"{selected}, and {named} {state}. Put it back and try again, or name it with {option('video', 'VIDEO')}.")
    settings = manifest.settings
    with open_video(named, stream=settings["stream"], start_s=settings["start"], end_s=settings["end"]) as video:
        write_keyframes(folder, manifest, observer, video)


def _copy_pictures(old: Run, folder: Path, manifest: Manifest) -> int:
    """Copy what the old run has; return how many pictures are missing."""
    there = {frame.record.pts: frame for frame in old.keyframes}
    store.make_folder(folder / store.PICTURES, inside=folder)
    missing = 0
    for pts, name in _names(_kept(folder), manifest).items():
        target, source = folder / store.PICTURES / name, there.get(pts)
        if target.exists():
            continue
        if source and source.path.suffix == target.suffix and source.path.exists():
            with store.replacing(target, inside=folder) as file:
                file.write(source.data)
        else:
            missing += 1
    return missing


def _kept(folder: Path) -> list[Candidate]:
    """Return the rows of the selected candidates, in time order."""
    return [row for row in store.read_rows(folder / store.CANDIDATES, Candidate) if row.decision.kept]


def _names(kept: Sequence[Candidate], manifest: Manifest) -> dict[int, str]:
    """Return the name of the picture of each selected frame, by its PTS."""
    suffix = manifest.settings["format"]
    return {row.pts: store.picture_name(number, row.time_s, suffix, of=len(kept)) for number, row in enumerate(kept, 1)}


def _missing(folder: Path, names: dict[int, str]) -> list[int]:
    return [pts for pts, name in names.items() if not (folder / store.PICTURES / name).exists()]


def _rows(kept: Sequence[Candidate], names: dict[int, str], shapes: dict[int, tuple[int, ...]], video_id: str) -> list[Keyframe]:
    return [
        Keyframe(
            id=f"{video_id}:{number:04d}",
            video_id=video_id,
            time_s=row.time_s,
            pts=row.pts,
            image_path=f"{store.PICTURES}/{names[row.pts]}",
            width_px=shapes[row.pts][1],
            height_px=shapes[row.pts][0],
            quality=row.quality,
            detections=row.detections,
            candidate=row.index,
        )
        for number, row in enumerate(kept, 1)
        if row.quality is not None
    ]
