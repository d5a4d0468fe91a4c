"""Decoders of open-ended answers (Xiao et al. 2021, appendix B.2, figure 11, table 8), and those that UATT and HME have of their own.

    name          the state begins with      each step's input
    naive         the encoder's output       the word before
    naive-trans   the encoder's output       a linear layer of the word before
    qns-ans       the question's last state  a linear layer of [the encoder's output; the word before]
    att-vid       the encoder's output       a linear layer of [the word before; attention over the clips]
    att-qns       the encoder's output       a linear layer of [the word before; attention over the question's words]
    uatt-lstm     two states of UATT         the word before                                                  two LSTM layers
    hme-lstm      two states of the question a linear layer of [the encoder's output; the word before]        two LSTM layers

The first five have one GRU layer. Each step's output goes through one linear layer to a logit a word of the vocabulary.

Where the code says more than the paper: attention is asked by the vector of the word before, not by the decoder's state. Words behind the
end of a question are attended to in the code; here they have weight 0. `naive` is not in the code; it is `uatt-lstm` with one GRU layer.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from vip.baselines.nextqa.attention import AdditiveAttention
from vip.baselines.nextqa.interface import Decoder, DecoderState, Encoded, Encoder, ModelOptions
from vip.baselines.nextqa.layers import Cell, recurrent


class DecoderOptions(ModelOptions):
    """Hyper-parameters of a decoder."""

    dropout: float = Field(ge=0, lt=1)
    """On each step's input."""


class TwoLayerOptions(DecoderOptions):
    """Hyper-parameters of a decoder of two layers."""

    layer_dropout: float = Field(ge=0, lt=1)
    """Between them."""


class _RecurrentDecoder(Decoder):
    """What all decoders share: an RNN of the encoder's size, and a logit a word of the vocabulary."""

    Options: ClassVar[type[ModelOptions]] = DecoderOptions
    cell: ClassVar[Cell] = "gru"
    layers: ClassVar[int] = 1

    def __init__(self, encoder: Encoder, *, vocabulary: int, inputs: int, options: DecoderOptions) -> None:
        """Args: vocabulary: V; inputs: size of each step's input."""
        super().__init__()
        between = options.layer_dropout if isinstance(options, TwoLayerOptions) else 0.0
        self.rnn = recurrent(self.cell, inputs, encoder.hidden_size, layers=self.layers, dropout=between)
        self.logits = nn.Linear(encoder.hidden_size, vocabulary)
        nn.init.xavier_normal_(self.logits.weight)

    @abstractmethod
    def _inputs(self, word: Tensor, encoded: Encoded) -> Tensor:
        """Return the input of a step, (B, inputs); `word` is (B, E)."""

    def step(self, word: Tensor, state: DecoderState, encoded: Encoded) -> tuple[Tensor, DecoderState]:
        """Return the logits (B, V) of the next word, and the state after it; `word` is (B, E), the vectors of the word before."""
        before = state.hidden if state.cell is None else (state.hidden, state.cell)
        outputs, after = self.rnn(self._inputs(word, encoded)[:, None], before)
        return self.logits(outputs[:, 0]), DecoderState(*after) if isinstance(after, tuple) else DecoderState(after)


class Transform(nn.Module):
    """The linear layer before an RNN, over one or more vectors side by side, with dropout."""

    def __init__(self, size: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.linear, self.dropout = nn.Linear(size, hidden), nn.Dropout(dropout)
        nn.init.xavier_normal_(self.linear.weight)

    def forward(self, *vectors: Tensor) -> Tensor:
        """Return (B, H)."""
        transformed: Tensor = self.dropout(self.linear(torch.cat(vectors, dim=-1)))
        return transformed


class _FromFused(_RecurrentDecoder):
    """A decoder whose state begins with the encoder's output, brought to H where it is longer."""

    def __init__(self, encoder: Encoder, *, vocabulary: int, inputs: int, options: DecoderOptions) -> None:
        super().__init__(encoder, vocabulary=vocabulary, inputs=inputs, options=options)
        fits = encoder.fused_size == encoder.hidden_size
        self.begin = nn.Identity() if fits else nn.Linear(encoder.fused_size, encoder.hidden_size)

    def start(self, encoded: Encoded) -> DecoderState:
        """Return the encoder's output as hidden state (1, B, H)."""
        return DecoderState(self.begin(encoded.fused)[None])


class _FromStates(_RecurrentDecoder):
    """Two LSTM layers that begin with states the encoder gives."""

    Options = TwoLayerOptions
    needs_states = True
    cell = "lstm"
    layers = 2

    def start(self, encoded: Encoded) -> DecoderState:
        """Return the encoder's states (2, B, H)."""
        if encoded.hidden is None or encoded.cell is None:
            raise ValueError("expected hidden states and cells (2, B, H) from the encoder, got none. Choose another decoder.")
        return DecoderState(encoded.hidden, encoded.cell)


class Naive(_FromFused):
    """`naive`: figure 11 (a)."""

    def __init__(self, encoder: Encoder, *, words: int, vocabulary: int, options: DecoderOptions) -> None:
        super().__init__(encoder, vocabulary=vocabulary, inputs=words, options=options)
        self.dropout = nn.Dropout(options.dropout)

    def _inputs(self, word: Tensor, encoded: Encoded) -> Tensor:
        dropped: Tensor = self.dropout(word)
        return dropped


class NaiveTrans(_FromFused):
    """`naive-trans`: as `naive`, "by using transformation operation before RNNs"."""

    def __init__(self, encoder: Encoder, *, words: int, vocabulary: int, options: DecoderOptions) -> None:
        super().__init__(encoder, vocabulary=vocabulary, inputs=encoder.hidden_size, options=options)
        self.transform = Transform(words, encoder.hidden_size, options.dropout)

    def _inputs(self, word: Tensor, encoded: Encoded) -> Tensor:
        transformed: Tensor = self.transform(word)
        return transformed


class QnsAns(_RecurrentDecoder):
    """`qns-ans`: figure 11 (b)."""

    def __init__(self, encoder: Encoder, *, words: int, vocabulary: int, options: DecoderOptions) -> None:
        super().__init__(encoder, vocabulary=vocabulary, inputs=encoder.hidden_size, options=options)
        self.transform = Transform(encoder.fused_size + words, encoder.hidden_size, options.dropout)

    def start(self, encoded: Encoded) -> DecoderState:
        """Return the question's last state (1, B, H)."""
        return DecoderState(encoded.question_state[None])

    def _inputs(self, word: Tensor, encoded: Encoded) -> Tensor:
        transformed: Tensor = self.transform(encoded.fused, word)
        return transformed


class _Attentive(_FromFused):
    """A decoder that attends to places of the question or of the video: figure 11 (c)."""

    def __init__(self, encoder: Encoder, *, words: int, vocabulary: int, options: DecoderOptions) -> None:
        super().__init__(encoder, vocabulary=vocabulary, inputs=encoder.hidden_size, options=options)
        self.attention = AdditiveAttention(words, encoder.hidden_size, encoder.hidden_size // 2)
        self.transform = Transform(words + encoder.hidden_size, encoder.hidden_size, options.dropout)

    @abstractmethod
    def _places(self, encoded: Encoded) -> tuple[Tensor, Tensor | None]:
        """Return what is attended to, (B, T, H), and its mask (B, T)."""

    def _inputs(self, word: Tensor, encoded: Encoded) -> Tensor:
        attended = self.attention(word, *self._places(encoded))
        transformed: Tensor = self.transform(word, attended)
        return transformed


class AttVid(_Attentive):
    """`att-vid`: attention over the clips."""

    def _places(self, encoded: Encoded) -> tuple[Tensor, Tensor | None]:
        return encoded.video, None


class AttQns(_Attentive):
    """`att-qns`: attention over the words of the question; the default of the paper."""

    def _places(self, encoded: Encoded) -> tuple[Tensor, Tensor | None]:
        return encoded.question, encoded.question_mask


class UATTDecoder(_FromStates):
    """`uatt-lstm`: that of UATT."""

    def __init__(self, encoder: Encoder, *, words: int, vocabulary: int, options: DecoderOptions) -> None:
        super().__init__(encoder, vocabulary=vocabulary, inputs=words, options=options)
        self.dropout = nn.Dropout(options.dropout)

    def _inputs(self, word: Tensor, encoded: Encoded) -> Tensor:
        dropped: Tensor = self.dropout(word)
        return dropped


class HMEDecoder(_FromStates):
    """`hme-lstm`: that of HME in the code."""

    def __init__(self, encoder: Encoder, *, words: int, vocabulary: int, options: DecoderOptions) -> None:
        super().__init__(encoder, vocabulary=vocabulary, inputs=encoder.hidden_size, options=options)
        self.transform = Transform(encoder.fused_size + words, encoder.hidden_size, options.dropout)

    def _inputs(self, word: Tensor, encoded: Encoded) -> Tensor:
        transformed: Tensor = self.transform(encoded.fused, word)
        return transformed
