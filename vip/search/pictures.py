"""The pictures of moments, out of run folders and shards.

In: moments, some of data sets that may lie elsewhere. Out: their pictures. Each shard is read once, up to the last picture in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vip.dataset.shards import read_sidecar, samples_in
from vip.errors import InputError
from vip.records import Image
from vip.search.moments import Moment
from vip.store import decode_picture, read_picture

LEAST_BARS = 1.02  # of a side; less is rounding
MOST_PIXELS = 100_000_000


def pictures_of(moments: Sequence[Moment]) -> list[Image | None]:
    """Return the picture of each moment; None where it is missing or damaged.

    Raises:
        StoreError: a shard is damaged.
    """
    found: dict[tuple[str, str, str], Image | None] = {}
    for source, part in dict.fromkeys((moment.source, moment.part) for moment in moments):
        wanted = {one.keyframe_id: one.picture for one in moments if (one.source, one.part) == (source, part)}
        pictures = _of_shard(source, int(part), set(wanted)) if part else _of_run(Path(source), wanted)
        found |= {(source, part, name): picture for name, picture in pictures.items()}
    return [found.get((moment.source, moment.part, moment.keyframe_id)) for moment in moments]


def _of_run(folder: Path, wanted: dict[str, str]) -> dict[str, Image | None]:
    found: dict[str, Image | None] = {}
    for name, path in wanted.items():
        try:
            found[name] = read_picture(folder / path, inside=folder)
        except InputError:
            found[name] = None
    return found


def _of_shard(address: str, number: int, wanted: set[str]) -> dict[str, Image | None]:
    found: dict[str, Image | None] = {}
    for sample in samples_in(address, read_sidecar(address, number)):
        for frame in sample.frames:
            if frame.keyframe.id in wanted:
                try:
                    found[frame.keyframe.id] = decode_picture(frame.picture, frame.name)
                except InputError:
                    found[frame.keyframe.id] = None
        if len(found) == len(wanted):
            break
    return found


def letterboxed(picture: Image, aspects: Sequence[float]) -> list[Image]:
    """Return the picture inside black bars, for each shape (width in units of height) that it does not have itself."""
    height, width = picture.shape[:2]
    found = []
    for aspect in aspects:
        new_height, new_width = max(height, round(width / aspect)), max(width, round(height * aspect))
        if max(new_height / height, new_width / width) > LEAST_BARS and new_height * new_width <= MOST_PIXELS:
            inside = np.zeros((new_height, new_width, 3), np.uint8)
            top, left = (new_height - height) // 2, (new_width - width) // 2
            inside[top : top + height, left : left + width] = picture
            found.append(inside)
    return found
