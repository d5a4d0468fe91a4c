"""What of a picture changed: whether two frames of one view show another picture though their vectors say that they are alike.

The cosine of two slides of one template is 0.95 to 0.99, that of a room with and without a person in it hardly less. So the two
pictures are compared place by place, at 160 px (the thumbnails, which a run keeps): a place is unchanged where the structure around it
(the second factor of SSIM; Wang et al., 2004) and its mean colour are the same, at the same place or a pixel beside it. Noise, coding at
a low rate, flicker and a swaying head leave structure as it is; other letters, an insert or a person do not.

In: two analyses of frames. Out: `LocalChange`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np
import numpy.typing as npt

WINDOW_PX = 5
STRUCTURE_NOISE = 60.0  # added to the variances, so that noise on a flat wall is no structure
SAME_STRUCTURE = 0.7
SAME_STRUCTURE_BESIDE = 0.8  # where it lies a pixel aside: lines of text are like one another
SAME_LIGHTNESS, SAME_CHROMA = 14.0, 10.0  # of 255, in the mean of a window
MOST_FLICKER = 25.0  # of 255: lightness by which a whole picture may differ
CONTENT_VARIANCE = 100.0  # of a window that is no flat background
ANOTHER_SHARE = 0.10  # of the picture that changed
ANOTHER_SHARE_OF_CONTENT = 0.3  # of the content that changed: a few words are much of a page with a few words
LEAST_SHARE = 0.02  # of the picture; below it is a cursor, a clock or a page number
CAMERA_MOVES = 0.6  # share that changed from which on no pixel beside is tried: it is another picture or a moving camera
KEPT_CONTENT = 0.12  # share of the content that may go while lines join
INK_LEAVES = 0.5  # share of the background that letters leave as it was; inserts and people cover it
NEIGHBOURHOOD = [(dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1) if (dx, dy) != (0, 0)]

Plane = npt.NDArray[np.float32]  # (H, W)
Mask = npt.NDArray[np.bool_]  # (H, W)


@dataclass(frozen=True, slots=True)
class LocalChange:
    """How a picture differs from one before it."""

    share: float
    """Of the picture that changed, 0 to 1."""
    share_of_content: float
    """Of what is no flat background in either picture."""
    gone: float
    """Share of the content of the earlier picture that the later one does not show."""
    background_left: float
    """Share of the background that is as it was where something joined it; 1 where nothing did."""

    @property
    def strength(self) -> float:
        """How much it is of what makes another picture: from 1 on it is one."""
        if self.share < LEAST_SHARE:
            return self.share / ANOTHER_SHARE
        return max(self.share / ANOTHER_SHARE, self.share_of_content / ANOTHER_SHARE_OF_CONTENT)

    @property
    def is_progress(self) -> bool:
        """Whether lines joined what was there and stays: a bullet on a slide, output in a terminal."""
        return self.gone < KEPT_CONTENT and self.background_left > INK_LEAVES


ALL_CHANGED = LocalChange(share=1.0, share_of_content=1.0, gone=1.0, background_left=0.0)


class SmallPicture:
    """A thumbnail, prepared for being compared."""

    def __init__(self, rgb: npt.NDArray[np.uint8]) -> None:
        lab = cv2.cvtColor(rgb, cv2.COLOR_RGB2LAB).astype(np.float32)
        self.lightness: Plane = np.ascontiguousarray(lab[..., 0])
        self.mean = _window_mean(self.lightness)
        self.variance: Plane = np.maximum(_window_mean(self.lightness * self.lightness) - self.mean * self.mean, 0)
        self.chroma: Plane = _window_mean(np.ascontiguousarray(lab[..., 1:]))

    @classmethod
    def from_jpeg(cls, data: bytes) -> SmallPicture | None:
        """Return the picture; None where it cannot be decoded."""
        bgr = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR) if data else None
        return None if bgr is None else cls(np.asarray(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB), np.uint8))

    @cached_property
    def has_content(self) -> Mask:
        return self.variance > CONTENT_VARIANCE


def local_change(before: SmallPicture, now: SmallPicture) -> LocalChange:
    """Return what changed from one picture to a later one of the same video."""
    if before.lightness.shape != now.lightness.shape:
        return ALL_CHANGED
    flicker = float(np.median(now.mean - before.mean))
    flicker = flicker if abs(flicker) < MOST_FLICKER else 0.0
    unchanged = _unchanged(before, now, flicker, (0, 0), SAME_STRUCTURE)
    if LEAST_SHARE < 1 - unchanged.mean() < CAMERA_MOVES:
        for shift in NEIGHBOURHOOD:
            unchanged |= _unchanged(before, now, flicker, shift, SAME_STRUCTURE_BESIDE)
    changed = ~unchanged
    had, has = before.has_content, now.has_content
    joined = changed & has & ~had
    as_it_was = np.abs(now.lightness - before.mean - flicker) < SAME_LIGHTNESS
    return LocalChange(
        share=float(changed.mean()),
        share_of_content=_share(changed, had | has),
        gone=_share(changed, had),
        background_left=_share(as_it_was, joined, empty=1.0),
    )


def _unchanged(before: SmallPicture, now: SmallPicture, flicker: float, shift: tuple[int, int], same_structure: float) -> Mask:
    """Return where the earlier picture and the later one, moved by `shift` (right, down) px, show the same; False at borders moved in."""
    (dx, dy), (height, width) = shift, before.lightness.shape
    mine = slice(max(0, dy), height + min(0, dy)), slice(max(0, dx), width + min(0, dx))
    its = slice(max(0, -dy), height + min(0, -dy)), slice(max(0, -dx), width + min(0, -dx))
    product = _window_mean(before.lightness[mine] * now.lightness[its])
    covariance = product - before.mean[mine] * now.mean[its]
    structure = (2 * covariance + STRUCTURE_NOISE) / (before.variance[mine] + now.variance[its] + STRUCTURE_NOISE)
    same = structure > same_structure
    same &= np.abs(now.mean[its] - before.mean[mine] - flicker) < SAME_LIGHTNESS
    same &= (np.abs(now.chroma[its] - before.chroma[mine]) < SAME_CHROMA).all(axis=2)
    everywhere = np.zeros((height, width), bool)
    everywhere[mine] = same
    return everywhere


def _window_mean(plane: Plane) -> Plane:
    return np.asarray(cv2.boxFilter(plane, -1, (WINDOW_PX, WINDOW_PX), borderType=cv2.BORDER_REFLECT_101), np.float32)


def _share(of: Mask, where: Mask, *, empty: float = 0.0) -> float:
    """Share of the places in `where` that are in `of`."""
    count = int(where.sum())
    return float((of & where).sum()) / count if count else empty
