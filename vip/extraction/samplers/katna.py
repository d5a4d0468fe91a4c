"""The candidate extractor of the paper (section 3.1: "we use Katna … to extract candidate keyframes"), without Katna's bugs.

    every frame ▸ sum of absolute differences in LUV to the one before ▸ smoothed over a Hanning window of 20
    ▸ local maxima ▸ the frame before each (the last of what was there before the change)
    ▸ brightness 10 to 90 and entropy 1 to 10, loosened until enough remain
    ▸ k-means on grey histograms of 256 bins ▸ of each cluster the frame with the highest variance of the Laplacian

Written from that description. Katna scores the wrong images in its last step, starts its differences anew every 500 frames,
gives pictures by cluster and without times, and holds decoded frames; here the images of the cluster are scored, the
differences run through, PTS come back in time order, and of a frame only its numbers stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from vip.errors import BackendError
from vip.extraction.samplers.uniform import enough_for
from vip.protocols import SamplerCapabilities, VideoSource
from vip.records import Frame, Image
from vip.wording import option

SIDE_PX = 640  # Katna works at full size; the numbers of a picture this large choose the same frames
WINDOW = 20
SETTLED = 2 * WINDOW  # frames from the end from which on later frames change a smoothed difference no more
FORGET_EVERY = 512  # frames after which those that are no maxima are forgotten: a bound on memory, not on differences
BRIGHTNESS, BRIGHTNESS_STEP, BRIGHTNESS_END = (10.0, 90.0), 2.0, (0.0, 100.0)
ENTROPY, ENTROPY_STEP, ENTROPY_END = (1.0, 10.0), 0.5, (0.0, 10.0)
SEED, ATTEMPTS = 0, 3

Differences = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers kept of a frame."""

    pts: int
    brightness: float
    """Mean of the largest colour channel (the V of HSV), 0 to 100."""
    entropy: float
    """Of the grey levels, in bits."""
    sharpness: float
    """Variance of the Laplacian."""
    histogram: npt.NDArray[np.float32]
    """float32 (256,): pixels of each grey level."""


class KatnaSampler:
    """A sampler of as many candidates as `sync` would fill up to, where the video changes as often. Decodes every frame."""

    name = "katna"
    capabilities = SamplerCapabilities()

    def __init__(self, detail: str | None) -> None:
        if detail is not None:
            raise BackendError(f'The sampler "katna" takes no detail, but got "{detail}". Write {option("sampler", "katna")}.')

    def sample(self, video: VideoSource, *, keyframes: int, candidates: int | None = None) -> list[int]:
        """Return PTS of the candidates; of a video that never changes its middle frame alone."""
        shown = video.index.shown_pts
        changes = before_changes(video.frames(shown.tolist(), longest_side_px=SIDE_PX))
        wanted = candidates or enough_for(keyframes)
        fit = within_bounds(changes, wanted)
        chosen = sharpest_of_clusters(fit, wanted) if len(fit) > wanted else fit
        return sorted(row.pts for row in chosen) or [int(shown[len(shown) // 2])]


def before_changes(frames: Iterator[Frame]) -> list[Numbers]:
    """Return the frame before each local maximum of the smoothed differences, in time order."""
    recent: dict[int, Numbers] = {}  # by number of the frame
    chosen: dict[int, Numbers] = {}
    differences: list[float] = []
    last: Image | None = None

    def choose(end: int) -> None:
        for place in local_maxima(smooth(np.array(differences))):
            if place < end and place in recent:  # difference i lies between the frames i and i + 1: the frame before it is i
                chosen[place] = recent[place]

    for number, frame in enumerate(frames):
        luv = np.asarray(cv2.cvtColor(frame.image, cv2.COLOR_RGB2Luv), np.uint8)
        if last is not None:
            differences.append(float(cv2.norm(luv, last, cv2.NORM_L1)))
        last = luv
        recent[number] = numbers_of(frame)
        if number % FORGET_EVERY == FORGET_EVERY - 1:
            choose(len(differences) - SETTLED)
            recent = {place: row for place, row in recent.items() if place >= len(differences) - SETTLED}
    choose(len(differences))
    return [chosen[place] for place in sorted(chosen)]


def numbers_of(frame: Frame) -> Numbers:
    """Return brightness, entropy, sharpness and histogram of a picture."""
    grey, (red, green, blue) = cv2.cvtColor(frame.image, cv2.COLOR_RGB2GRAY), cv2.split(frame.image)
    histogram = np.asarray(cv2.calcHist([grey], [0], None, [256], [0, 256]), np.float32).ravel()
    shares = histogram[histogram > 0].astype(np.float64) / grey.size
    _, spread = cv2.meanStdDev(cv2.Laplacian(grey, cv2.CV_16S))
    return Numbers(
        pts=frame.pts,
        brightness=float(cv2.mean(cv2.max(cv2.max(red, green), blue))[0]) * 100 / 255,
        entropy=float(-(shares * np.log2(shares)).sum()),
        sharpness=float(spread[0, 0]) ** 2,
        histogram=histogram,
    )


def smooth(differences: Differences) -> Differences:
    """Return the mean over a Hanning window, the ends continued by their reflection; too few values for a window stay as they are."""
    if len(differences) < WINDOW:
        return differences
    head = 2 * differences[0] - differences[WINDOW:0:-1] if len(differences) > WINDOW else np.full(WINDOW, differences[0])
    tail = 2 * differences[-1] - differences[-2 : -WINDOW - 2 : -1] if len(differences) > WINDOW else np.full(WINDOW, differences[-1])
    window = np.hanning(WINDOW)
    smoothed = np.convolve(np.concatenate([head, differences, tail]), window / window.sum(), mode="same")
    return smoothed[WINDOW:-WINDOW]


def local_maxima(values: Differences) -> list[int]:
    """Return places of the values that are higher than both neighbours."""
    middle = values[1:-1]
    places: list[int] = (np.flatnonzero((middle > values[:-2]) & (middle > values[2:])) + 1).tolist()
    return places


def within_bounds(rows: Sequence[Numbers], wanted: int) -> list[Numbers]:
    """Return those neither dark, bright, plain nor chaotic; the bounds widen step by step until `wanted` fit or nothing bounds."""
    step = 0
    while True:
        low, high = _widened(BRIGHTNESS, step * BRIGHTNESS_STEP, BRIGHTNESS_END)
        plain, chaotic = _widened(ENTROPY, step * ENTROPY_STEP, ENTROPY_END)
        fit = [row for row in rows if low <= row.brightness <= high and plain <= row.entropy <= chaotic]
        if len(fit) >= wanted or len(fit) == len(rows):
            return fit
        step += 1


def _widened(bounds: tuple[float, float], by: float, end: tuple[float, float]) -> tuple[float, float]:
    return max(end[0], bounds[0] - by), min(end[1], bounds[1] + by)


def sharpest_of_clusters(rows: Sequence[Numbers], clusters: int) -> list[Numbers]:
    """Return one row for each cluster of like histograms. The same for the same rows: the seed is fixed."""
    cv2.setRNGSeed(SEED)
    criteria = (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_MAX_ITER, 300, 1e-4)
    histograms = np.stack([row.histogram for row in rows])
    _, labels, _ = cv2.kmeans(histograms, clusters, np.empty(0, np.int32), criteria, ATTEMPTS, cv2.KMEANS_PP_CENTERS)
    best: dict[int, Numbers] = {}
    for row, label in zip(rows, labels.astype(int).ravel().tolist(), strict=True):
        if label not in best or row.sharpness > best[label].sharpness:
            best[label] = row
    return list(best.values())
