"""Faint copies: a frame in which a title, a caption or a line of a slide is half faded in or out gives way to one that shows it whole.

Where a title fades over a picture, little of the picture changes. So thumbnails are compared place by place: where two show the same
structure, one may have less contrast. Things that move make either of two frames the fainter one in some places, what is lit less for a
while is as faint in the frames beside it, and a hand that shades something is to be seen itself; a fade is none of these.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import cv2
import numpy as np

from vip.extraction.analyze import FrameAnalysis
from vip.extraction.bad_frames import neighbours, shows_same_view
from vip.local_change import Mask, Plane, window_mean
from vip.records import Decision
from vip.timecode import timecode

WITHIN_S = 6.0  # between two frames of a fade and what it fades to
WINDOW_PX = 11  # of 160
CONTENT_VARIANCE, FLAT_VARIANCE = 400.0, 100.0  # of 255², of a window that shows something, and of one that shows nothing
NOISE_VARIANCE = 20.0
SAME_STRUCTURE, JUST_THE_SAME = 0.7, 0.9  # correlation in a window
AS_CLEAR = 0.9  # of the contrast in a window
FAINT_AREA, TIMES_BACK = 0.04, 1.5
"""Share of the picture by which more is faint than 1.5 times what is fainter in the other frame: with titles in 27 clips 53 of 100 frames
in a fade have it, of 605 other keyframes one."""
OWN_AREA = 0.02  # of the picture where a frame shows something and the other one nothing
PREPARED = 32  # thumbnails, 170 KB each; those of the next frame are mostly the same
LASTING = 0.6  # share of what is faint that is just as faint in a frame beside it


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
    faint: dict[int, Decision] = {}

    @lru_cache(PREPARED)
    def contrast_of(index: int) -> _Contrast | None:
        return _contrast(analyses[index].thumbnail)

    for index in kept:
        mine, contrast = analyses[index], contrast_of(index)
        if mine.is_still or contrast is None:
            continue
        near = ((other, contrast_of(other)) for other in _near(index, analyses, out))
        beside = {other: its for other, its in near if its and its.mean.shape == contrast.mean.shape}
        whole = [other for other in beside if shows_same_view(mine, analyses[other])]
        clearer = _clearer(index, contrast, beside, whole)
        if clearer is not None:
            reason = f"dropped: part of it is half faded in or out; at {timecode(analyses[clearer].time_s)} it is whole"
            faint[index] = Decision(kept=False, rule="faded", reason=reason, neighbours=(clearer,))
            out.add(index)  # nothing gives way to what gives way itself
    return faint


def _near(index: int, analyses: Sequence[FrameAnalysis], out: Container[int]) -> list[int]:
    """Return the 3 frames on either side that are not out, those within 6 s, the nearest first."""
    apart_s = {other: abs(analyses[other].time_s - analyses[index].time_s) for other in neighbours(index, len(analyses), out)}
    return sorted((other for other in apart_s if apart_s[other] <= WITHIN_S), key=lambda other: apart_s[other])


def _clearer(index: int, mine: _Contrast, beside: Mapping[int, _Contrast], whole: Sequence[int]) -> int | None:
    """Return the first of the frames `whole` that shows what this one shows faintly, if none nearer than that shows it just as faintly."""
    for other in whole:
        faint = _faint(mine, beside[other])
        nearer = [its for third, its in beside.items() if third != other and (third < other) == (index < other)]
        if faint is not None and not any(_is_alike(mine, its, faint) for its in nearer):
            return other
    return None


def _faint(one: _Contrast, other: _Contrast) -> Mask | None:
    """Return where a picture shows the structure of another one with less contrast; None where that is no fade."""
    own = (one.variance > CONTENT_VARIANCE) & (other.variance < FLAT_VARIANCE)
    paler, clearer = _is_paler(one, other), _is_paler(other, one)
    if own.mean() > OWN_AREA or paler.mean() < FAINT_AREA:
        return None
    is_same = _correlation(one, other) > SAME_STRUCTURE
    faint = paler & is_same
    return faint if faint.mean() - TIMES_BACK * (clearer & is_same).mean() > FAINT_AREA else None


def _is_alike(one: _Contrast, other: _Contrast, where: Mask) -> bool:
    """Return whether two pictures mostly show the same structure with the same contrast there."""
    is_as_clear = (one.variance > AS_CLEAR**2 * other.variance) & (other.variance > AS_CLEAR**2 * one.variance)
    same = is_as_clear & (_correlation(one, other) > JUST_THE_SAME)
    return bool(same[where].mean() > LASTING)


def _is_paler(one: _Contrast, other: _Contrast) -> Mask:
    """Return where a picture has less contrast than another one that shows something there."""
    return (other.variance > CONTENT_VARIANCE) & (one.variance < AS_CLEAR**2 * other.variance)


def _correlation(one: _Contrast, other: _Contrast) -> Plane:
    covariance = window_mean(one.lightness * other.lightness, WINDOW_PX) - one.mean * other.mean
    return np.asarray(covariance / np.sqrt((one.variance + NOISE_VARIANCE) * (other.variance + NOISE_VARIANCE)), np.float32)


def _contrast(jpeg: bytes) -> _Contrast | None:
    """Return a thumbnail's contrast; None where it cannot be decoded."""
    grey = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_GRAYSCALE) if jpeg else None
    if grey is None:
        return None
    lightness = np.asarray(grey, np.float32)
    mean = window_mean(lightness, WINDOW_PX)
    return _Contrast(lightness, mean, np.maximum(window_mean(lightness * lightness, WINDOW_PX) - mean * mean, 0))
