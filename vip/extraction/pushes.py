"""Pushes: frames in which the next picture pushes the one before out of sight, as slides do and pages that scroll.

Such a frame is a window of both pictures side by side, and shows nothing that they do not show. Signatures say where the window may be,
and thumbnails whether it is there: lines of text lie closer than the cells of a signature.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vip.extraction.analyze import FrameAnalysis
from vip.local_change import prepared, window_mean
from vip.records import Image

LEAST_PUSHED = 0.1  # of the picture; below it is hardly begun, or a slow pan
LEAST_LEVELS = 1.0  # of 255: mean by which both pictures differ from the frame, and from one another; a page with a few words by 1.5
MAY_BE_UNLIKE, UNLIKE = 0.7, 0.35
"""Of the difference to the more alike of the two, what the window may differ by, in signatures and in thumbnails. Pushed and scrolled pages
and slides have 0 to 0.55, and 0.02 to 0.2; moving pictures that are pushed 0.05 to 0.46; of 4,000 other frames of 27 clips and 13 mixes
none has less than 0.42 in thumbnails."""
SOFTER_PX = 3  # thumbnails are this much softer, since a push goes by parts of their pixels too
REMEMBERED = 512  # frames of a video are judged again each time that some join them

Plane = npt.NDArray[np.float32]  # (H, W, 3)


class _Window(NamedTuple):
    """A part of two pictures side by side, or one above the other, of the size of one."""

    axis: int
    """1 where they are side by side."""
    is_turned: bool
    """Whether the later picture comes first."""
    begin: float
    """Share of the first picture that is left out."""


def is_push(frame: FrameAnalysis, before: FrameAnalysis, after: FrameAnalysis) -> bool:
    """Return whether a frame is a window of the pictures before and behind it, as in a push from one to the other."""
    window = _likeliest_window(*(one.signature.tobytes() for one in (frame, before, after)), frame.signature.shape)
    return window is not None and _is_window(frame.thumbnail, before.thumbnail, after.thumbnail, window)


@lru_cache(maxsize=REMEMBERED)
def _likeliest_window(shown: bytes, before: bytes, after: bytes, shape: tuple[int, ...]) -> _Window | None:
    """Return the window of two signatures that is most like a third; None where none may be what it shows."""
    picture, *pictures = (_plane(np.frombuffer(cells, np.uint8).reshape(shape)) for cells in (shown, before, after))
    own = _own_difference(picture, *pictures)
    if own is None:
        return None
    found: list[tuple[float, _Window]] = []
    for axis, is_turned in product((0, 1), (False, True)):
        size = picture.shape[axis]
        both = np.concatenate(pictures[::-1] if is_turned else pictures, axis)
        rows, all_rows = picture.mean(axis=1 - axis), both.mean(axis=1 - axis)
        windows = np.lib.stride_tricks.sliding_window_view(all_rows, size, axis=0)  # (size + 1, 3, size)
        of_rows = np.abs(windows - rows.T).mean(axis=(1, 2))  # at most that of the pictures
        margin = max(1, round(LEAST_PUSHED * size))
        places = margin + np.flatnonzero(of_rows[margin : size - margin + 1] < MAY_BE_UNLIKE * own)
        found += [(_difference(picture, both, axis, place), _Window(axis, is_turned, place / size)) for place in places.tolist()]
    difference, window = min(found, default=(np.inf, None))
    return window if difference < MAY_BE_UNLIKE * own else None


@lru_cache(maxsize=REMEMBERED)
def _is_window(shown: bytes, before: bytes, after: bytes, window: _Window) -> bool:
    """Return whether a thumbnail is about this window of two others; False where one cannot be decoded."""
    small = [prepared(jpeg) for jpeg in (shown, before, after)]
    planes = [window_mean(_plane(one.rgb), SOFTER_PX) for one in small if one is not None]
    if len(planes) < len(small) or len({plane.shape for plane in planes}) > 1:
        return False
    picture, *pictures = planes
    own = _own_difference(picture, *pictures)
    size = picture.shape[window.axis]
    both = np.concatenate(pictures[::-1] if window.is_turned else pictures, window.axis)
    begin, near = round(window.begin * size), size // 16  # a cell of a signature, or two
    around = range(max(0, begin - near), min(size, begin + near) + 1)
    return own is not None and any(_difference(picture, both, window.axis, place) < UNLIKE * own for place in around)


def _plane(image: Image) -> Plane:
    return np.asarray(image, np.float32)


def _own_difference(picture: Plane, before: Plane, after: Plane) -> float | None:
    """Return the difference to the more alike of two pictures; None where two of the three are alike."""

    def difference_of_shape(a: Plane, b: Plane) -> float:
        difference = a - b
        return float(np.abs(difference - difference.mean(axis=(0, 1))).mean())  # whatever their light

    own = min(difference_of_shape(picture, before), difference_of_shape(picture, after))
    return own if min(own, difference_of_shape(before, after)) >= LEAST_LEVELS else None


def _difference(picture: Plane, both: Plane, axis: int, place: int) -> float:
    """Return the mean difference to the window of two pictures that begins at this row or column."""
    window = both.take(range(place, place + picture.shape[axis]), axis)
    return float(np.abs(window - picture).mean())
