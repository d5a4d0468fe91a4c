"""STVQA: where to look in a frame and at which frames, both chosen by the question (Jang et al. 2017; Xiao et al. 2021, section 4.1.2).

    q₁ = two-layer LSTM (words)                       both hidden states
    x_n = Σ_r α_nr f_nr,  α = attention of q₁         over the 7 × 7 places of each clip's feature maps
    v_1 … v_N = two LSTMs, one above the other (x)    outputs of both
    q₂ = the same LSTM over the words, begun with the last states of the video
    a = Σ_n β_n v_n,  β = attention of q₂             over the clips
    score = w · (q₂ + a)                              open-ended: a linear layer to H instead

For multiple choice "question" is the question and one option, joined. The authors' code reckons spatial attention for one video after the
other, here it is done for all at once; the numbers are the same. Xiao et al. give no sizes; those of `stvqa.toml` are the code's.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field
from torch import Tensor, nn

from vip.baselines.nextqa.attention import AdditiveAttention
from vip.baselines.nextqa.interface import Encoded, Encoder, InputSizes, ModelOptions, MultiChoiceModel, VideoFeatures, Words
from vip.baselines.nextqa.layers import WordEncoder
from vip.baselines.nextqa.stacked import StackedEncoder, layers_side_by_side


class STVQAOptions(ModelOptions):
    """Hyper-parameters of STVQA."""

    hidden: int = Field(ge=1, le=8192)
    """H."""
    attention: int = Field(ge=1, le=8192)
    """Size in which query and places are added."""
    word_dropout: float = Field(ge=0, lt=1)
    layer_dropout: float = Field(ge=0, lt=1)
    """Between the two layers over the words."""
    map_dropout: float = Field(ge=0, lt=1)
    """On what spatial attention gives out."""


@dataclass(frozen=True, slots=True)
class _Read:
    """What the model knows before it answers."""

    fused: Tensor  # (B, 2H)
    question: Tensor  # (B, T, H)
    question_state: Tensor  # (B, H)
    video: Tensor  # (B, N, H)


class STVQAReader(nn.Module):
    """All of STVQA but its last layer."""

    def __init__(self, sizes: InputSizes, options: STVQAOptions) -> None:
        super().__init__()
        hidden = options.hidden
        self.words = WordEncoder(
            sizes.words, hidden, cell="lstm", layers=2, input_dropout=options.word_dropout, dropout=options.layer_dropout
        )
        self.spatial = AdditiveAttention(2 * hidden, sizes.maps, options.attention)
        self.map_dropout = nn.Dropout(options.map_dropout)
        self.clips = StackedEncoder(sizes.maps, hidden, cell="lstm")
        self.temporal = AdditiveAttention(2 * hidden, 2 * hidden, options.attention)

    def forward(self, video: VideoFeatures, words: Words) -> _Read:
        """Return the fused vector (B, 2H) and the outputs of both encoders."""
        _, first_look, _ = self.words(words)
        clips = self.clips(self._look(video, layers_side_by_side(first_look)))
        question, states, _ = self.words(words, clips.states)
        state = layers_side_by_side(states)
        return _Read(state + self.temporal(state, clips.both), question, states[-1], clips.second)

    def _look(self, video: VideoFeatures, question: Tensor) -> Tensor:
        """Return a vector a clip, (B, N, C): the places of its maps, weighted by the question (B, 2H)."""
        if video.maps is None:
            raise ValueError("expected feature maps (B, N, C, 7, 7), got none")
        batch, clips, *_ = video.maps.shape
        places = video.maps.flatten(3).transpose(2, 3).flatten(0, 1)  # (B × N, 49, C)
        looked: Tensor = self.map_dropout(self.spatial(question.repeat_interleave(clips, dim=0), places))
        return looked.view(batch, clips, -1)


class STVQA(MultiChoiceModel):
    """STVQA for multiple choice."""

    Options = STVQAOptions
    needs_maps = True

    def __init__(self, sizes: InputSizes, options: STVQAOptions) -> None:
        super().__init__()
        self.reader = STVQAReader(sizes, options)
        self.score = nn.Linear(2 * options.hidden, 1)

    def forward(self, video: VideoFeatures, words: Words) -> Tensor:
        """Return the scores (B,)."""
        scores: Tensor = self.score(self.reader(video, words).fused)[:, 0]
        return scores


class STVQAEncoder(Encoder):
    """STVQA for open-ended answers."""

    Options = STVQAOptions
    needs_maps = True

    def __init__(self, sizes: InputSizes, options: STVQAOptions) -> None:
        super().__init__()
        self.fused_size = self.hidden_size = options.hidden
        self.reader = STVQAReader(sizes, options)
        self.fuse = nn.Linear(2 * options.hidden, options.hidden)

    def forward(self, video: VideoFeatures, words: Words) -> Encoded:
        """Return what a decoder answers from. `question` is of the second look, `video` of the upper layer."""
        read = self.reader(video, words)
        return Encoded(
            fused=self.fuse(read.fused),
            question_state=read.question_state,
            question=read.question,
            question_mask=words.mask,
            video=read.video,
        )
