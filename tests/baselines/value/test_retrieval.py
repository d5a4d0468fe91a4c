"""vip.baselines.value.retrieval: losses against sums by hand"""

from __future__ import annotations

from math import log

import pytest
import torch

from tests.baselines.value.tiny_hero import LONG, QUERIES, SHORT, tiny
from vip.baselines.value.batches import collate_retrieval
from vip.baselines.value.hero import Hero
from vip.baselines.value.interface import CollateOptions, LossOptions, RetrievalItem
from vip.baselines.value.retrieval import rank_losses, span_loss, video_scores

SCORES = torch.tensor([[0.9, 0.85, 0.3], [0.5, 0.1, 0.55], [0.2, 0.6, 0.0], [0.7, 0.4, 0.8]])
OWN = torch.tensor([0, 0, 1, 2])
PLAIN = LossOptions(margin=0.1)


def test_the_hinge_losses_are_those_of_the_table() -> None:
    by_video, by_query = rank_losses(SCORES, OWN, PLAIN)
    # against other videos: 0.1 + other - right, from 0 on
    rows = [(0.05 + 0.0) / 2, (0.0 + 0.15) / 2, (0.0 + 0.0) / 2, (0.0 + 0.0) / 2]
    assert by_video.item() == pytest.approx(sum(rows) / 4)
    # against queries of other videos: column 0 without its own two queries, column 1 and 2 without one
    rows = [(0.0 + 0.0) / 2, (0.0 + 0.3) / 2, (0.35 + 0.0 + 0.0) / 3, (0.0 + 0.0 + 0.0) / 3]
    assert by_query.item() == pytest.approx(sum(rows) / 4)


def test_the_hardest_negatives_weigh_ten_times_and_the_others_a_tenth() -> None:
    hard = LossOptions(margin=1.0, hard_negatives=True, hard_pool=1, hard_weight=10.0, easy_weight=0.1)
    by_video, _ = rank_losses(SCORES[:1], OWN[:1], hard)
    assert by_video.item() == pytest.approx((10 * 0.95 + 0.1 * 0.4) / 2)


def test_queries_of_the_same_video_are_no_negatives() -> None:
    _, by_query = rank_losses(torch.tensor([[0.1, 0.0], [0.9, 0.0]]), torch.tensor([0, 0]), PLAIN)
    assert by_query.item() == 0.0


def test_a_video_alone_has_no_rank() -> None:
    assert [one.item() for one in rank_losses(torch.tensor([[0.3]]), torch.tensor([0]), PLAIN)] == [0.0, 0.0]


def test_a_video_scores_as_its_best_frame_and_padding_is_none() -> None:
    frames = torch.tensor([[[3.0, 4.0], [1.0, 0.0], [0.0, 5.0]], [[0.0, 1.0], [9.0, 0.0], [9.0, 0.0]]])
    mask = torch.tensor([[True, True, True], [True, False, False]])
    scores = video_scores(torch.tensor([[2.0, 0.0]]), frames, mask)
    torch.testing.assert_close(scores, torch.tensor([[1.0, 0.0]]))
    torch.testing.assert_close(video_scores(torch.tensor([[3.0, 4.0]]), frames, mask), torch.tensor([[1.0, 0.8]]))


def test_the_loss_of_spans_is_that_of_start_and_end() -> None:
    starts, ends = torch.tensor([[0.0, 0.0], [0.0, log(3.0)]]), torch.tensor([[0.0, 0.0], [log(4.0), 0.0]])
    spans = torch.tensor([[-1, -1], [1, 0]])
    assert span_loss((starts, ends), spans).item() == pytest.approx(-log(3 / 4) - log(4 / 5))
    assert span_loss((starts, ends), torch.full((2, 2), -1)).item() == 0.0


def test_the_loss_is_the_weighted_sum_of_its_parts() -> None:
    model = tiny(spread=0.3)
    assert isinstance(model, Hero)
    batch = collate_retrieval(QUERIES, CollateOptions())

    def loss(**changed: float) -> float:
        with torch.no_grad():
            return model.loss(batch, LossOptions(skip_spans=0.0, **changed)).item()

    ranks, spans = loss(rank_weight=1.0, span_weight=0.0), loss(rank_weight=0.0, span_weight=1.0)
    assert ranks > 0.0
    assert spans > 0.0
    assert loss(rank_weight=8.0, span_weight=0.01) == pytest.approx(8 * ranks + 0.01 * spans)


def test_steps_leave_out_the_loss_of_spans_as_often_as_they_are_told() -> None:
    model = tiny(dropout=0.0, spread=0.3).train()
    batch = collate_retrieval([RetrievalItem(SHORT, (20,), (0, 1))], CollateOptions())
    options = LossOptions(rank_weight=0.0, span_weight=1.0, skip_spans=0.8)
    with torch.no_grad():
        torch.manual_seed(0)
        kept = sum(model.loss(batch, options).item() > 0 for _ in range(200))
        assert 20 <= kept <= 60
        assert model.eval().loss(batch, options).item() > 0


def test_a_convolution_at_the_end_of_a_video_sees_no_padding() -> None:
    model = tiny(spread=0.3)
    assert isinstance(model, Hero)
    queries, frames = torch.randn(1, 16), torch.randn(1, 7, 16)
    mask = torch.arange(7)[None] < 4
    with torch.no_grad():
        padded = model.retrieval_head.span_logits(queries, frames, mask)
        cut = model.retrieval_head.span_logits(queries, frames[:, :4], mask[:, :4])
        crossed = model.retrieval_head.cross_span_logits(queries, frames, mask)
    torch.testing.assert_close(padded[0][:, :4], cut[0])
    torch.testing.assert_close(crossed[1][:, 0], padded[1])
    assert (padded[0][:, 4:] == -1e4).all()


def test_all_videos_of_a_batch_are_scored() -> None:
    model = tiny()
    with torch.no_grad():
        scores = model.predict(collate_retrieval([RetrievalItem(LONG, (20,)), RetrievalItem(SHORT, (21,))], CollateOptions()))
    assert scores.videos.shape == (2, 2)
    torch.testing.assert_close(scores.starts.sum(-1), torch.ones(2, 2))
    assert (scores.ends[:, 1, 4:] == 0).all()
