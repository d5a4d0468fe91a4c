"""Layers that the parts of HERO share: transformer layers of BERT's kind, from torch's own, and small blocks around them.

A layer of BERT is torch's `TransformerEncoderLayer` with norms behind the sums, GELU, and no dropout between the two linear maps.
"""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from vip.baselines.value.interface import HeroSettings

NORM_EPS = 1e-5
"""Of all norms but those within a transformer layer: model/embed.py and model/layers.py of the starter code."""
LAYER_EPS = 1e-12
"""Of those: `layer_norm_eps` of model/encoder.py."""
INITIAL_DEVIATION = 0.02
"""`initializer_range` of config/model_config/hero_finetune.json."""
HIDDEN_SCORE = -1e4
"""The score of a place that is padding: `mask_logits` of model/modeling_utils.py."""


class Transformer(nn.Module):
    """Layers of BERT in a row."""

    def __init__(self, settings: HeroSettings, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(make_encoder_layer(settings) for _ in range(layers))

    def forward(self, places: Tensor, mask: Tensor) -> Tensor:
        """Return (B, L, H). Args: places: (B, L, H); mask: (B, L) bool, at least one True in a row."""
        for layer in self.layers:
            places = layer(places, src_key_padding_mask=~mask)
        return places


def make_encoder_layer(settings: HeroSettings) -> nn.TransformerEncoderLayer:
    """Return a layer of BERT."""
    return _make_layer(nn.TransformerEncoderLayer, settings)


def make_decoder_layer(settings: HeroSettings) -> nn.TransformerDecoderLayer:
    """Return a layer of the caption decoder: attention to the words before, then to frames (`BertDecoderLayer` of model/videoCap.py)."""
    return _make_layer(nn.TransformerDecoderLayer, settings)


LayerT = TypeVar("LayerT", nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)


def _make_layer(kind: type[LayerT], settings: HeroSettings) -> LayerT:
    """Return a layer with BERT's activation and norm, and no dropout inside the feed-forward part."""
    sizes = (settings.hidden, settings.heads, settings.intermediate, settings.dropout)
    layer = kind(*sizes, functional.gelu, layer_norm_eps=LAYER_EPS, batch_first=True)
    layer.dropout.p = 0.0
    return layer


class Projection(nn.Module):
    """Norm, dropout, a linear map and ReLU: `LinearLayer` of model/layers.py."""

    def __init__(self, inputs: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(inputs, eps=NORM_EPS)
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, values: Tensor) -> Tensor:
        return functional.relu(self.linear(self.dropout(self.norm(values))))


class MLP(nn.Module):
    """A linear map, GELU, a norm, and another: `MLPLayer` of model/layers.py; hidden is twice the input there."""

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.norm = nn.LayerNorm(hidden, eps=NORM_EPS)
        self.second = nn.Linear(hidden, outputs)

    def forward(self, values: Tensor) -> Tensor:
        result: Tensor = self.second(self.norm(functional.gelu(self.first(values))))
        return result


class AttentionPool(nn.Module):
    """The mean of places, weighted by a learned score: a linear map without bias, and softmax."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.score = nn.Linear(hidden, 1, bias=False)

    def forward(self, places: Tensor, mask: Tensor, dim: int) -> Tensor:
        """Return `places` without `dim`. Args: places: (…, H); mask: (…) bool."""
        scores = self.score(places).masked_fill(~mask[..., None], HIDDEN_SCORE)
        pooled: Tensor = (scores.softmax(dim) * places).sum(dim)
        return pooled


def initialize(module: nn.Module) -> None:
    """Draw the weights as the starter code does: linear maps and tables normal, biases 0."""
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=INITIAL_DEVIATION)
        if isinstance(part, nn.MultiheadAttention):
            nn.init.normal_(part.in_proj_weight, std=INITIAL_DEVIATION)
            nn.init.zeros_(part.in_proj_bias)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)


def mean_of(values: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of the last dimension where the mask is True; 0 where it is nowhere."""
    return torch.where(mask, values, 0.0).sum(-1) / mask.sum(-1).clamp(min=1)
