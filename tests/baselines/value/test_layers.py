"""vip.baselines.value.layers: against their formulas"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.baselines.value.tiny_hero import TINY
from vip.baselines.value.layers import (
    LAYER_EPS,
    MLP,
    NORM_EPS,
    AttentionPool,
    Projection,
    Transformer,
    initialize,
    make_decoder_layer,
    mean_of,
)


def norm(values: Tensor, eps: float) -> Tensor:
    centred = values - values.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt()


def attend(attention: nn.MultiheadAttention, queries: Tensor, places: Tensor, mask: Tensor) -> Tensor:
    """Return BERT's attention, head by head. Args: mask: (T, L) bool, what is seen."""
    weights, biases = attention.in_proj_weight.chunk(3), attention.in_proj_bias.chunk(3)
    size, found = queries.shape[-1] // attention.num_heads, []
    for head in range(attention.num_heads):
        part = slice(head * size, (head + 1) * size)
        query, key, value = (
            source @ weight[part].T + bias[part] for source, weight, bias in zip((queries, places, places), weights, biases, strict=True)
        )
        scores = (query @ key.T / size**0.5).masked_fill(~mask, -1e4)
        found.append(scores.softmax(-1) @ value)
    return attention.out_proj(torch.cat(found, dim=-1))


@torch.no_grad()
def test_a_transformer_is_one_of_bert() -> None:
    torch.manual_seed(0)
    transformer = Transformer(TINY, 2).eval()
    initialize(transformer)
    places, mask = torch.randn(1, 5, 16), torch.tensor([[True, True, True, True, False]])
    expected = places[0]
    for layer in transformer.layers:
        expected = norm(expected + attend(layer.self_attn, expected, expected, mask), LAYER_EPS)
        expected = norm(expected + layer.linear2(functional.gelu(layer.linear1(expected))), LAYER_EPS)
    torch.testing.assert_close(transformer(places, mask)[0, :4], expected[:4], atol=1e-5, rtol=0)


@torch.no_grad()
def test_a_decoder_layer_reads_words_then_frames() -> None:
    torch.manual_seed(0)
    layer = make_decoder_layer(TINY).eval()
    words, frames, mask = torch.randn(3, 16), torch.randn(4, 16), torch.tensor([True, True, False, True])
    before = torch.ones(3, 3, dtype=torch.bool).tril()
    expected = norm(words + attend(layer.self_attn, words, words, before), LAYER_EPS)
    expected = norm(expected + attend(layer.multihead_attn, expected, frames, mask), LAYER_EPS)
    expected = norm(expected + layer.linear2(functional.gelu(layer.linear1(expected))), LAYER_EPS)
    found = layer(words[None], frames[None], tgt_mask=~before, memory_key_padding_mask=~mask[None])[0]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


@torch.no_grad()
def test_blocks_are_their_formulas() -> None:
    torch.manual_seed(0)
    values = torch.randn(3, 6)
    projection = Projection(6, 4, 0.5).eval()
    torch.testing.assert_close(projection(values), projection.linear(norm(values, NORM_EPS)).clamp(min=0))
    mlp = MLP(6, 12, 2)
    torch.testing.assert_close(mlp(values), mlp.second(norm(functional.gelu(mlp.first(values)), NORM_EPS)))


@torch.no_grad()
def test_padding_has_no_weight_in_a_pool() -> None:
    pool = AttentionPool(2)
    pool.score.weight.copy_(torch.tensor([[1.0, 0.0]]))
    places = torch.tensor([[[0.0, 1.0], [1.0, 2.0], [9.0, 9.0]]])
    weight = 1 / (1 + torch.e)
    found = pool(places, torch.tensor([[True, True, False]]), dim=1)
    torch.testing.assert_close(found, torch.tensor([[1 - weight, weight + 2 * (1 - weight)]]))


def test_means_leave_out_what_is_masked() -> None:
    values = torch.tensor([[1.0, 3.0, float("inf")], [5.0, 6.0, 7.0]])
    assert mean_of(values, torch.tensor([[True, True, False], [False, False, False]])).tolist() == [2.0, 0.0]


def test_weights_are_drawn_normal_and_biases_are_zero() -> None:
    torch.manual_seed(0)
    layer = make_decoder_layer(TINY.model_copy(update={"hidden": 64, "heads": 4}))
    initialize(layer)
    for weight in (layer.linear1.weight, layer.self_attn.in_proj_weight, layer.multihead_attn.out_proj.weight):
        assert weight.std().item() == pytest.approx(0.02, rel=0.1)
    assert not layer.linear2.bias.any()
    assert not layer.self_attn.in_proj_bias.any()
    assert (layer.norm1.weight == 1).all()
