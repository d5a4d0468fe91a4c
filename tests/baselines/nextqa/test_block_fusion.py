"""vip.baselines.nextqa.block_fusion"""

from __future__ import annotations

import pytest
import torch

from vip.baselines.nextqa.block_fusion import BlockFusion


@torch.no_grad()
def test_a_chunk_is_a_sum_of_products_its_signed_root_and_its_direction() -> None:
    torch.manual_seed(0)
    fusion = BlockFusion(3, 4, 2, size=6, chunks=2, rank=5)
    first, second = torch.randn(1, 3), torch.randn(1, 4)
    ones, twos, parts = fusion.first(first)[0], fusion.second(second)[0], []
    for chunk in range(2):
        one = fusion.first_parts[chunk](ones[3 * chunk : 3 * chunk + 3])
        two = fusion.second_parts[chunk](twos[3 * chunk : 3 * chunk + 3])
        added = torch.stack(
            [sum((one[3 * rank + place] * two[3 * rank + place] for rank in range(5)), torch.tensor(0.0)) for place in range(3)]
        )
        root = added.sign() * added.abs().sqrt()
        parts.append(root / root.norm())
    torch.testing.assert_close(fusion(first, second)[0], fusion.output(torch.cat(parts)))


def test_dropout_is_on_both_projected_inputs() -> None:
    torch.manual_seed(0)
    fusion = BlockFusion(3, 3, 1, size=40, chunks=2, rank=2, dropout=0.5).train()
    fusion(torch.randn(1, 3), torch.randn(1, 3)).sum().backward()
    for projection in (fusion.first, fusion.second):
        assert projection.bias.grad is not None
        assert 5 < (projection.bias.grad == 0).sum() < 35  # what is dropped has no gradient


def test_the_gradient_is_finite_where_a_product_is_zero() -> None:
    fusion = BlockFusion(3, 3, 1, size=4, chunks=2, rank=2)
    vectors = torch.zeros(2, 3, requires_grad=True)
    for layer in (fusion.first, fusion.second, *fusion.first_parts):
        torch.nn.init.zeros_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
    fusion(vectors, vectors).sum().backward()
    assert all(one.grad is None or one.grad.isfinite().all() for one in fusion.parameters())


def test_the_size_is_cut_into_whole_chunks() -> None:
    with pytest.raises(ValueError, match="10 in 3"):
        BlockFusion(2, 2, 2, size=10, chunks=3)
