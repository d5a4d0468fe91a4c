"""Faint copies: a frame in which a title, a caption or a line of a slide is half faded in or out gives way to one that shows it whole.

Where a title fades over a picture, little of the picture changes. So thumbnails are compared place by place: where two show the same
structure, one may have less contrast. Things that move make either of two frames the fainter one in some places, and what is lit less for
a while is as faint in the frames beside it; a fade is neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from vip.extraction.analyze import FrameAnalysis
from vip.extraction.bad_frames import nearest, shows_same_view
from vip.records import Decision
from vip.timecode import timecode

WITHIN_S = 6.0  # between two frames of a fade and what it fades to
WINDOW_PX = 11  # of 160
CONTENT_VARIANCE = 400.0  # of 255², of a window that shows something
NOISE_VARIANCE = 20.0
SAME_STRUCTURE, JUST_THE_SAME = 0.7, 0.9  # correlation in a window
AS_CLEAR = 0.9  # of the contrast in a window
FAINT_AREA, TIMES_BACK = 0.04, 2.0
"""Share of the picture by which more is faint than twice what is fainter in the other frame: with titles in 27 clips 59 of 100 frames in a
fade have it, of 604 other keyframes two."""
LASTING = 0.6  # share of what is faint that is just as faint in a frame beside it

Plane = npt.NDArray[np.float32]  # (H, W)
Mask = npt.NDArray[np.bool_]  # (H, W)


class _Contrast(NamedTuple):
    """A thumbnail with the mean and the variance around each pixel."""

    lightness: Plane
    mean: Plane
    variance: Plane


def faint_copies(analyses: Sequence[FrameAnalysis], kept: Sequence[int], dropped: Mapping[int, Decision]) -> dict[int, Decision]:
    """Return those of the kept frames that show faintly what a frame of the same view near them shows whole: index -> why.

    Args:
        dropped: frames that are not looked at, but for the copies among them.
    """
    out = {index for index, decision in dropped.items() if decision.rule != "duplicate"}
    seen: dict[int, _Contrast | None] = {}
    faint: dict[int, Decision] = {}
    for index in kept:
        mine = analyses[index]
        if mine.is_still:
            continue
        near = [other for other in nearest(index, len(analyses), out) if abs(analyses[other].time_s - mine.time_s) <= WITHIN_S]
        for other in {index, *near} - seen.keys():
            seen[other] = _contrast(analyses[other].thumbnail)
        beside = {other: contrast for other in near if (contrast := seen[other])}
        whole = [other for other in beside if shows_same_view(mine, analyses[other])]
        if (contrast := seen[index]) and (clearer := _clearer(contrast, beside, whole)) is not None:
            reason = f"dropped: part of it is half faded in or out; at {timecode(analyses[clearer].time_s)} it is whole"
            faint[index] = Decision(kept=False, rule="faded", reason=reason, neighbours=(clearer,))
            out.add(index)  # nothing gives way to what gives way itself
    return faint


def _clearer(mine: _Contrast, beside: Mapping[int, _Contrast], whole: Sequence[int]) -> int | None:
    """Return the first of the frames `whole` that shows what this one shows faintly, if those beside it do not show it just as faintly."""
    for other in whole:
        its = beside[other]
        faint = _fainter(mine, its)
        if faint.mean() - TIMES_BACK * _fainter(its, mine).mean() > FAINT_AREA and not any(
            _is_alike(mine, third)[faint].mean() > LASTING for third in beside.values() if third is not its
        ):
            return other
    return None


def _fainter(one: _Contrast, other: _Contrast) -> Mask:
    """Return where a picture shows the structure of another one with less contrast."""
    is_same = _correlation(one, other) > SAME_STRUCTURE
    return is_same & (other.variance > CONTENT_VARIANCE) & (one.variance < AS_CLEAR**2 * other.variance)


def _is_alike(one: _Contrast, other: _Contrast) -> Mask:
    """Return where two pictures show the same structure with the same contrast."""
    is_as_clear = (one.variance > AS_CLEAR**2 * other.variance) & (other.variance > AS_CLEAR**2 * one.variance)
    return is_as_clear & (_correlation(one, other) > JUST_THE_SAME)


def _correlation(one: _Contrast, other: _Contrast) -> Plane:
    if one.mean.shape != other.mean.shape:
        return np.zeros_like(one.mean)
    covariance = _window_mean(one.lightness * other.lightness) - one.mean * other.mean
    return np.asarray(covariance / np.sqrt((one.variance + NOISE_VARIANCE) * (other.variance + NOISE_VARIANCE)), np.float32)


def _contrast(jpeg: bytes) -> _Contrast | None:
    """Return a thumbnail's contrast; None where it cannot be decoded."""
    grey = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_GRAYSCALE) if jpeg else None
    if grey is None:
        return None
    lightness = np.asarray(grey, np.float32)
    mean = _window_mean(lightness)
    return _Contrast(lightness, mean, np.maximum(_window_mean(lightness * lightness) - mean * mean, 0))


def _window_mean(plane: Plane) -> Plane:
    return np.asarray(cv2.boxFilter(plane, -1, (WINDOW_PX, WINDOW_PX), borderType=cv2.BORDER_REFLECT_101), np.float32)
