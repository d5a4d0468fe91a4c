"""Quality of a frame: sharpness, brightness, contrast, and the verdict on them (section 3.1: "we remove blurry
keyframes with low Laplacian scores").

Everything is measured on a picture whose longest side is 640 px, inside black bars, so that resolutions and
letterboxes compare. What counts as blurred is relative: a soft video keeps its frames, a frame out of focus in a sharp
video goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

import cv2
import numpy as np
import numpy.typing as npt

from vip.ranks import median
from vip.records import GreyPicture, Image, Quality

WORKING_SIDE_PX = 640

DARK_LEVEL, LIGHT_LEVEL = 40, 215  # grey levels; a picture all on the far side of one shows nothing
FEW = 0.025  # share of pixels that may lie on the near side: a watermark is no picture
CLEAR_DARK, CLEAR_LIGHT = 96, 160  # but a title card is one: bright letters on black, dark ones on white
LETTERS = 0.002  # share of pixels
MIDDLE = 0.6  # of width and height: a title stands there, the mark of a channel in a corner
LETTERS_IN_MIDDLE = 0.0015  # share of its pixels; small titles have 0.0025 and more, pictures that fade to black none
FLAT_CONTRAST = 0.02
BAR_LEVEL = 24  # grey level up to which a row or column at the border is a black bar
DEFOCUSED_DETAIL = 0.004  # of 290 sync frames of 4 mixes, all 14 out of focus lie below, 8 of the others too (blurred themselves)
PALE_DETAIL, VERY_SOFT_SHARE = 0.01, 0.02  # where there is little contrast noise is much of it
EDGELESS, EDGELESS_DETAIL = 4.0, 0.015  # sharpness with hardly an edge; a small plane in a grey sky has as little, and more detail
BLURRED_SHARE = 0.25  # of the sharpness of the surroundings
SOFT_SHARE = 0.1  # of the sharpness of the surroundings
SURROUNDINGS, APART_S = 4, 0.25  # frames on either side that make the reference, and the seconds between them
SAME_VIEW_COSINE = 0.85
SAME_VIEW = 1.0  # cosine and a fifth of the correlation of the signatures: two shots in the same dark colours have a high cosine alone
BLURRED_VIEW = 1 / 2  # of the sharpness of another frame of the same view
OUT_OF_FOCUS_SHAPE = 0.7  # correlation with a frame ten times as sharp: of 24 mixes no two frames of different clips have more
FADED_CONTRAST = 0.6  # of the contrast of a neighbour that shows the same
FADING_CONTRAST, AS_MUCH = 0.8, 0.15  # less is enough where the brightness went up or down with it, as in a fade
LEAST_CHANGE_LEVELS = 15  # of 255, root mean square, between two pictures that dissolve
LEAST_BLENDED = 0.08  # share of either picture in a blend
BLEND_REST = 0.25  # of the change between the two, what is of neither: of 370 other frames in transitions 5 have less
RESEMBLING_REST = 0.9  # of the difference to the more alike of the two; a quarter of the frames outside transitions have less
LEAST_OWN_LEVELS = 4.0  # of 255, mean, by which a frame between two pictures differs from either
MIXTURE_REST = 0.2  # of the difference to the more alike of the two, what is of neither; from 0.0 to 0.19 in wipes and dissolves of stills
SAME_SHAPE = 0.92  # correlation of two pictures from which on one is a paler copy of the other
NEARLY_BLACK, SHAPE_IN_DARKNESS = 0.06, 0.6  # brightness and contrast deep in a fade, where people move on

BadRule = Literal["black", "white", "flat", "blurred"]
Shapes = npt.NDArray[np.float32]
AnyScalar = TypeVar("AnyScalar", bound=np.generic)


@dataclass(frozen=True, slots=True)
class FrameMeasures:
    """Quality, and the shares of pixels behind the verdict that nobody else needs."""

    quality: Quality
    not_dark: float
    """Share of pixels brighter than `DARK_LEVEL`."""
    not_light: float
    """Share of pixels darker than `LIGHT_LEVEL`."""
    bright: float
    """Share of pixels brighter than `CLEAR_LIGHT` in one of their colours, since letters have any; 1 where the picture is not dark."""
    dim: float
    """Share of pixels darker than `CLEAR_DARK` in one of their colours; 1 where the picture is not light."""
    bright_in_middle: float
    """The same as `bright` in the middle of the picture."""
    dim_in_middle: float
    """The same as `dim` in the middle of the picture."""

    @property
    def detail(self) -> float:
        """Variance of the Laplacian per variance of the grey levels: blur lowers it, low contrast does not."""
        return self.quality.sharpness / max(1.0, (255 * self.quality.contrast) ** 2)


def measure(image: Image) -> FrameMeasures:
    """Return the quality of an RGB picture (H, W, 3) whose longest side is `WORKING_SIDE_PX`."""
    grey = np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), np.uint8)
    inside = _inside_bars(grey)
    grey = grey[inside]
    mean, deviation = (float(value[0, 0]) for value in cv2.meanStdDev(grey))
    quality = Quality(sharpness=sharpness_of(grey), brightness=mean / 255, contrast=deviation / 255)
    not_dark, not_light = (np.count_nonzero(mask) / grey.size for mask in (grey > DARK_LEVEL, grey < LIGHT_LEVEL))
    bright, bright_in_middle = _letters(image[inside], 0, CLEAR_LIGHT) if not_dark < FEW else (1.0, 1.0)
    dim, dim_in_middle = _letters(image[inside], CLEAR_DARK, 255) if not_light < FEW else (1.0, 1.0)
    return FrameMeasures(quality, not_dark, not_light, bright, dim, bright_in_middle, dim_in_middle)


def _letters(image: Image, least: int, most: int) -> tuple[float, float]:
    """Return the share of the pixels of which a colour lies outside these levels, as letters do, and that of those in the middle."""
    mask = cv2.inRange(image, (least,) * 3, (most,) * 3) == 0
    middle = middle_of(mask)
    return float(np.count_nonzero(mask)) / mask.size, float(np.count_nonzero(middle)) / middle.size


def sharpness_of(grey: GreyPicture) -> float:
    """Return the variance of the Laplacian."""
    _, spread = cv2.meanStdDev(cv2.Laplacian(grey, cv2.CV_16S))
    return float(spread[0, 0]) ** 2


def middle_of(picture: npt.NDArray[AnyScalar]) -> npt.NDArray[AnyScalar]:
    """Return the middle of a picture or a mask, (H, W, …): `MIDDLE` of its width and height, at least one pixel."""
    top, left = (round(side * (1 - MIDDLE) / 2) for side in picture.shape[:2])
    height, width = (max(1, round(side * MIDDLE)) for side in picture.shape[:2])
    return picture[top : top + height, left : left + width]


def _inside_bars(grey: npt.NDArray[np.uint8]) -> tuple[slice, slice]:
    """Return the rows and columns without black bars and the edge they make; all of them where too little would be left."""
    rows, columns = (np.flatnonzero(grey.max(axis=axis) > BAR_LEVEL) for axis in (1, 0))
    whole = slice(None), slice(None)
    if len(rows) == 0 or len(columns) == 0:
        return whole
    top, bottom = (0 if rows[0] == 0 else rows[0] + 2), (len(grey) if rows[-1] == len(grey) - 1 else rows[-1] - 1)
    left, right = (0 if columns[0] == 0 else columns[0] + 2), (grey.shape[1] if columns[-1] == grey.shape[1] - 1 else columns[-1] - 1)
    inside = slice(top, bottom), slice(left, right)
    return inside if grey[inside].size > grey.size // 8 else whole


def shows_nothing(measured: FrameMeasures) -> BadRule | None:
    """Return whether a picture is black, white or flat, whatever the surroundings."""
    if measured.not_dark < FEW and measured.bright < LETTERS and measured.bright_in_middle < LETTERS_IN_MIDDLE:
        return "black"
    if measured.not_light < FEW and measured.dim < LETTERS and measured.dim_in_middle < LETTERS_IN_MIDDLE:
        return "white"
    return "flat" if measured.quality.contrast < FLAT_CONTRAST else None


def references(measured: Sequence[FrameMeasures | None], times_s: Sequence[float]) -> list[float]:
    """Return for each frame the median sharpness of up to 4 frames on either side that show something; 0 where there are none.

    Of frames that follow within a quarter of a second the first counts: encoders put several sync frames where the focus changes.

    Args:
        measured: None for a frame that could not be decoded.
    """
    shows = [row.quality.sharpness if row and shows_nothing(row) is None else np.nan for row in measured]
    rows = range(len(shows))
    before, behind = ([_apart(times_s, row, side) for row in rows] for side in (-1, 1))
    around = [[shows[other] for other in (*before[row], *behind[row])] for row in rows]
    seen = [[value for value in window if value == value] for window in around]  # np.nanmedian would load numpy.ma: 40 ms
    return [median(window) if window else 0.0 for window in seen]


def _apart(times_s: Sequence[float], row: int, step: int) -> list[int]:
    """Return the next 4 rows on one side, each a quarter of a second from the one before or more."""
    found = [row]
    other = row + step
    while 0 <= other < len(times_s) and len(found) <= SURROUNDINGS:
        if abs(times_s[other] - times_s[found[-1]]) >= APART_S:
            found.append(other)
        other += step
    return found[1:]


def verdict(measured: FrameMeasures, reference: float) -> BadRule | None:
    """Return why a frame is bad, or None.

    Args:
        reference: sharpness of the surroundings (`references`).
    """
    if rule := shows_nothing(measured):
        return rule
    sharpness = measured.quality.sharpness
    is_blurred = measured.detail < DEFOCUSED_DETAIL and sharpness < BLURRED_SHARE * reference
    is_pale_and_blurred = measured.detail < PALE_DETAIL and sharpness < VERY_SOFT_SHARE * reference
    is_edgeless = measured.detail < EDGELESS_DETAIL and sharpness < min(EDGELESS, SOFT_SHARE * reference)
    return "blurred" if is_blurred or is_pale_and_blurred or is_edgeless else None


def much_blurrier(mine: Quality, other: Quality) -> bool:
    """Return whether a frame is so blurred that another of the same view stands for both."""
    return mine.sharpness < BLURRED_VIEW * other.sharpness


def is_out_of_focus(mine: Quality, other: Quality, correlation: float) -> bool:
    """Return whether a frame shows what another one shows, out of focus: far softer, and of its shape by the correlation of signatures."""
    return mine.sharpness < SOFT_SHARE * other.sharpness and correlation > OUT_OF_FOCUS_SHAPE


def is_soft(mine: Quality, reference: float) -> bool:
    """Return whether a frame is so much softer than its surroundings that a sharper one is worth looking for."""
    return mine.sharpness < SOFT_SHARE * reference


def much_paler(mine: Quality, neighbour: Quality) -> bool:
    """Return whether a frame is so pale that it is a neighbour of the same shape on its way from or to black or white."""
    share = mine.contrast / max(neighbour.contrast, 1e-6)
    to_black, to_white = mine.brightness / max(neighbour.brightness, 1e-6), (1 - mine.brightness) / max(1 - neighbour.brightness, 1e-6)
    return share < FADED_CONTRAST or (share < FADING_CONTRAST and min(abs(to_black - share), abs(to_white - share)) < AS_MUCH)


def rises_from_black(mine: Quality, neighbour: Quality, correlation: float) -> bool:
    """Return whether a frame is nearly black and shows what a neighbour of more than twice its light and contrast does, which may move."""
    share, light = mine.contrast / max(neighbour.contrast, 1e-6), mine.brightness / max(neighbour.brightness, 1e-6)
    is_dark = max(mine.brightness, mine.contrast) < NEARLY_BLACK
    return is_dark and max(share, light) < 0.5 and abs(share - light) < AS_MUCH and correlation > SHAPE_IN_DARKNESS


def same_view(cosine: float, correlation: float) -> bool:
    """Return whether two frames show the same view: by the cosine of their views and the correlation of their signatures."""
    return cosine > SAME_VIEW_COSINE and cosine + correlation / 5 > SAME_VIEW


def same_shape(correlation: float) -> bool:
    return correlation > SAME_SHAPE


class _Fit(NamedTuple):
    """A picture as a weighted mean of two others, float64 (H, W, 3) each."""

    change: npt.NDArray[np.float64]
    """From one of the two to the other."""
    so_far: npt.NDArray[np.float64]
    """From the one to the picture."""
    rest: npt.NDArray[np.float64]
    """What of that is no share of the change."""


def is_blend(picture: Image, before: Image, after: Image, *, least_change_levels: float = LEAST_CHANGE_LEVELS) -> bool:
    """Return whether a small picture is a weighted mean of two others that differ, as pictures in a dissolve are.

    Args:
        least_change_levels: of 255, root mean square, by which the two have to differ.
    """
    fit = _fit(picture, before, after, least_change_levels)
    return fit is not None and float((fit.rest**2).sum()) < BLEND_REST**2 * float((fit.change**2).sum())


def resembles_blend(picture: Image, before: Image, after: Image) -> bool:
    """Return whether a weighted mean of two others that differ is more like a small picture than either, as in a dissolve of what moves."""
    fit = _fit(picture, before, after, LEAST_CHANGE_LEVELS)
    if fit is None:
        return False
    own = min(float(np.abs(fit.so_far).mean()), float(np.abs(fit.so_far - fit.change).mean()))
    return float(np.abs(fit.rest).mean()) < RESEMBLING_REST * own


def _fit(picture: Image, before: Image, after: Image, least_change_levels: float) -> _Fit | None:
    """Return a picture as the nearest weighted mean of two others; None where they differ by less, or where it has hardly a part of one."""
    start = before.astype(np.float64)
    change, so_far = after - start, picture - start
    energy = float((change * change).sum())
    if energy < change.size * least_change_levels**2:
        return None
    share = float((so_far * change).sum()) / energy
    return _Fit(change, so_far, so_far - share * change) if LEAST_BLENDED < share < 1 - LEAST_BLENDED else None


def is_mixture(picture: Image, before: Image, after: Image) -> bool:
    """Return whether each place of a small picture shows a weighted mean of what two others show there, as in a wipe of any shape."""
    start = before.astype(np.float32)
    change, so_far = after - start, picture - start
    own = min(float(np.abs(so_far).mean()), float(np.abs(so_far - change).mean()))
    if own < LEAST_OWN_LEVELS:
        return False
    share = ((so_far * change).sum(axis=2) / np.maximum((change * change).sum(axis=2), 1.0)).clip(0.0, 1.0)
    return float(np.abs(so_far - share[..., None] * change).mean()) < MIXTURE_REST * own


def correlation(a: Image, b: Image) -> float:
    """Return the correlation of the grey levels of two small pictures in [-1, 1]; 0 where one of them is flat."""
    one, other = shapes_of([a, b])
    return float(one @ other)


def shapes_of(pictures: Sequence[Image]) -> Shapes:
    """Return the grey levels of N small pictures of one size, with a mean of 0 and of length 1: float32 (N, pixels); 0 where one is flat.

    The product of two of them is their correlation.
    """
    grey = np.stack(pictures).reshape(len(pictures), -1, 3).sum(axis=2, dtype=np.float32)
    grey -= grey.mean(axis=1, keepdims=True)
    length = np.sqrt(np.einsum("ij,ij->i", grey, grey))[:, None]
    return np.asarray(np.divide(grey, length, out=np.zeros_like(grey), where=length > 0), np.float32)
