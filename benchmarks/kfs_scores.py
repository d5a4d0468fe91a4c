"""How well keyframes show the scenes that a question about a video needs: the measures of KFS-Bench.

Source: Li et al., "KFS-Bench: Comprehensive Evaluation of Key Frame Sampling in Long Video Understanding", WACV 2026
(arXiv:2512.14017), as the authors compute them in github.com/NEC-VID/KFS-Bench, eval.py.

A sample is a question. Its scenes i = 1 … m are disjoint, each of one or more stretches of the video. With n keyframes, of which
n+ lie in any scene and c_i in scene i, and with l_i seconds as the length of scene i:

key frame rate KFR                        n+ / n
scene hit rate SHR                        share of the scenes with c_i > 0
balanced scene recall BSR                 share of the scenes with c_i >= max(1, floor(n+ min(l_i / sum of l, 1 / m)))
balanced distribution similarity BDS      largest cosine of (c_1 … c_m) and (l_1^a … l_m^a) for a = 0, 0.1, … 1; 0 where n+ = 0
UKSS                                      cube root of KFR x BSR x BDS

Of many samples, KFR, SHR, BSR and BDS are means, UKSS is the geometric mean with 0.01 as the least a sample can have.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

EXPONENTS = 0.1 * np.arange(11)
LEAST_UKSS = 0.01

Span = tuple[float, float]
"""First and last second, both inside."""


@dataclass(frozen=True)
class KfsScore:
    """The measures of one sample."""

    frames: int
    kfr: float
    shr: float
    bsr: float
    bds: float

    @property
    def ukss(self) -> float:
        return math.cbrt(self.kfr * self.bsr * self.bds)


@dataclass(frozen=True)
class KfsSummary:
    """The measures of many samples."""

    frames: float
    kfr: float
    shr: float
    bsr: float
    bds: float
    ukss: float


def score(scenes: Sequence[Sequence[Span]], times_s: Sequence[float]) -> KfsScore:
    """Return the measures of one sample.

    Args:
        scenes: the stretches of each scene, at least one.
        times_s: of the keyframes, at least one; the same time twice counts twice.

    Raises:
        ValueError: no scene, or no keyframe.
    """
    if not scenes or not times_s:
        raise ValueError("There is nothing to score without a scene and a keyframe.")
    inside = np.array([[any(start <= time_s <= end for start, end in scene) for scene in scenes] for time_s in times_s])
    lengths_s = np.array([sum(end - start for start, end in scene) for scene in scenes], np.float64)
    useful, per_scene = int(inside.any(axis=1).sum()), inside.sum(axis=0)
    expected = np.floor(np.minimum(lengths_s / lengths_s.sum() * useful, np.ones(len(scenes)) / len(scenes) * useful)).clip(min=1)
    return KfsScore(
        frames=len(times_s),
        kfr=useful / len(times_s),
        shr=float((per_scene > 0).mean()),
        bsr=float((per_scene >= expected).mean()),
        bds=_similarity(per_scene.astype(np.float64), lengths_s) if useful else 0.0,
    )


def _similarity(per_scene: npt.NDArray[np.float64], lengths_s: npt.NDArray[np.float64]) -> float:
    wanted = lengths_s[:, None] ** EXPONENTS  # (scenes, 11)
    return float((per_scene @ wanted / (np.linalg.norm(per_scene) * np.linalg.norm(wanted, axis=0))).max())


def summary(scores: Sequence[KfsScore]) -> KfsSummary:
    """Return the measures of at least one sample together."""
    means = {name: statistics.fmean(getattr(one, name) for one in scores) for name in ("frames", "kfr", "shr", "bsr", "bds")}
    return KfsSummary(**means, ukss=math.exp(statistics.fmean(math.log(max(LEAST_UKSS, one.ukss)) for one in scores)))
