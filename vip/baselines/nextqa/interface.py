"""What every model of NExT-QA is given and returns, and the table that finds a model by its name.

A model gets vectors only: features of the clips of a video, and vectors of words. Files, vocabularies and word vectors are the business of
`vip.baselines.features`, `vip.baselines.nextqa.words` and `vip.baselines.training`; no model knows them.

To add a model: write its file, write its hyper-parameters with their sources beside it (`NAME.toml` with options, `NAME-oe.toml`
open-ended, `NAME.toml` of a decoder; the table `[model]`), and add a line to a table below. Settings of all models are in
`multi-choice.toml` and `open-ended.toml`; a model may change them in `[words]`, `[training]` and, open-ended, by `decoder = "NAME"`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor, nn

from vip.errors import UsageError

MULTI_CHOICE: dict[str, str] = {
    "blind-qa": "vip.baselines.nextqa.blind_qa:BlindQA",
    "bert-choice": "vip.baselines.nextqa.blind_qa:BertChoice",
    "evqa": "vip.baselines.nextqa.evqa:EVQA",
    "stvqa": "vip.baselines.nextqa.stvqa:STVQA",
    "co-mem": "vip.baselines.nextqa.co_mem:CoMem",
    "hme": "vip.baselines.nextqa.hme:HME",
    "hcrn": "vip.baselines.nextqa.hcrn:HCRN",
    "hga": "vip.baselines.nextqa.hga:HGA",
    "psac": "vip.baselines.nextqa.psac:PSAC",
    "psac-plus": "vip.baselines.nextqa.psac:PSAC",
}
"""Models that score options: name → module:class. A class is a `MultiChoiceModel`."""

OPEN_ENDED: dict[str, str] = {
    "blind-qa": "vip.baselines.nextqa.blind_qa:BlindQAEncoder",
    "evqa": "vip.baselines.nextqa.evqa:EVQAEncoder",
    "stvqa": "vip.baselines.nextqa.stvqa:STVQAEncoder",
    "co-mem": "vip.baselines.nextqa.co_mem:CoMemEncoder",
    "hme": "vip.baselines.nextqa.hme:HMEEncoder",
    "hcrn": "vip.baselines.nextqa.hcrn:HCRNEncoder",
    "hga": "vip.baselines.nextqa.hga:HGAEncoder",
    "psac": "vip.baselines.nextqa.psac:PSACEncoder",
    "psac-plus": "vip.baselines.nextqa.psac:PSACEncoder",
    "uatt": "vip.baselines.nextqa.uatt:UATTEncoder",
}
"""Encoders of video and question for open-ended answers: name → module:class. A class is an `Encoder`."""

DECODERS: dict[str, str] = {
    "naive": "vip.baselines.nextqa.decoders:Naive",
    "naive-trans": "vip.baselines.nextqa.decoders:NaiveTrans",
    "qns-ans": "vip.baselines.nextqa.decoders:QnsAns",
    "att-vid": "vip.baselines.nextqa.decoders:AttVid",
    "att-qns": "vip.baselines.nextqa.decoders:AttQns",
    "uatt-lstm": "vip.baselines.nextqa.decoders:UATTDecoder",
    "hme-lstm": "vip.baselines.nextqa.decoders:HMEDecoder",
}
"""Decoders of answers: name → module:class. A class is a `Decoder`."""


@dataclass(frozen=True, slots=True)
class VideoFeatures:
    """Features of the clips of B videos; every video has as many clips."""

    appearance: Tensor
    """(B, N, A): of the frames of each clip."""
    motion: Tensor
    """(B, N, M): of each clip as a whole; M is 0 where a file has none."""
    maps: Tensor | None = None
    """(B, N, C, 7, 7): feature maps before pooling, appearance and motion one after the other; None where a model needs none."""

    @property
    def clips(self) -> Tensor:
        """Both, one after the other: (B, N, A + M)."""
        return torch.cat((self.appearance, self.motion), dim=-1)

    def to(self, device: torch.device) -> VideoFeatures:
        """Return them on a device."""
        maps = None if self.maps is None else self.maps.to(device)
        return VideoFeatures(self.appearance.to(device), self.motion.to(device), maps)

    def repeat(self, times: int) -> VideoFeatures:
        """Return each video `times` times in a row, once for each option: (B × times, …)."""
        maps = None if self.maps is None else self.maps.repeat_interleave(times, dim=0)
        return VideoFeatures(self.appearance.repeat_interleave(times, dim=0), self.motion.repeat_interleave(times, dim=0), maps)


@dataclass(frozen=True, slots=True)
class Words:
    """Vectors of the words of B texts: questions, or a question and one of its options."""

    vectors: Tensor
    """(B, T, E); what lies behind the end of a text may be anything."""
    lengths: Tensor
    """(B,) int64, on the CPU: number of words, at least 1."""
    question_lengths: Tensor | None = None
    """(B,) int64, on the CPU: how many of the words are the question's, the others the option's; None where that is not known."""

    def apart(self) -> tuple[Words, Words]:
        """Return the questions, and their options as texts of their own.

        Raises:
            UsageError: it is not known where the options begin.
        """
        if self.question_lengths is None:
            raise UsageError("These vectors of words do not say where an option begins. Set model.joined=true.")
        starts = self.question_lengths.to(self.vectors.device)
        places = (starts[:, None] + torch.arange(self.vectors.shape[1], device=starts.device)).clamp(max=self.vectors.shape[1] - 1)
        options = self.vectors.gather(1, places[..., None].expand_as(self.vectors))
        return Words(self.vectors, self.question_lengths), Words(options, self.lengths - self.question_lengths)

    @property
    def mask(self) -> Tensor:
        """(B, T) bool, on the device of the vectors: True where there is a word."""
        return mask_of(self.lengths, self.vectors.shape[1], self.vectors.device)


def mask_of(lengths: Tensor, length: int, device: torch.device | str) -> Tensor:
    """Return (B, length) bool: True in the first `lengths[i]` places of row i."""
    return torch.arange(length, device=device)[None, :] < lengths.to(device)[:, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSizes:
    """Sizes of what a model will be given."""

    appearance: int
    """A of `VideoFeatures`: 2048 in the paper."""
    motion: int
    """M of `VideoFeatures`: 2048 in the paper."""
    clips: int
    """N of `VideoFeatures`: 16 in the paper."""
    words: int
    """E of `Words`: 300 in the paper."""
    length: int
    """The most words of a text: 37 with an option, 23 without in the authors' code."""
    maps: int = 0
    """C of `VideoFeatures.maps`: 4096 in the paper; 0 where there are none."""


class ModelOptions(BaseModel):
    """Hyper-parameters of a model: the table `[model]` of its TOML file."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class MultiChoiceModel(nn.Module, ABC):
    """A model that says how well an option answers a question about a video."""

    Options: ClassVar[type[ModelOptions]]
    """Its hyper-parameters. The class is made by `Model(sizes, options)`."""
    sees_video: ClassVar[bool] = True
    """Whether features are needed at all."""
    needs_maps: ClassVar[bool] = False
    """Whether `VideoFeatures.maps` is needed."""

    @abstractmethod
    def forward(self, video: VideoFeatures, words: Words) -> Tensor:
        """Return the scores (B,) of B pairs: a video and the words of its question and of one option."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """What a decoder answers from."""

    fused: Tensor
    """(B, F): video and question in one vector, the output of the encoder."""
    question_state: Tensor
    """(B, H): last hidden state of the question's encoder (last layer)."""
    question: Tensor
    """(B, T, H): one vector a word of the question."""
    question_mask: Tensor
    """(B, T) bool: True where there is a word."""
    video: Tensor
    """(B, N, H): one vector a clip."""
    hidden: Tensor | None = None
    """(L, B, H): where a decoder of several layers begins (UATT, HME); None: decoders begin with `fused` or `question_state`."""
    cell: Tensor | None = None
    """(L, B, H): the same for the cells of an LSTM."""


class Encoder(nn.Module, ABC):
    """The part of an open-ended model that reads video and question."""

    Options: ClassVar[type[ModelOptions]]
    sees_video: ClassVar[bool] = True
    needs_maps: ClassVar[bool] = False
    decoders: ClassVar[tuple[str, ...] | None] = None
    """Names of the decoders that fit it, the default first; None: all that need no states of its own."""

    fused_size: int
    """F of `Encoded`."""
    hidden_size: int
    """H of `Encoded`."""

    @abstractmethod
    def forward(self, video: VideoFeatures, words: Words) -> Encoded:
        """Return what a decoder answers from; `words` are those of the question."""


@dataclass(frozen=True, slots=True)
class DecoderState:
    """What a decoder keeps from word to word."""

    hidden: Tensor
    """(L, B, H)."""
    cell: Tensor | None = None
    """(L, B, H), of an LSTM."""


class Decoder(nn.Module, ABC):
    """The part of an open-ended model that says the answer, word by word.

    The class is made by `Decoder(encoder, words=E, vocabulary=V, options=options)`.
    """

    Options: ClassVar[type[ModelOptions]]
    needs_states: ClassVar[bool] = False
    """Whether it begins with `Encoded.hidden` and `Encoded.cell`, which few encoders give."""

    @abstractmethod
    def start(self, encoded: Encoded) -> DecoderState:
        """Return the state before the first word."""

    @abstractmethod
    def step(self, word: Tensor, state: DecoderState, encoded: Encoded) -> tuple[Tensor, DecoderState]:
        """Return the logits (B, V) of the next word, and the state after it; `word` is (B, E), the vectors of the word before."""


def load_class(table: dict[str, str], name: str) -> Any:
    """Return a class of one of the tables above by its name."""
    module, _, attribute = table[name].partition(":")
    return getattr(import_module(module), attribute)
