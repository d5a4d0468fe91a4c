"""A part: one finished video as an uncompressed tar file, before it is written into a shard.

In: a `VideoSample`. Out: the same, or a run folder that can be described. Parts are written in forked processes that must not start
threads, so only the standard library and numpy are used here.

    video.json  keyframes.jsonl  text.jsonl  descriptions.jsonl  failures.jsonl  vectors.npy  keyframes/NAME …
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TypeVar

import numpy as np

from vip import files, store
from vip.dataset.rows import KeyframeRow, VideoRow, VideoSample, described
from vip.dataset.subtitles import choose_subtitles, spoken_words
from vip.errors import StoreError
from vip.records import Description, Failure, Keyframe, KeyframeText, Record, SpokenWords
from vip.store import Run
from vip.untrusted import DAMAGE

RecordT = TypeVar("RecordT", bound=Record)
VIDEO, VECTORS = "video.json", "vectors.npy"


def pack(path: Path, sample: VideoSample) -> None:
    """Write the part, whole or not at all; the same sample gives the same bytes. It is not synced to the disk: see `is_whole`.

    Raises:
        StoreError: not writable, or the disk is full.
    """
    with store.replacing(path) as file, tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in _files(sample):
            add(archive, name, data)


def read_part(path: Path) -> VideoSample:
    """Return the sample of a part.

    Raises:
        StoreError: the file is missing, not whole, or no part.
    """
    try:
        with files.open_file(path) as file, tarfile.open(fileobj=file, mode="r:") as archive:
            return _sample(dict(members(archive)))
    except OSError as exc:
        raise StoreError(f"{path} cannot be read: {exc.strerror or exc}. Run the same command again to make it again.") from exc
    except (tarfile.TarError, *DAMAGE) as exc:
        raise StoreError(f"{path}: damaged ({exc}). Delete it, and run the same command again to make it again.") from exc


def is_whole(path: Path) -> bool:
    """Return whether a part can be read; a power cut may have torn it."""
    try:
        read_part(path)
    except StoreError:
        return False
    return True


def unpack(path: Path, folder: Path) -> Run:
    """Write a part as a run folder, to be described, and return that run; the vectors are left out.

    Raises:
        StoreError: the part is damaged, or the folder cannot be written.
    """
    sample = read_part(path)
    store.make_folder(folder / store.PICTURES)
    for frame in sample.frames:
        with store.replacing(folder / store.PICTURES / frame.name) as file:
            file.write(frame.picture)
    store.write_rows(folder / store.KEYFRAMES, [frame.keyframe for frame in sample.frames])
    if texts := [frame.text for frame in sample.frames if frame.text]:
        store.write_rows(folder / store.TEXT, texts)
    if words := _words(sample.video):
        store.write_rows(folder / store.WORDS, words)
    if descriptions := [frame.description for frame in sample.frames if frame.description]:
        store.write_rows(folder / store.DESCRIPTIONS, descriptions)
    store.write_failures(folder / store.FAILURES, [frame.failure for frame in sample.frames if frame.failure])
    if manifest := sample.video.manifest():
        store.write_json(folder / store.MANIFEST, manifest)
    return Run(folder)


def _words(video: VideoRow) -> list[SpokenWords]:
    """Return the subtitles of the video where its captions are to read them."""
    vtt = choose_subtitles(video.subtitles, video.info.get("language"))
    return spoken_words(vtt, "subtitles of the video") if vtt and "subtitles" in video.settings.get("words", ()) else []


def add_descriptions(path: Path, run: Run) -> None:
    """Write the descriptions and failures of the unpacked run into its part."""
    pack(path, described(read_part(path), Run(run.folder)))  # a new Run: the old one may have cached files that have changed


# ---------------------------------------------------------------- files of an archive


def add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    """Add a file without date and owner, so that the same content gives the same bytes."""
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, BytesIO(data))


def regular_members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield the regular files of an archive in their order; a sparse one may claim any size, and is left out.

    Raises:
        tarfile.TarError: it is damaged, or a header leads back, so that it would never end.
    """
    last = -1
    for member in archive:
        if member.offset <= last or member.size < 0:
            raise tarfile.ReadError("a header leads back")
        last = member.offset
        if member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse():
            yield member
        archive.members = []  # type: ignore[attr-defined] # or it keeps them all


def members(archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the regular files; errors as of `regular_members`."""
    for member in regular_members(archive):
        if file := archive.extractfile(member):
            yield member.name, file.read(member.size)


def _files(sample: VideoSample) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents, pictures last: an archive without its end then lacks one that keyframes.jsonl names."""
    yield VIDEO, sample.video.model_dump_json().encode()
    yield store.KEYFRAMES, _rows(frame.keyframe for frame in sample.frames)
    if texts := _rows(frame.text for frame in sample.frames):
        yield store.TEXT, texts
    yield store.DESCRIPTIONS, _rows(frame.description for frame in sample.frames)
    yield store.FAILURES, _rows(frame.failure for frame in sample.frames)
    vectors = [frame.vector for frame in sample.frames if frame.vector is not None]
    if vectors:
        file = BytesIO()
        np.save(file, np.stack(vectors), allow_pickle=False)
        yield VECTORS, file.getvalue()
    for frame in sample.frames:
        yield frame.keyframe.image_path, frame.picture


def _sample(files: dict[str, bytes]) -> VideoSample:
    video = VideoRow.model_validate_json(files[VIDEO])
    descriptions = {row.keyframe_id: row for row in _parsed(files[store.DESCRIPTIONS], Description)}
    failures = {row.item: row for row in _parsed(files[store.FAILURES], Failure)}
    texts = {row.keyframe_id: row for row in _parsed(files.get(store.TEXT, b""), KeyframeText)}
    rows = list(_parsed(files[store.KEYFRAMES], Keyframe))
    vectors = store.array_of(files[VECTORS]) if VECTORS in files else [None] * len(rows)
    return VideoSample(
        video,
        tuple(
            KeyframeRow(row, files[row.image_path], vector, descriptions.get(row.id), failures.get(row.id), texts.get(row.id))
            for row, vector in zip(rows, vectors, strict=True)
        ),
    )


def _rows(records: Iterator[Record | None]) -> bytes:
    return b"".join(record.model_dump_json().encode() + b"\n" for record in records if record)


def _parsed(text: bytes, kind: type[RecordT]) -> Iterator[RecordT]:
    return (kind.model_validate_json(line) for line in text.split(b"\n") if line)
