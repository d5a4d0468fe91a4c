"""Keyframes out of a plain folder of pictures: measured and searched for objects, without a video or times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import cv2
import numpy as np

from vip.errors import InputError
from vip.extraction.quality import WORKING_SIDE_PX, measure
from vip.protocols import Detector, PictureOrigin
from vip.records import PICTURE_SUFFIXES, Failure, Image, Keyframe
from vip.store import read_picture


def pictures_in(folder: Path) -> list[Path]:
    """Return the pictures of a folder in name order.

    Raises:
        InputError: there is none.
    """
    found = sorted(path for path in folder.iterdir() if path.suffix.lower() in PICTURE_SUFFIXES and path.is_file())
    if not found:
        raise InputError(f"{folder} holds neither a run of vip nor pictures. Give a run folder, or one of pictures.")
    return found


def keyframes_of(
    paths: Sequence[Path], detector: Detector, *, on_failure: Callable[[Failure], None], advance: Callable[[], None]
) -> Iterator[Keyframe]:
    """Yield a record for each picture that can be read; a `Failure` for each that cannot."""
    for path in paths:
        try:
            yield _keyframe(path, read_picture(path), detector)
        except InputError as exc:
            on_failure(Failure(item=path.name, kind=exc.failure_kind, message=str(exc), exit_code=exc.exit_code))
        advance()


def working_picture(image: Image) -> Image:
    """Return the picture with its longest side scaled to `WORKING_SIDE_PX`, on which everything is measured."""
    height, width = image.shape[:2]
    scale = WORKING_SIDE_PX / max(height, width)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC), np.uint8)


def _keyframe(path: Path, image: Image, detector: Detector) -> Keyframe:
    height, width = image.shape[:2]
    working = working_picture(image)
    found = detector.detect([working], [PictureOrigin(name=path.name)])[0]
    return Keyframe(
        id=path.name,
        video_id=path.absolute().parent.name or "pictures",
        time_s=None,
        pts=None,
        image_path=path.name,
        width_px=width,
        height_px=height,
        quality=measure(working).quality,
        detections=None if found is None else tuple(found),
        candidate=None,
    )
