"""Layers that several models of NExT-QA share."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from vip.baselines.nextqa.interface import Words

Cell = Literal["lstm", "gru"]


class WordEncoder(nn.Module):
    """An RNN over the words of a text. What lies behind its end changes nothing."""

    def __init__(self, size: int, hidden: int, *, cell: Cell, layers: int = 1, input_dropout: float = 0.0, dropout: float = 0.0) -> None:
        """Args: size: E; hidden: H; input_dropout: on the word vectors; dropout: between layers."""
        super().__init__()
        self.input_dropout = nn.Dropout(input_dropout)
        self.rnn = recurrent(cell, size, hidden, layers=layers, dropout=dropout)

    def forward(self, words: Words, start: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return the outputs (B, T, H), 0 behind the end; the last hidden states (L, B, H); those of the cells, None for a GRU.

        Args: start: hidden states and cells (L, B, H) that an LSTM begins with; None: 0.
        """
        vectors = self.input_dropout(words.vectors)
        packed = pack_padded_sequence(vectors, words.lengths.cpu(), batch_first=True, enforce_sorted=False)
        outputs, last = self.rnn(packed, start)
        padded, _ = pad_packed_sequence(outputs, batch_first=True, total_length=vectors.shape[1])
        return (padded, last[0], last[1]) if isinstance(last, tuple) else (padded, last, None)


def recurrent(cell: Cell, size: int, hidden: int, *, layers: int = 1, dropout: float = 0.0, bidirectional: bool = False) -> nn.RNNBase:
    """Return an LSTM or a GRU over (B, T, size)."""
    kind = nn.LSTM if cell == "lstm" else nn.GRU
    return kind(size, hidden, layers, batch_first=True, dropout=dropout, bidirectional=bidirectional)
