"""Two RNNs, one above the other, whose outputs are both kept: the video encoders of STVQA, CoMem and HME in the authors' code."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vip.baselines.nextqa.layers import Cell, recurrent


@dataclass(frozen=True, slots=True)
class StackedOutputs:
    """What both layers gave out for B videos of N clips."""

    first: Tensor
    """(B, N, H)."""
    second: Tensor
    """(B, N, H)."""
    states: tuple[Tensor, Tensor] | None
    """(2, B, H) twice: last hidden states and last cells of LSTMs; None for GRUs."""

    @property
    def both(self) -> Tensor:
        """(B, N, 2H)."""
        return torch.cat((self.first, self.second), dim=-1)


class StackedEncoder(nn.Module):
    """Two RNNs of one direction without dropout (`EncoderVidSTVQA`, `EncoderVidCoMem`: a dropout is set there and never used)."""

    def __init__(self, size: int, hidden: int, *, cell: Cell) -> None:
        """Args: size: of the vector of a clip; hidden: H."""
        super().__init__()
        self.first = recurrent(cell, size, hidden)
        self.second = recurrent(cell, hidden, hidden)

    def forward(self, clips: Tensor) -> StackedOutputs:
        """Return the outputs of both layers over the clips (B, N, size)."""
        first, first_last = self.first(clips)
        second, second_last = self.second(first)
        if isinstance(first_last, tuple):
            return StackedOutputs(first, second, (torch.cat((first_last[0], second_last[0])), torch.cat((first_last[1], second_last[1]))))
        return StackedOutputs(first, second, None)


def layers_side_by_side(states: Tensor) -> Tensor:
    """Return the states (L, B, H) of all layers as one vector a text: (B, L × H)."""
    return states.transpose(0, 1).flatten(1)
