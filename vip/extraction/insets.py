"""Slides beside a window in which a speaker moves, as recordings of lectures and calls have them: the slides without the window.

A person who counts slides looks past the speaker. For vip the speaker spoils three things: packets never rest, two frames of one slide are
not alike, and in a restless video other words are no other picture. So it finds the window first. That is the place that changes in most
steps from frame to frame. On the page around it nothing changes in some steps, and another slide comes in others.

In: the analyses of all frames. Out: the same with the window painted over, and what stands on screen beside it counted as still.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from vip.extraction.analyze import SIGNATURE_SIZE, FrameAnalysis
from vip.extraction.quality import is_blend
from vip.local_change import BESIDE, SAME_LIGHTNESS, WINDOW_PX, Mask, SmallPicture, prepared
from vip.ranks import median, quantile

LEAST_FRAMES = 6
MOVED_LEVELS = 3  # of 255, in a cell of the signature: coding changes less
CALMEST = 0.4  # share of the steps from frame to frame that show where the window is: the others show other slides too
OFTEN = 0.2  # of these steps change a cell of the window
MOST_AREA = 0.4  # of the picture; where more moves, that is what is shown
ACTIVE, ACTIVE_STEPS = 0.02, 0.6  # share of the window that changes, and of the steps that change so much of it
STRAY_CELLS = 2  # outside, that may change on a page that stands still
STILL_STEPS = 0.12  # of all steps; elsewhere another slide comes
OVER_AT_ONCE = 0.2  # of the steps with movement beside the window: 0.24 and more of 80 talks, 0.02 to 0.15 of 3 animated logos and planets
BACKGROUND_VARIANCE = 0.2  # of most windows of the background: 0.18 at most on 16 drawn pages, 0.23 in a dark hall
SLIDES_DIFFER = 4.0  # of 255, root mean square over the signature; of dark slides with few words by 5 to 8, frames of one slide by up to 3
LOOKED_AT = 32  # frames that say whether this is a page, and what is of its template
ALWAYS = 0.95  # of the frames; what is in so many is of the template


class Box(NamedTuple):
    """Rows and columns of the signature's cells."""

    rows: slice
    columns: slice

    def on(self, shape: tuple[int, ...]) -> tuple[slice, slice]:
        """Return rows and columns of a picture with this height and width."""
        sides = zip(self, shape, reversed(SIGNATURE_SIZE), strict=False)
        rows, columns = (slice(cells.start * side // count, -(-min(count, cells.stop) * side // count)) for cells, side, count in sides)
        return rows, columns


def without_inset(frames: Sequence[FrameAnalysis]) -> Sequence[FrameAnalysis]:
    """Return the frames with the window painted over in signatures and thumbnails; the same frames where there is no such window.

    In thumbnails what always stands on the page, such as bars and a logo, is transparent like the window: `local_change` leaves it out.
    """
    if len(frames) < LEAST_FRAMES:
        return frames
    steps = (cv2.absdiff(before.signature, now.signature) for before, now in pairwise(frames))
    moved = np.stack([step.max(axis=2) > MOVED_LEVELS for step in steps])
    box = _inset(moved)
    if box is None:
        return frames
    outside = moved.copy()
    outside[:, *box] = False
    stands_still = outside.sum(axis=(1, 2)) <= STRAY_CELLS
    is_active = moved[:, *box].mean(axis=(1, 2)) > ACTIVE
    if not STILL_STEPS <= stands_still.mean() < 1 or is_active.mean() < ACTIVE_STEPS or not _comes_to_rest(stands_still):
        return frames
    pictures = _some_pictures(frames)
    if not _is_page(pictures, box):
        return frames
    colour, ignored = np.median([picture.rgb.mean(axis=(0, 1)) for picture in pictures], axis=0).astype(np.uint8), _ignored(pictures, box)
    bare = [_painted(frame, box, colour, ignored) for frame in frames]
    return still_where_unchanged(bare, stands_still.tolist())


def _inset(moved: Mask) -> Box | None:
    """Return the largest place that moves often, one cell wider, from bool (N - 1, 18, 32); None where there is none or it is too large."""
    share = moved.mean(axis=(1, 2))
    often = moved[share <= quantile(share, CALMEST)].mean(axis=0) >= OFTEN
    count, pieces = cv2.connectedComponents(cv2.dilate(often.astype(np.uint8), BESIDE))
    if count < 2:
        return None
    largest = max(range(1, count), key=lambda piece: int((often & (pieces == piece)).sum()))
    rows, columns = (slice(max(0, int(at.min()) - 1), int(at.max()) + 2) for at in np.nonzero(often & (pieces == largest)))
    area = np.zeros(often.shape, bool)
    area[rows, columns] = True
    return Box(rows, columns) if area.mean() <= MOST_AREA else None


def _comes_to_rest(stands_still: npt.NDArray[np.bool_]) -> bool:
    """Return whether what moves beside the window is often over with the next frame, as where slides change; animations go on."""
    moves = ~stands_still[:-1]
    return not moves.any() or bool(stands_still[1:][moves].mean() >= OVER_AT_ONCE)


def _some_pictures(frames: Sequence[FrameAnalysis]) -> list[SmallPicture]:
    """Return some thumbnails of one size from all over the video."""
    found = (prepared(frame.thumbnail) for frame in frames[:: -(-len(frames) // LOOKED_AT)])
    pictures = [picture for picture in found if picture is not None]
    return [picture for picture in pictures if picture.mean.shape == pictures[0].mean.shape]


def _is_page(pictures: Sequence[SmallPicture], box: Box) -> bool:
    """Return whether the background beside the window is as flat as that of what is drawn."""
    variances = []
    for picture in pictures:
        background = ~picture.has_content
        background[box.on(background.shape)] = False
        variances.append(median(picture.variance[background]) if background.any() else np.inf)
    return bool(variances) and median(variances) < BACKGROUND_VARIANCE


def _ignored(pictures: Sequence[SmallPicture], box: Box) -> Mask:
    """Return the places of the thumbnails that do not count: the window, and what always stands on the page."""
    shape = pictures[0].mean.shape
    always = np.mean([picture.has_content for picture in pictures], axis=0) >= ALWAYS
    darkest, lightest = np.quantile([picture.mean for picture in pictures], (1 - ALWAYS, ALWAYS), axis=0)
    window = np.zeros(shape, np.uint8)
    window[box.on(shape)] = 1
    return np.asarray(
        (cv2.dilate(window, np.ones((WINDOW_PX, WINDOW_PX), np.uint8)) > 0) | (always & (lightest - darkest < SAME_LIGHTNESS)), bool
    )


def still_where_unchanged(frames: Sequence[FrameAnalysis], unchanged: Sequence[bool]) -> list[FrameAnalysis]:
    """Return the frames with those still that are as the one before or behind, and those that may be of a slide that no other shows.

    Args:
        unchanged: of each step from a frame to the next.
    """
    is_same = [before or behind for before, behind in pairwise([False, *unchanged, False])]
    return [
        replace(frame, is_still=same or _may_be_still(frames, place))
        for place, (frame, same) in enumerate(zip(frames, is_same, strict=True))
    ]


def _may_be_still(frames: Sequence[FrameAnalysis], place: int) -> bool:
    """Return whether a frame that is unlike those beside it may be of a slide that no other shows, and is in no fade between them."""
    frame = frames[place]
    if frame.is_still or frame.in_transition or not frame.is_calm:
        return frame.is_still
    beside = [frames[other].signature for other in (place - 1, place + 1) if 0 <= other < len(frames)]
    return len(beside) < 2 or not is_blend(frame.signature, *beside, least_change_levels=SLIDES_DIFFER)


def _painted(frame: FrameAnalysis, box: Box, colour: npt.NDArray[np.uint8], ignored: Mask) -> FrameAnalysis:
    """Return a frame with the window in one colour."""
    signature = frame.signature.copy()
    signature[box] = colour
    bgr = cv2.imdecode(np.frombuffer(frame.thumbnail, np.uint8), cv2.IMREAD_COLOR)
    if bgr is None or bgr.shape[:2] != ignored.shape:
        return replace(frame, signature=signature)
    bgr[box.on(bgr.shape)] = colour[::-1]
    alpha = np.where(ignored, 0, 255).astype(np.uint8)
    png = cv2.imencode(".png", np.dstack([bgr, alpha]), [cv2.IMWRITE_PNG_COMPRESSION, 1])[1]  # as is, it would take half as much again
    return replace(frame, signature=signature, thumbnail=png.tobytes())
