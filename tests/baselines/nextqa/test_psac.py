"""PSAC: what it sees, and its positions."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from vip.baselines.nextqa.interface import InputSizes
from vip.baselines.nextqa.psac import PSAC, PSACOptions, SelfAttention, sinusoids

SIZES = InputSizes(appearance=6, motion=4, clips=5, words=7, length=6)
OPTIONS: dict[str, Any] = {"hidden": 8, "heads": 2, "video_layers": 1, "head_size": 3, "scale": "vector", "inner": 8, "positions": 4}
OPTIONS |= {"convolutions": 2, "kernel": 3, "dropout": 0.0, "score_dropout": 0.0}


@pytest.mark.parametrize(("scale", "width"), [("vector", 6), ("key", 3)])
def test_scores_over_the_video_are_divided_by_the_root_of_the_width_that_is_named(scale: str, width: int) -> None:
    model = PSAC(SIZES, PSACOptions(motion=False, **OPTIONS | {"scale": scale}))
    assert model.reader.video.layers[0].attention.scale == math.sqrt(width)


def test_positions_are_sines_and_cosines() -> None:
    table = sinusoids(3, 4)
    assert table[0].tolist() == [0.0, 1.0, 0.0, 1.0]
    torch.testing.assert_close(table[2], torch.tensor([math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)]))


@torch.no_grad()
def test_a_head_is_scaled_dot_product_attention() -> None:
    torch.manual_seed(1)
    attention, vectors = SelfAttention(4, heads=2, head_size=3, scale=math.sqrt(3), dropout=0.0), torch.randn(2, 5, 4)
    mask = torch.tensor([[True] * 5, [True, True, False, False, False]])
    queries, keys, values = attention.project(vectors).view(2, 5, 3, 2, 3).permute(2, 0, 3, 1, 4)
    expected = torch.nn.functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask[:, None, None])
    torch.testing.assert_close(attention(vectors, mask), attention.out(expected.transpose(1, 2).flatten(2)))


@pytest.mark.parametrize("changes", [{"heads": 3}, {"kernel": 4}])
def test_widths_that_do_not_fit_are_refused(changes: dict[str, int]) -> None:
    with pytest.raises(ValidationError, match="hidden is a multiple of heads, and kernel is odd"):
        PSACOptions(motion=False, **OPTIONS | changes)
