"""Block fusion: two vectors to one, a bilinear form whose tensor is of low rank in blocks (Ben-Younes et al. 2019, "BLOCK", section 3).

Both vectors are projected to `size` numbers and cut into `chunks`. Of each pair of chunks, `rank` elementwise products of linear maps are
added, and the signed square root of the sum is brought to length 1. All chunks together are projected to the output. Defaults are those of
the package `block.bootstrap`, which the authors of NExT-QA take.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class BlockFusion(nn.Module):
    """Args: first, second: sizes of the inputs; output: of the output; dropout: on both projected inputs."""

    def __init__(
        self, first: int, second: int, output: int, *, size: int = 1600, chunks: int = 20, rank: int = 15, dropout: float = 0.0
    ) -> None:
        super().__init__()
        if size % chunks:
            raise ValueError(f"expected a size of whole chunks, got {size} in {chunks}")
        self.chunks, self.rank = chunks, rank
        self.first, self.second = nn.Linear(first, size), nn.Linear(second, size)
        self.dropout = nn.Dropout(dropout)
        part = size // chunks
        self.first_parts = nn.ModuleList(nn.Linear(part, part * rank) for _ in range(chunks))
        self.second_parts = nn.ModuleList(nn.Linear(part, part * rank) for _ in range(chunks))
        self.output = nn.Linear(size, output)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Return (B, output) of (B, first) and (B, second)."""
        ones = self.dropout(self.first(first)).chunk(self.chunks, dim=-1)
        twos = self.dropout(self.second(second)).chunk(self.chunks, dim=-1)
        parts = []
        for one, two, first_part, second_part in zip(ones, twos, self.first_parts, self.second_parts, strict=True):
            product = (first_part(one) * second_part(two)).unflatten(-1, (self.rank, -1)).sum(dim=1)
            root = functional.relu(product).sqrt() - functional.relu(-product).sqrt()
            parts.append(functional.normalize(root, dim=-1))
        fused: Tensor = self.output(torch.cat(parts, dim=-1))
        return fused
