"""vip.baselines.nextqa.hga: against its equations, and against the authors' code where that differs"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from tests.baselines.nextqa.test_interface import SIZES, encoder, texts, video
from vip.baselines.nextqa.hga import (
    HGA,
    AdjacencyLearner,
    AttentionPool,
    GraphConvolutions,
    HGAEncoder,
    HGAOptions,
    SumPool,
    WordClipAttention,
)

MASK = torch.tensor([[True, True, True, False], [True, False, False, False]])
OPTIONS = HGAOptions(
    hidden=8, dropout=0.0, pooling="sum", co_attention_learns=False, reduce_motion=False, graph_layers=3, fusion=8, fusion_chunks=2
)


def model(**changed: Any) -> HGA:
    torch.manual_seed(0)
    return HGA(SIZES, OPTIONS.model_copy(update=changed)).eval()


@torch.no_grad()
def test_the_adjacency_is_symmetric_and_empty_where_a_place_is_padding() -> None:
    torch.manual_seed(0)
    adjacency = AdjacencyLearner(6)(torch.randn(2, 4, 6), MASK)
    torch.testing.assert_close(adjacency, adjacency.transpose(1, 2))
    assert (adjacency >= 0).all()
    assert (adjacency[0, :3, :3] > 0).any()
    assert not adjacency[0, 3].any()
    assert not adjacency[1, 1:].any()


def test_the_codes_pooling_is_a_plain_sum() -> None:
    """Its softmax runs over the last axis, which has size 1: each place weighs 1."""
    places = torch.randn(2, 4, 6) * MASK[:, :, None]
    weights = torch.nn.Sequential(torch.nn.Linear(6, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1), torch.nn.Softmax(dim=-1))(places)
    torch.testing.assert_close(SumPool()(places, MASK), (places * weights).sum(dim=1))


@torch.no_grad()
def test_attention_pooling_adds_up_to_one_over_the_places_that_are_there() -> None:
    pool = AttentionPool(6)
    weights = pool.weights(torch.randn(2, 4, 6), MASK)
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(2))
    assert (weights > 0).tolist() == MASK.tolist()


@torch.no_grad()
def test_the_graph_mixes_places_by_the_adjacency() -> None:
    torch.manual_seed(0)
    graph, places = GraphConvolutions(6, 2, dropout=0.0), torch.randn(2, 4, 6)
    adjacency = AdjacencyLearner(6)(places, MASK)
    expected = places
    for layer in graph.layers:
        mixed = torch.einsum("bij,bjh->bih", adjacency, layer(expected))
        expected = functional.relu(functional.layer_norm(mixed, (6,)))
    torch.testing.assert_close(graph(places, adjacency, MASK), expected * MASK[:, :, None])


@torch.no_grad()
def test_co_attention_gives_padding_no_part() -> None:
    torch.manual_seed(0)
    layer, clips = WordClipAttention(6, 0.0, learns=True), torch.randn(2, 5, 6)
    question = torch.randn(2, 4, 6)
    other = torch.where(MASK[:, :, None], question, torch.tensor(7.0))
    for one, two in zip(layer(question, MASK, clips), layer(other, MASK, clips), strict=True):
        torch.testing.assert_close(one, two)
    assert not layer(question, MASK, clips)[0][~MASK].any()


def test_the_co_attention_learns_in_the_paper_and_not_in_the_code() -> None:
    for learns in (False, True):
        maps = model(co_attention_learns=learns).encoder.co_attention.maps
        assert {weight.requires_grad for weight in maps.parameters()} == {learns}


@torch.no_grad()
def test_both_poolings_and_both_ways_to_map_clips_give_scores_of_their_own() -> None:
    seen, pairs = video(3), texts(3)
    scores = [model(**changed)(seen, pairs) for changed in ({}, {"pooling": "attention"}, {"reduce_motion": True})]
    assert all(one.shape == (3,) and one.isfinite().all() for one in scores)
    assert not torch.allclose(scores[0], scores[1])
    assert not torch.allclose(scores[0], scores[2])


def test_an_open_ended_encoder_ends_in_the_size_of_the_decoder() -> None:
    reader = encoder("hga")
    assert isinstance(reader, HGAEncoder)
    assert reader.fused_size == reader.hidden_size == 24
