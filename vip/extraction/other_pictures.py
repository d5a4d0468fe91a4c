"""Frames that seem to be blurred or pale copies of a neighbour but stand still on screen and show another picture.

A slide with few words is a third as sharp as the next one with many, and has less contrast, and their vectors are alike: by these numbers
it is a copy. An insert makes the view before it look blurred in the same way. Such frames are taken back; not one that shows what the
sharper one shows once that is blurred, too, or the fuller one in less light: it is out of focus, or in a fade.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import cv2
import numpy as np

from vip.extraction.analyze import FrameAnalysis
from vip.extraction.quality import is_soft
from vip.local_change import LEAST_SHARE, STANDS_STILL, SmallPicture, change_of_thumbnails, local_change, prepared
from vip.records import Decision

CELL_LEVELS = 12  # of 255: blur leaves the mean of a cell of the signature as it is
OTHER_CELLS = 0.02  # share of the cells
BLURS_PX = (1.0, 2.0, 4.0)  # of thumbnails, whose longest side is 160 px
MOST_OTHER_CELLS = 0.1  # of a frame that is the same but for noise

IsCopy = Callable[[FrameAnalysis, FrameAnalysis], bool]


def other_pictures(frames: Sequence[FrameAnalysis], dropped: Mapping[int, Decision], rule: Literal["blurred", "faded"]) -> list[int]:
    """Return the indices of frames that were dropped by this rule as copies of a neighbour and are still pictures of their own."""
    copies = [index for index, decision in dropped.items() if decision.rule == rule and decision.neighbours]
    is_copy = {"blurred": _is_out_of_focus, "faded": _is_faded}[rule]
    return [index for index in copies if _stays(frames, index) and _differ(frames, index, dropped[index].neighbours[0], is_copy)]


def _differ(frames: Sequence[FrameAnalysis], index: int, other: int, is_copy: IsCopy) -> bool:
    """Return whether two frames differ in more than their sharpness or light."""
    if _other_cells(frames, index, other) < OTHER_CELLS:
        return False
    change = change_of_thumbnails(frames[index].thumbnail, frames[other].thumbnail)
    return change.strength(STANDS_STILL) >= 1 and not is_copy(frames[index], frames[other])


def _is_out_of_focus(soft: FrameAnalysis, sharp: FrameAnalysis) -> bool:
    """Return whether a far softer frame shows what the other one shows, blurred by as much as it takes."""
    one, other = prepared(soft.thumbnail), prepared(sharp.thumbnail)
    if one is None or other is None or not is_soft(soft.measured.quality, sharp.measured.quality.sharpness):
        return False
    blurred = (SmallPicture(np.asarray(cv2.GaussianBlur(other.rgb, (0, 0), sigma), np.uint8)) for sigma in BLURS_PX)
    return any(local_change(one, picture).strength(STANDS_STILL) < 1 for picture in blurred)


def _is_faded(pale: FrameAnalysis, full: FrameAnalysis) -> bool:
    """Return whether a frame shows what the other one shows, in the light that brings the two nearest."""
    one, other = prepared(pale.thumbnail), prepared(full.thumbnail)
    if one is None or other is None or one.rgb.shape != other.rgb.shape:
        return False
    contrast, level = np.polyfit(other.rgb.ravel(), one.rgb.ravel(), 1)
    faded = SmallPicture(np.clip(contrast * other.rgb + level, 0, 255).astype(np.uint8))
    return local_change(one, faded).strength(STANDS_STILL) < 1


def _stays(frames: Sequence[FrameAnalysis], index: int) -> bool:
    """Return whether nothing moves at a frame: its packets say so, or the frame before or behind it is the same."""
    if frames[index].is_still:
        return True
    pairs = [(place, place + 1) for place in (index - 1, index) if 0 <= place < len(frames) - 1]
    alike = [(a, b) for a, b in pairs if _other_cells(frames, a, b) < MOST_OTHER_CELLS]  # the rest need not be looked at place by place
    return any(change_of_thumbnails(frames[a].thumbnail, frames[b].thumbnail).share < LEAST_SHARE for a, b in alike)


def _other_cells(frames: Sequence[FrameAnalysis], a: int, b: int) -> float:
    """Return the share of the cells of the signature that differ."""
    levels = np.abs(frames[a].signature.astype(np.int16) - frames[b].signature).max(axis=2)
    return float((levels > CELL_LEVELS).mean())
