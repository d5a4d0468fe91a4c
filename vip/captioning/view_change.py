"""Change of view from one keyframe to the next: the same, moved, or another.

In: two RGB pictures. Out: `ViewChange`. Corners (ORB) are matched and one shift, turn and zoom is fitted to them by
RANSAC, which leaves out what moves by itself. The fit counts only if the earlier picture, moved so, looks like the
later one: a logo that stays while the scene changes fits perfectly and proves nothing. Slides of one template fit too, so where the
view is the same, what it shows is compared place by place.
"""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from vip.captioning.colours import shrink
from vip.local_change import STANDS_STILL, SmallPicture, local_change
from vip.protocols import ViewChange
from vip.records import Image

LONGEST_SIDE_PX = 480
SMALLEST_SIDE_PX = 64  # below, there is no room for corners: ORB describes each by 31x31 px
CORNERS = 800
BEST_OF_TWO = 0.8  # Lowe's ratio: the best match must be clearly better than the second best
LEAST_MATCHES = 12
LEAST_INLIERS = 10
LEAST_INLIER_SHARE = 0.3
REACH_PX = 4.0  # how far a corner may lie from where the fit puts it
LEAST_SPREAD = 0.02  # share of the picture inside the hull of the fitted corners; a logo covers less
LEAST_LIKENESS_MOVED, LEAST_LIKENESS_STILL = 0.6, 0.35  # correlation of the two pictures where they overlap
LEAST_OVERLAP = 0.15
LEAST_ZOOM, MOST_TURN_DEG = 0.33, 30.0
STILL_SHIFT, STILL_ZOOM, STILL_TURN_DEG = 0.02, 0.04, 3.0  # below: a still camera, given the accuracy of the fit
FLAT = 6.0  # standard deviation of the grey levels below which a correlation is noise
SAME_LEVELS = 12.0  # mean difference of grey levels between two pictures that look the same
STILL_LIKENESS = 0.8
CONTENT_SIDE_PX = 160  # at which the content of one view is compared
SEED = 0

Grey = npt.NDArray[np.uint8]  # (H, W)


class _Fit(NamedTuple):
    shift_xy: tuple[float, float]
    zoom: float
    turn_deg: float
    likeness: float

    @property
    def still(self) -> bool:
        across, down = self.shift_xy
        return max(abs(across), abs(down)) < STILL_SHIFT and abs(self.zoom - 1) < STILL_ZOOM and abs(self.turn_deg) < STILL_TURN_DEG


def view_change(before: Image, now: Image) -> ViewChange:
    """Compare two pictures of any size; the same pictures give the same answer."""
    height, width = shrink(now, LONGEST_SIDE_PX).shape[:2]
    first, second = _to_grey(before, (width, height)), _to_grey(now, (width, height))
    if _aspect_differs(before, now):
        return ViewChange("new view")
    unmoved = _likeness(first, second, np.ones(first.shape, bool))
    fit = _estimate_motion(first, second)
    if fit is None or fit.likeness < (LEAST_LIKENESS_STILL if fit.still else LEAST_LIKENESS_MOVED):
        return _same_view(before, now) if _looks_same(first, second) else ViewChange("new view")
    if fit.still or fit.likeness < unmoved:
        return _same_view(before, now)
    return ViewChange("view moved", fit.shift_xy, fit.zoom)


def _same_view(before: Image, now: Image) -> ViewChange:
    """Return that the view is the same, and whether it shows something else."""
    small = shrink(now, CONTENT_SIDE_PX)
    earlier = np.asarray(cv2.resize(before, small.shape[1::-1], interpolation=cv2.INTER_AREA), np.uint8)
    changed = local_change(SmallPicture(earlier), SmallPicture(small)).strength(STANDS_STILL) >= 1
    return ViewChange("same view", content_changed=changed)


def _to_grey(image: Image, size: tuple[int, int]) -> Grey:
    small = shrink(image, LONGEST_SIDE_PX)
    if (small.shape[1], small.shape[0]) != size:
        small = np.asarray(cv2.resize(small, size, interpolation=cv2.INTER_AREA), np.uint8)
    return np.asarray(cv2.cvtColor(small, cv2.COLOR_RGB2GRAY), np.uint8)


def _aspect_differs(before: Image, now: Image) -> bool:
    """Return whether the shapes differ, as a folder may mix them: no camera move leads from one to the other."""
    one, other = (image.shape[1] / image.shape[0] for image in (before, now))
    return bool(abs(one / other - 1) > 0.05)


def _estimate_motion(first: Grey, second: Grey) -> _Fit | None:
    """Return shift, turn and zoom from the first picture to the second; None where too little speaks for any."""
    matched = _match_features(first, second)
    if matched is None:
        return None
    cv2.setRNGSeed(SEED)
    affine, inliers = cv2.estimateAffinePartial2D(*matched, method=cv2.RANSAC, ransacReprojThreshold=REACH_PX)
    if affine is None or int(inliers.sum()) < max(LEAST_INLIERS, LEAST_INLIER_SHARE * len(inliers)):
        return None
    height, width = second.shape
    hull = cv2.convexHull(matched[1][inliers.ravel() == 1])
    zoom, turn_deg = float(np.hypot(affine[0, 0], affine[1, 0])), float(np.degrees(np.arctan2(affine[1, 0], affine[0, 0])))
    if cv2.contourArea(hull) < LEAST_SPREAD * width * height or not LEAST_ZOOM < zoom < 1 / LEAST_ZOOM or abs(turn_deg) > MOST_TURN_DEG:
        return None
    overlap = cv2.warpAffine(np.full_like(first, 255), affine, (width, height), flags=cv2.INTER_NEAREST) > 0
    if overlap.mean() < LEAST_OVERLAP:
        return None
    moved = np.asarray(cv2.warpAffine(first, affine, (width, height)), np.uint8)
    centre = affine @ np.array([width / 2, height / 2, 1.0])
    shift = round(float(centre[0] / width - 0.5), 3), round(float(centre[1] / height - 0.5), 3)
    return _Fit(shift, round(zoom, 3), turn_deg, _likeness(moved, second, overlap))


def _match_features(first: Grey, second: Grey) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]] | None:
    """Return (N, 2) points of the first picture and where they are in the second; None where there are too few."""
    if min(first.shape) < SMALLEST_SIDE_PX:
        return None
    orb = cv2.ORB.create(nfeatures=CORNERS, fastThreshold=5, edgeThreshold=16)
    (points, codes), (other_points, other_codes) = (orb.detectAndCompute(grey, None) for grey in (first, second))
    if codes is None or other_codes is None or len(other_codes) < 2:
        return None
    pairs = cv2.BFMatcher(cv2.NORM_HAMMING).knnMatch(codes, other_codes, k=2)
    good = [best for best, second_best in pairs if best.distance < BEST_OF_TWO * second_best.distance]
    if len(good) < LEAST_MATCHES:
        return None
    source = np.array([points[match.queryIdx].pt for match in good], np.float32)
    target = np.array([other_points[match.trainIdx].pt for match in good], np.float32)
    return source, target


def _likeness(first: Grey, second: Grey, where: npt.NDArray[np.bool_]) -> float:
    """Return correlation of the grey levels where both pictures are, slightly blurred."""
    one, other = (cv2.GaussianBlur(grey, (0, 0), 3).astype(np.float32)[where] for grey in (first, second))
    return _correlation(one, other)


def _looks_same(first: Grey, second: Grey) -> bool:
    """Return whether the grey levels are nearly equal, area by area; for pictures without corners."""
    one, other = (cv2.resize(grey, (32, 18), interpolation=cv2.INTER_AREA).astype(np.float32) for grey in (first, second))
    both_flat = one.std() < FLAT and other.std() < FLAT
    return bool(np.abs(one - other).mean() < SAME_LEVELS and (both_flat or _correlation(one, other) > STILL_LIKENESS))


def _correlation(one: npt.NDArray[np.float32], other: npt.NDArray[np.float32]) -> float:
    """Return the correlation in [-1, 1]; 0 where one of the two is flat."""
    if one.std() < FLAT or other.std() < FLAT:
        return 0.0
    return float(np.mean((one - one.mean()) * (other - other.mean())) / (one.std() * other.std()))
