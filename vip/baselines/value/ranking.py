"""From scores of videos and frames to ranked moments (`validate_full_vcmr` of eval_vcmr.py in the starter code).

    score of a moment = exp(20 · cosine of the video) · p(start) · p(end)

over the 100 best videos, for spans whose last frame is 2 to 15 frames behind the first (TVR); the best 100 are kept. NMS is off in the
published settings. A moment ends with its last frame: frames 2 to 5 are 3.0 s to 9.0 s.

≠ The code lists spans of a forbidden length with score 0 where too few are allowed, and reads places of moments with the wrong width where
no video of the corpus has 100 frames. Here neither happens.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vip.baselines.value.batches import FRAME_S
from vip.baselines.value.interface import RankingOptions, RetrievalScores


@dataclass(frozen=True, slots=True)
class RankedMoments:
    """Moments of a query, best first, as columns."""

    videos: tuple[int, ...]
    """Rows of the index."""
    starts_s: tuple[float, ...]
    ends_s: tuple[float, ...]
    scores: tuple[float, ...]


def rank_videos(scores: RetrievalScores, *, kept: int = 100) -> list[RankedMoments]:
    """Return of each query the best videos as a whole; a moment of 0 s to 0 s stands for that."""
    values, videos = scores.videos.topk(min(kept, scores.videos.shape[1]), dim=1)
    rows = zip(videos.tolist(), values.tolist(), strict=True)
    return [RankedMoments(tuple(best), (0.0,) * len(best), (0.0,) * len(best), tuple(points)) for best, points in rows]


def rank_moments(scores: RetrievalScores, options: RankingOptions) -> list[RankedMoments]:
    """Return of each query the best moments of the corpus."""
    weights, videos = scores.videos.topk(min(options.videos, scores.videos.shape[1]), dim=1)
    rows = torch.arange(len(videos), device=videos.device)[:, None]
    return _rank(weights, videos, scores.starts[rows, videos], scores.ends[rows, videos], options)


def rank_moments_of_one(scores: RetrievalScores, own: Tensor, options: RankingOptions) -> list[RankedMoments]:
    """Return of each query the best moments of its own video, whose score is p(start) · p(end) (SVMR).

    Args: own: (Q,) rows of the index.
    """
    rows = torch.arange(len(own), device=own.device)
    starts, ends = scores.starts[rows, own], scores.ends[rows, own]
    return _rank(torch.ones_like(starts[:, :1]), own[:, None], starts[:, None], ends[:, None], options)


def _rank(weights: Tensor, videos: Tensor, starts: Tensor, ends: Tensor, options: RankingOptions) -> list[RankedMoments]:
    """Return the moments of Q queries. Args: weights, videos: (Q, K); starts, ends: (Q, K, V)."""
    frames = starts.shape[2]
    least = min(options.least_frames, frames - 1)
    columns, first, last = [], [], []
    places = torch.arange(frames, device=starts.device)
    for length in range(least, max(least + 1, min(options.most_frames, frames))):  # far fewer products than of all pairs
        columns.append(weights[..., None] * starts[..., : frames - length] * ends[..., length:])
        first.append(places[: frames - length])
        last.append(places[length:])
    flat = torch.cat(columns, dim=2)
    spans = flat.shape[2]
    values, chosen = flat.flatten(1).topk(min(options.kept, flat[0].numel()), dim=1)
    firsts, lasts = torch.cat(first)[chosen % spans], torch.cat(last)[chosen % spans]
    found = videos.gather(1, chosen // spans)
    frames_of_best = (starts[:, 0] > 0).sum(1)  # padding has probability 0
    columns_of = zip(found.tolist(), firsts.tolist(), lasts.tolist(), values.tolist(), strict=True)
    return [
        _columns(*row, whole=(best, count))
        for row, best, count in zip(columns_of, videos[:, 0].tolist(), frames_of_best.tolist(), strict=True)
    ]


def _columns(videos: list[int], firsts: list[int], lasts: list[int], scores: list[float], *, whole: tuple[int, int]) -> RankedMoments:
    """Return the moments with a score; where no video is long enough for one, the best video as a whole, its row and its frames."""
    rows = [row for row in zip(videos, firsts, lasts, scores, strict=True) if row[3] > 0.0] or [(whole[0], 0, whole[1] - 1, 0.0)]
    kept, starts, ends, points = zip(*rows, strict=True)
    return RankedMoments(kept, tuple(one * FRAME_S for one in starts), tuple((one + 1) * FRAME_S for one in ends), points)
