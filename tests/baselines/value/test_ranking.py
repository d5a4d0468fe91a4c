"""vip.baselines.value.ranking: the formula on toy numbers"""

from __future__ import annotations

from math import exp

import pytest
import torch

from vip.baselines.value.interface import RankingOptions, RetrievalScores
from vip.baselines.value.ranking import rank_moments, rank_moments_of_one, rank_videos

COSINES = (0.5, 0.6)
STARTS = [[0.7, 0.12, 0.11, 0.07], [0.2, 0.47, 0.33, 0.0]]
ENDS = [[0.09, 0.13, 0.19, 0.59], [0.1, 0.31, 0.59, 0.0]]
TOY = RetrievalScores(torch.tensor([[exp(20 * one) for one in COSINES]]), torch.tensor([STARTS]), torch.tensor([ENDS]))
"""One query, two videos of four and of three frames."""


def by_hand(least: int, most: int) -> list[tuple[float, int, int, int]]:
    """Return all moments, best first: score, video, first frame, last frame."""
    found = [
        (exp(20 * COSINES[v]) * STARTS[v][s] * ENDS[v][e], v, s, e)
        for v in (0, 1)
        for s in range(4)
        for e in range(4)
        if least <= e - s < most and STARTS[v][s] * ENDS[v][e] > 0
    ]
    return sorted(found, reverse=True)


@pytest.mark.parametrize(("least", "most"), [(2, 16), (1, 3), (0, 2), (3, 4)])
def test_moments_rank_by_video_start_and_end(least: int, most: int) -> None:
    ranked = rank_moments(TOY, RankingOptions(least_frames=least, most_frames=most))[0]
    expected = by_hand(least, most)
    assert ranked.videos == tuple(video for _, video, _, _ in expected)
    assert ranked.starts_s == tuple(first * 1.5 for _, _, first, _ in expected)
    assert ranked.ends_s == tuple(last * 1.5 + 1.5 for _, _, _, last in expected)
    assert ranked.scores == pytest.approx([score for score, *_ in expected], rel=1e-5)


def test_only_the_best_videos_give_moments_and_only_the_best_moments_are_kept() -> None:
    ranked = rank_moments(TOY, RankingOptions(videos=1, least_frames=0, kept=3))[0]
    assert set(ranked.videos) == {1}
    assert len(ranked.scores) == 3


def test_moments_of_the_own_video_rank_by_start_and_end_alone() -> None:
    ranked = rank_moments_of_one(TOY, torch.tensor([0]), RankingOptions(least_frames=2))[0]
    assert ranked.videos == (0, 0, 0)
    assert ranked.scores == pytest.approx((0.7 * 0.59, 0.7 * 0.19, 0.12 * 0.59))
    assert (ranked.starts_s[0], ranked.ends_s[0]) == (0.0, 6.0)


def test_videos_rank_by_their_score() -> None:
    ranked = rank_videos(TOY)[0]
    assert ranked.videos == (1, 0)
    assert ranked.scores == pytest.approx((exp(12.0), exp(10.0)))
    assert rank_videos(TOY, kept=1)[0].videos == (1,)


def test_a_video_too_short_for_a_moment_is_found_as_a_whole() -> None:
    short = RetrievalScores(torch.ones(1, 1), torch.tensor([[[0.4, 0.6, 0.0]]]), torch.tensor([[[0.4, 0.6, 0.0]]]))
    ranked = rank_moments(short, RankingOptions(least_frames=2))[0]
    assert (ranked.videos, ranked.starts_s, ranked.ends_s, ranked.scores) == ((0,), (0.0,), (3.0,), (0.0,))


@pytest.mark.parametrize("frames", [1, 2])
def test_where_no_video_is_long_enough_the_longest_stretch_of_each_is_ranked(frames: int) -> None:
    starts, ends = torch.tensor([[0.3, 0.7], [0.6, 0.4]])[:, :frames], torch.tensor([[0.5, 0.5], [0.2, 0.8]])[:, -frames:]
    ranked = rank_moments(RetrievalScores(torch.ones(1, 2), starts[None], ends[None]), RankingOptions(least_frames=2))[0]
    assert ranked.videos == (1, 0)
    assert (ranked.starts_s, ranked.ends_s) == ((0.0, 0.0), (1.5 * frames, 1.5 * frames))
    assert ranked.scores == pytest.approx((0.6 * 0.8, 0.3 * 0.5))
