"""Candidates at even distances: `uniform`, so many over the whole video, and `every:2s`, one for each span of time.

Nothing is decoded here.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from vip.errors import BackendError, UsageError
from vip.extraction.samplers.sync import FEWEST_AT_LEAST
from vip.protocols import SamplerCapabilities, VideoSource
from vip.timecode import seconds_of
from vip.wording import option

PER_KEYFRAME = 3
DEFAULT_STEP_S = Fraction(2)  # of ShareGPT4Video


class UniformSampler:
    """Evenly spaced frames, three for each keyframe, at least 24."""

    name = "uniform"
    capabilities = SamplerCapabilities()

    def __init__(self, detail: str | None) -> None:
        if detail is not None:
            raise BackendError(
                f'The sampler "uniform" takes no detail, but got "{detail}". Write {option("sampler", "uniform")}, or every:2s.'
            )

    def sample(self, video: VideoSource, *, keyframes: int, candidates: int | None = None) -> list[int]:
        """Return PTS of the frames in the middle of equal parts."""
        shown = video.index.shown_pts
        count = min(len(shown), candidates or enough_for(keyframes))
        places = (np.arange(count) + 0.5) * (len(shown) / count)
        return [int(pts) for pts in shown[places.astype(np.int64)]]


class EverySampler:
    """The frame that is on screen every so often: `every:2s`, `every:0.5s`, `every:1m`."""

    capabilities = SamplerCapabilities()

    def __init__(self, detail: str | None) -> None:
        self.name = f"every:{detail}" if detail else "every"
        self.step_s = _step_s(detail) if detail else DEFAULT_STEP_S

    def sample(self, video: VideoSource, *, keyframes: int, candidates: int | None = None) -> list[int]:
        """Return PTS of the frames shown at the start and each step later. Their number depends on the step alone."""
        if candidates is not None:
            raise UsageError(
                f"{option('candidates', candidates)}: {self.name} takes as many as its step gives. Leave it out,"
                f" or write {option('sampler', 'uniform')}."
            )
        shown = video.index.shown_pts
        first, last, step = int(shown[0]), int(shown[-1]), max(Fraction(1), self.step_s / video.time_base)  # in ticks of the file's clock
        times = [first + int(number * step) for number in range(int((last - first) / step) + 1)]
        places = np.unique(np.searchsorted(shown, times, side="right") - 1)
        return [int(pts) for pts in shown[places]]


def enough_for(keyframes: int) -> int:
    """Return as many candidates as pruning needs to have a choice."""
    return max(FEWEST_AT_LEAST, PER_KEYFRAME * keyframes)


def _step_s(detail: str) -> Fraction:
    try:
        step_s = seconds_of(detail)
    except ValueError:
        step_s = Fraction(0)
    if step_s <= 0:
        raise BackendError(
            f'The sampler "every" needs a time such as 2s, 0.5s or 1m, but got "{detail}". Write {option("sampler", "every:2s")}.'
        )
    return step_s
