"""Features of videos from HDF5 files in the form of the authors of NExT-QA (section 4, "Implementation"; dataloader/sample_loader.py).

In: files with `ids` (V names) and `feat`, float (V, N, D): N clips a video, of each the appearance and behind it the motion; or feature
maps (V, N, C, h, w), of which the mean over h × w stands for D. Out: the features of some videos as arrays. What is not asked for is not
read: a file of 60 GB needs no memory. Nor does a small file that states large numbers: rows, and all videos of a batch, are bounded.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from vip.errors import BackendError, InputError
from vip.untrusted import DAMAGE, one_line, shorten
from vip.wording import option

PAPER_WIDTH, PAPER_APPEARANCE = 4096, 2048
"""ResNet-101 (2048) and inflated 3D ResNeXt-101 (2048), one after the other."""
Floats = npt.NDArray[np.float32]
DAMAGED = (OSError, RuntimeError, *DAMAGE)
"""What h5py raises for a damaged file."""
MOST_IDS, MOST_ID_BYTES, MOST_IDS_BYTES = 5_000_000, 1000, 64 * 2**20  # 5 million names of YouTube have 55 MB
REFERENCE = np.dtype([("length", "<u4"), ("heap", "<u8"), ("object", "<u4")])
"""A text of any length in HDF5: where its bytes lie."""
HEAP_MARK = b"GCOL\x01\0\0\0"
HEAP_HEAD, OBJECT_HEAD = struct.Struct("<8sQ"), struct.Struct("<H6xQ")
MOST_ROW_NUMBERS = 2**25
"""Of a video: the maps of HME have 16 × 4096 × 7 × 7, a tenth of it."""
MOST_CLIPS, MOST_WIDTH = 100_000, 1_000_000
MOST_CHUNK_BYTES = 2**28  # a chunk is unpacked whole
MOST_BATCH_BYTES, MOST_MAPS_BYTES = 160 * 2**20, 2**31
"""Of all videos of a batch, which a training with five options holds some twenty times: 64 of NExT-QA have 16 MiB, with the maps of HME
0.8 GB."""


@dataclass(frozen=True, slots=True)
class FeatureSizes:
    """Sizes of the features of a video; equal for all videos of all files."""

    clips: int
    appearance: int
    motion: int
    maps: tuple[int, int, int] | None = None
    """(C, h, w) of feature maps, where a file has them."""


class FeatureFile:
    """One open file.

    Args:
        appearance: how many of the D numbers are appearance; None: as the attribute `appearance` of `feat` says, else 2048 of 4096, else
        all.

    Raises:
        BackendError: h5py is not installed.
        InputError: it cannot be read, or is of another form.
    """

    def __init__(self, path: Path, *, appearance: int | None = None) -> None:
        self.path = path
        self._file = open_hdf5(path)
        self._feat = self._dataset("feat")
        shape = tuple(int(size) for size in self._feat.shape)
        if len(shape) not in {3, 5} or self._feat.dtype.kind != "f" or 0 in shape[1:]:
            raise InputError(
                f"{path}: feat is {self._feat.dtype} of shape {shape}. Expected floats of shape (videos, clips, numbers),"
                " or (videos, clips, numbers, 7, 7)."
            )
        ids = self._dataset("ids")
        if ids.shape != shape[:1]:
            raise InputError(f"{path} has {shape[0]:,} features and ids of shape {ids.shape}. Make it again: one id a video.")
        _check_sizes(path, *shape[1:3])
        self.rows = _rows_by_id(path, _read_ids(path, ids))
        self.sizes = FeatureSizes(shape[1], *self._widths(shape[2], appearance), (shape[2], *shape[3:5]) if len(shape) == 5 else None)

    def read(self, videos: Sequence[str], *, pooled: bool = False) -> Floats:
        """Return (B, N, D) or (B, N, C, h, w) of these videos, in their order; one may be there several times.

        Args:
            pooled: (B, N, C) of maps, their means.

        Raises:
            InputError: the file is cut off or has a number that is not finite, or no memory should hold all of it.
        """
        return _read_batch(dict.fromkeys(videos, self), videos, pooled=pooled)

    def shape(self, *, pooled: bool) -> tuple[int, ...]:
        """Return the shape of one video."""
        clips, width, *places = self._feat.shape[1:]
        return (clips, width) if pooled else (clips, width, *places)

    def read_video(self, video: str, *, pooled: bool = False, most: int | None = None) -> Floats:
        """Return (N, D) or (N, C, h, w) of a video, the first `most` clips of it. Errors as of `read`."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # what comes of too large numbers is refused below
                data: Floats = np.asarray(self._feat[self.rows[video], :most]).astype(np.float32, copy=False)
                if pooled and data.ndim == 4:
                    data = data.mean(axis=(2, 3), dtype=np.float32)
        except DAMAGED as exc:
            raise InputError(f"{self.path} cannot be read ({one_line(str(exc))[:100]}). Copy it again.") from exc
        if not np.isfinite(data).all():
            raise InputError(f"{self.path}: the features of {one_line(video)[:60]} hold numbers that are not finite. Extract them again.")
        return data

    def close(self) -> None:
        self._file.close()

    def _dataset(self, name: str) -> Any:
        found = dataset_in(self._file, name, self.path)
        if found is None:
            raise InputError(f"{self.path} has no data set {name}. Give features in the form of NExT-QA: ids and feat.")
        return found

    def _widths(self, width: int, appearance: int | None) -> tuple[int, int]:
        if appearance is None:
            noted = self._noted_appearance()
            appearance = PAPER_APPEARANCE if noted is None and width == PAPER_WIDTH else width if noted is None else noted
        if not 0 < appearance <= width:
            raise InputError(
                f"{self.path}: {shorten(str(appearance), 12)} of {width} numbers a clip are appearance. Expected 1 to {width}."
            )
        return appearance, width - appearance

    def _noted_appearance(self) -> int | None:
        attributes = self._feat.attrs
        try:
            if "appearance" not in attributes:
                return None
            noted = attributes.get_id("appearance")
            if noted.shape != () or noted.dtype.kind not in "iuf":  # a text is not even read: it may be of any length
                raise TypeError("no number")
            return int(float(attributes["appearance"]))  # of more digits than a float has it is none
        except DAMAGED as exc:
            raise InputError(f"{self.path}: the attribute appearance is no number. Make the file again.") from exc


class FeatureStore:
    """The features of all videos of some files.

    Args:
        paths: files of different videos (train, val), with equal sizes.
        appearance: as of `FeatureFile`.

    Raises:
        BackendError: h5py is not installed.
        InputError: a file cannot be read, sizes differ, or a video is in two files.
    """

    def __init__(self, paths: Sequence[Path], *, appearance: int | None = None) -> None:
        self.files = [FeatureFile(path, appearance=appearance) for path in paths]
        self.sizes = self.files[0].sizes
        self._file_of: dict[str, FeatureFile] = {}
        for file in self.files:
            if file.sizes != self.sizes:
                raise InputError(f"{file.path} has {_words(file.sizes)}, {paths[0]} has {_words(self.sizes)}. Give files of one kind.")
            for video in file.rows:
                if (other := self._file_of.setdefault(video, file)) is not file:
                    raise InputError(f"The video {one_line(video)[:60]} is in {other.path} and in {file.path}. Give one of them.")

    def has(self, video: str) -> bool:
        return video in self._file_of

    def check(self, videos: Sequence[str]) -> None:
        """Refuse videos without features.

        Raises:
            InputError: there are some; the message says how many.
        """
        missing = sorted({video for video in videos if video not in self._file_of})
        if missing:
            raise InputError(
                f"{len(missing):,} of {len(set(videos)):,} videos have no features, such as {one_line(missing[0])[:60]}."
                f" Add their file: {option('features', 'FILE')}."
            )

    def read(self, videos: Sequence[str], *, pooled: bool = False) -> Floats:
        """Return (B, N, D) or (B, N, C, h, w) of these videos, in their order. Arguments and errors as of `FeatureFile.read`."""
        return _read_batch(self._file_of, videos, pooled=pooled)

    def read_video(self, video: str, *, most: int | None = None) -> Floats:
        """Return the features of a video, the first `most` clips of it. Errors as of `FeatureFile.read`."""
        return self._file_of[video].read_video(video, most=most)

    def close(self) -> None:
        for file in self.files:
            file.close()


def check_batch(count: int, numbers: int, most_bytes: int | None = None) -> None:
    """Refuse a batch that no memory should hold, before it is read.

    Args:
        count: of videos, or texts.
        numbers: of each.
        most_bytes: None: those of features without maps.

    Raises:
        InputError: it is too large.
    """
    most = MOST_BATCH_BYTES if most_bytes is None else most_bytes
    if (size := 4 * count * numbers) > most:
        raise InputError(
            f"A batch of {count:,} with {numbers:,} numbers each has {size:,} bytes, and more than {most:,} are not read."
            " Set a smaller batch, or give features with fewer clips or numbers."
        )


def _read_batch(file_of: Mapping[str, FeatureFile], videos: Sequence[str], *, pooled: bool) -> Floats:
    """Return the features of videos, each read once, in the order of their files."""
    shape = file_of[videos[0]].shape(pooled=pooled)
    check_batch(len(videos), math.prod(shape), MOST_MAPS_BYTES if len(shape) > 2 else None)
    data = np.empty((len(videos), *shape), np.float32)
    places: dict[str, list[int]] = {}
    for place, video in enumerate(videos):
        places.setdefault(video, []).append(place)
    for video in sorted(places, key=lambda video: (str(file_of[video].path), file_of[video].rows[video])):
        data[places[video]] = file_of[video].read_video(video, pooled=pooled)
    return data


def open_hdf5(path: Path) -> Any:
    """Return an open file of h5py.

    Raises:
        BackendError: h5py is not installed.
        InputError: it is missing, or is no HDF5.
    """
    try:
        import h5py
    except ImportError as exc:
        raise BackendError("Features are read with h5py, which is not installed. Run: pip install 'vip-keyframes[train]'.") from exc
    if not path.is_file():
        what = "is no file" if path.exists() else "does not exist"
        raise InputError(f"{path} {what}. Give a file of features; `vip features` makes one.")
    try:
        return h5py.File(path, "r")
    except OSError as exc:
        raise InputError(f"{path} is no HDF5 file, or is cut off ({one_line(str(exc))[:100]}). Copy it again.") from exc


def dataset_in(file: Any, name: str, path: Path) -> Any | None:
    """Return a data set of an open HDF5 file; None where there is none of that name.

    Raises:
        InputError: it is damaged, has rows or chunks that no memory should hold, or its numbers lie in another file.
    """
    import h5py

    try:
        link = file.get(name, getlink=True)
        found = file[name] if isinstance(link, h5py.HardLink) else None
        leads_out = link is not None and found is None
        if isinstance(found, h5py.Dataset):
            leads_out = bool(found.is_virtual or found.external)
            _check_pieces(path, name, math.prod(found.shape[1:]), found.dtype.itemsize * math.prod(found.chunks or ()))
    except DAMAGED as exc:
        raise InputError(f"{path}: {name} is damaged ({one_line(str(exc))[:100]}). Copy the file again.") from exc
    if leads_out:
        raise InputError(f"{path}: {name} leads to another place or file, and vip follows no link in a file. Copy its numbers into it.")
    return found if isinstance(found, h5py.Dataset) else None


def _check_pieces(path: Path, name: str, row_numbers: int, chunk_bytes: int) -> None:
    if row_numbers > MOST_ROW_NUMBERS:
        raise InputError(
            f"{path}: {name} has {row_numbers:,} numbers a row, and more than {MOST_ROW_NUMBERS:,} are not read."
            " Give features with fewer clips or numbers."
        )
    if chunk_bytes > MOST_CHUNK_BYTES:
        raise InputError(
            f"{path}: {name} has chunks of {chunk_bytes:,} bytes, and more than {MOST_CHUNK_BYTES:,} are not unpacked."
            " Write it again with a chunk a video."
        )


def _check_sizes(path: Path, clips: int, width: int) -> None:
    if clips > MOST_CLIPS or width > MOST_WIDTH:
        raise InputError(
            f"{path} has {clips:,} clips a video, of {width:,} numbers each. Give features of at most {MOST_CLIPS:,} clips and"
            f" {MOST_WIDTH:,} numbers."
        )


def _read_ids(path: Path, ids: Any) -> npt.NDArray[Any]:
    """Return the ids, after a check of the memory they take: h5py takes as much as a file states, also for rows that are not written."""
    import h5py

    try:
        text = h5py.check_string_dtype(ids.dtype)
        if ids.dtype.kind not in "biufS" and text is None:
            raise InputError(f"{path} has ids of the type {one_line(str(ids.dtype))[:60]}. Expected names or numbers.")
        if ids.size > MOST_IDS:
            raise InputError(f"{path} has {ids.size:,} ids. Give features in the form of NExT-QA.")
        if ids.size and text is not None and text.length is None:
            return _texts_of_any_length(path, ids)
        _check_lengths(path, ids.size, ids.dtype.itemsize, ids.dtype.itemsize * max(ids.size, math.prod(ids.chunks or ())))
        return np.asarray(ids[:])
    except DAMAGED as exc:
        raise InputError(f"{path} has ids that cannot be read ({one_line(str(exc))[:100]}). Copy it again.") from exc


def _check_lengths(path: Path, count: int, most: int, total: int) -> None:
    if most > MOST_ID_BYTES or total > MOST_IDS_BYTES:
        raise InputError(
            f"{path} has {count:,} ids of up to {most:,} bytes, {total:,} bytes together. Give features in the form of NExT-QA."
        )


def _texts_of_any_length(path: Path, ids: Any) -> npt.NDArray[Any]:
    """Return texts of any length, read from the global heaps of the file (HDF5 file format, III.E).

    h5py does not say how long a text is before it takes the memory, all rows may lead to one text, and HDF5 2.0 reads some damaged heaps
    for ever.

    Raises:
        InputError: the rows do not lie in one piece, as h5py writes them where nothing else is asked of it; or the texts are too long.
        ValueError: the file is damaged.
    """
    start, sizes = ids.id.get_offset(), ids.file.id.get_create_plist().get_sizes()
    is_one_piece = ids.chunks is None and start is not None and ids.id.get_storage_size() == ids.size * REFERENCE.itemsize
    if not is_one_piece or sizes != (8, 8):
        raise InputError(f"{path} has ids of any length that are packed, or not written. Write them as numbers or as text of fixed length.")
    rows = np.fromfile(path, REFERENCE, ids.size, offset=start)
    if len(rows) < ids.size:
        raise ValueError("it is cut off")
    lengths = rows["length"].astype(np.int64)
    _check_lengths(path, len(rows), int(lengths.max()), int(lengths.sum()))
    texts = np.full(len(rows), b"", dtype=object)
    written = np.flatnonzero(lengths)
    written = written[np.argsort(rows["heap"][written], kind="stable")]
    with path.open("rb") as file:
        here, left, data, places = None, path.stat().st_size, b"", dict[int, tuple[int, int]]()
        for row in written.tolist():
            length, heap, number = rows[row].tolist()
            if heap != here:
                here, (data, places) = heap, _read_heap(file, ids.file.userblock_size + heap, left)
                left -= len(data)  # heaps do not overlap
            start, most = places.get(number, (0, 0))
            if length > most:
                raise ValueError(f"row {row} has no text")
            texts[row] = data[start : start + length]
    return texts


def _read_heap(file: IO[bytes], start: int, most_bytes: int) -> tuple[bytes, dict[int, tuple[int, int]]]:
    """Return the bytes of a global heap, and by its number where each object begins and how long it is."""
    file.seek(start)
    head = file.read(HEAP_HEAD.size)
    mark, size = HEAP_HEAD.unpack(head.ljust(HEAP_HEAD.size))
    if mark != HEAP_MARK or size > most_bytes:
        raise ValueError("a heap of texts is damaged")
    data = head + file.read(size - len(head))
    places: dict[int, tuple[int, int]] = {}
    place = HEAP_HEAD.size
    while place + OBJECT_HEAD.size <= len(data):
        number, length = OBJECT_HEAD.unpack_from(data, place)
        place += OBJECT_HEAD.size
        if number == 0 or length > len(data) - place:  # 0 is what is free, up to the end
            break
        places[number] = place, length
        place += -(-length // 8) * 8
    return data, places


def _rows_by_id(path: Path, ids: npt.NDArray[Any]) -> dict[str, int]:
    """Return the row of each video; ids may be numbers, bytes or text."""
    rows: dict[str, int] = {}
    for row, value in enumerate(ids.flat):
        name = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
        if name in rows:
            raise InputError(f"{path} has the id {one_line(name)[:60]} more than once. Make it again: one id a video.")
        rows[name] = row
    return rows


def _words(sizes: FeatureSizes) -> str:
    maps = f" and maps of {'×'.join(map(str, sizes.maps))}" if sizes.maps else ""
    return f"{sizes.clips} clips of {sizes.appearance} + {sizes.motion} numbers{maps}"
