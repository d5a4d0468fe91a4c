"""PSAC and PSAC+: self-attention with positions for video and words, and co-attention between both; no RNN (Li et al. 2019; Xiao et al.
2021, section 4.1.2).

    V = X + layers of (self-attention of 8 heads, feed-forward) over X + P     X: clips, P: a linear layer of sines of their positions
    Q = words → D, two highway layers, then a block of four depthwise separable convolutions, self-attention of 8 heads, feed-forward
    S = w_v v + w_q q + w_m (v ⊙ q)            for all pairs of clip and word; V is brought to D first
    A = softmax over words (S) Q;  B = softmax over words (S) softmax over clips (S)ᵀ V
    m = mean over clips of W [V; A; V ⊙ A; V ⊙ B];  score = two layers with weight normalisation

PSAC sees appearance alone, PSAC+ appearance and motion side by side (`motion = true`).

Where paper and code differ:
- Li et al. have a network over the characters of each word beside its vector. A model gets vectors of words here, so there is none.
- In the code the scores of attention over the video are divided by √ of the width of the whole vector, in Vaswani et al. 2017 by √ of the
  width of a key: `scale = "vector"` or `"key"`.
- The code adds one number to all scores of S, which changes no softmax of them. It is left out.
- In the code words behind the end reach their neighbours through the convolutions. Here they do not.
- Xiao et al. give no code of PSAC; the sizes are those of the code of Li et al.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from vip.baselines.nextqa.attention import AttentionWeights
from vip.baselines.nextqa.interface import Encoded, Encoder, InputSizes, ModelOptions, MultiChoiceModel, VideoFeatures, Words


class PSACOptions(ModelOptions):
    """Hyper-parameters of PSAC."""

    motion: bool
    """Whether motion is seen too (PSAC+)."""
    hidden: int = Field(ge=2, le=8192, multiple_of=2)
    """D; a multiple of `heads`."""
    heads: int = Field(ge=1, le=64)
    video_layers: int = Field(ge=1, le=64)
    head_size: int = Field(ge=1, le=4096)
    """Of keys and values over the video."""
    scale: Literal["vector", "key"]
    """By the root of which width scores over the video are divided."""
    inner: int = Field(ge=1, le=8192)
    """Of the feed-forward layer over the video."""
    positions: int = Field(ge=2, le=8192, multiple_of=2)
    """Sines and cosines of a position of the video."""
    convolutions: int = Field(ge=1, le=64)
    kernel: int = Field(ge=1, le=63)
    """Width of the convolutions, odd."""
    dropout: float = Field(ge=0, lt=1)
    score_dropout: float = Field(ge=0, lt=1)

    @model_validator(mode="after")
    def _check_widths(self) -> PSACOptions:
        if self.hidden % self.heads or self.kernel % 2 == 0:
            raise ValueError("hidden is a multiple of heads, and kernel is odd")
        return self


def sinusoids(length: int, size: int) -> Tensor:
    """Return sines and cosines of positions, (length, size) (Vaswani et al. 2017, section 3.5)."""
    rates = torch.exp(torch.arange(0, size, 2) * (-math.log(10_000.0) / size))
    angles = torch.arange(length)[:, None] * rates
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)[:, :size]


class SelfAttention(nn.Module):
    """Self-attention of several heads."""

    def __init__(self, size: int, *, heads: int, head_size: int, scale: float, dropout: float) -> None:
        """Args: scale: what the products of queries and keys are divided by."""
        super().__init__()
        self.heads, self.scale = heads, scale
        self.project = nn.Linear(size, 3 * heads * head_size, bias=False)
        self.out = nn.Linear(heads * head_size, size)
        self.weights, self.dropout = AttentionWeights(), nn.Dropout(dropout)
        nn.init.xavier_normal_(self.project.weight)
        nn.init.xavier_normal_(self.out.weight)

    def forward(self, vectors: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return (B, T, size) of vectors (B, T, size); mask: (B, T) bool."""
        queries, keys, values = self.project(vectors).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        weights = self.weights(queries @ keys.mT / self.scale, None if mask is None else mask[:, None, None])
        attended: Tensor = self.out((self.dropout(weights) @ values).transpose(1, 2).flatten(2))
        return attended


class VideoLayer(nn.Module):
    """Self-attention and feed-forward over the clips, each added to what went in and normalised."""

    def __init__(self, size: int, options: PSACOptions) -> None:
        super().__init__()
        scale = math.sqrt(size if options.scale == "vector" else options.head_size)
        self.attention = SelfAttention(size, heads=options.heads, head_size=options.head_size, scale=scale, dropout=options.dropout)
        self.feed = nn.Sequential(nn.Linear(size, options.inner), nn.ReLU(), nn.Linear(options.inner, size))
        self.attention_norm, self.feed_norm = nn.LayerNorm(size), nn.LayerNorm(size)
        self.dropout = nn.Dropout(options.dropout)

    def forward(self, clips: Tensor) -> Tensor:
        """Return (B, N, size)."""
        clips = self.attention_norm(clips + self.dropout(self.attention(clips)))
        out: Tensor = self.feed_norm(clips + self.dropout(self.feed(clips)))
        return out


class VideoSelfAttention(nn.Module):
    """Clips with their positions through layers of self-attention, added to the clips."""

    def __init__(self, size: int, options: PSACOptions) -> None:
        super().__init__()
        self.position = nn.Linear(options.positions, size)
        self.layers = nn.ModuleList(VideoLayer(size, options) for _ in range(options.video_layers))
        self.positions = options.positions

    def forward(self, clips: Tensor) -> Tensor:
        """Return (B, N, size)."""
        attended = clips + self.position(sinusoids(clips.shape[1], self.positions).to(clips))
        for layer in self.layers:
            attended = layer(attended)
        summed: Tensor = clips + attended
        return summed


class Highway(nn.Module):
    """One highway layer (Srivastava et al. 2015): a gate between what went in and a linear layer of it."""

    def __init__(self, size: int, dropout: float) -> None:
        super().__init__()
        self.linear, self.gate, self.dropout = nn.Linear(size, size), nn.Linear(size, size), nn.Dropout(dropout)

    def forward(self, words: Tensor) -> Tensor:
        """Return (B, T, size)."""
        gate = torch.sigmoid(self.gate(words))
        passed: Tensor = gate * self.dropout(self.linear(words)) + (1 - gate) * words
        return passed


class SeparableConvolution(nn.Module):
    """A convolution over each number of the vectors, then a linear layer at each word, then a ReLU; 0 stands behind the end."""

    def __init__(self, size: int, kernel: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv1d(size, size, kernel, padding=kernel // 2, groups=size, bias=False)
        self.pointwise = nn.Linear(size, size)

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        """Return (B, T, size)."""
        return torch.relu(self.pointwise(self.depthwise((words * mask[..., None]).mT).mT))


class WordSelfAttention(nn.Module):
    """Words with their positions through convolutions, self-attention and feed-forward (a block as in QANet)."""

    def __init__(self, size: int, options: PSACOptions) -> None:
        super().__init__()
        width = options.hidden
        self.project = nn.Linear(size, width, bias=False)
        self.highways = nn.ModuleList(Highway(width, options.dropout) for _ in range(2))
        self.convolutions = nn.ModuleList(SeparableConvolution(width, options.kernel) for _ in range(options.convolutions))
        self.attention = SelfAttention(
            width,
            heads=options.heads,
            head_size=width // options.heads,
            scale=math.sqrt(width // options.heads),
            dropout=options.dropout,
        )
        self.feed = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(options.convolutions + 2))
        self.dropout = nn.Dropout(options.dropout)

    def forward(self, words: Words) -> Tensor:
        """Return (B, T, D); what lies behind the end of a text may be anything."""
        mask = words.mask
        known = self.project(self.dropout(words.vectors).masked_fill(~mask[..., None], 0.0))
        for highway in self.highways:
            known = highway(known)
        known = known + sinusoids(known.shape[1], known.shape[2]).to(known)
        for norm, convolution in zip(self.norms, self.convolutions, strict=False):
            known = known + self.dropout(convolution(norm(known), mask))
        known = known + self.dropout(self.attention(self.norms[-2](known), mask))
        out: Tensor = known + self.dropout(self.feed(self.norms[-1](known)))
        return out


class CrossAttention(nn.Module):
    """Attention between clips and words, both ways."""

    def __init__(self, clips: int, size: int, dropout: float) -> None:
        """Args: clips: size of the vector of a clip; size: D of words, and of what is given out."""
        super().__init__()
        self.clips = weight_norm(nn.Linear(clips, size))
        self.clip_score, self.word_score = nn.Linear(size, 1, bias=False), nn.Linear(size, 1, bias=False)
        self.product_score = nn.Parameter(nn.init.xavier_uniform_(torch.empty(1, size))[0])
        self.weights, self.dropout = AttentionWeights(), nn.Dropout(dropout)
        self.join = nn.Linear(4 * size, size, bias=False)

    def forward(self, clips: Tensor, words: Tensor, mask: Tensor) -> Tensor:
        """Return (B, N, D) of clips (B, N, A) and words (B, T, D); mask: (B, T) bool."""
        clips = self.clips(clips)
        v, q = self.dropout(clips), self.dropout(words)
        scores = self.clip_score(v) + self.word_score(q).mT + (v * self.product_score) @ q.mT  # (B, N, T)
        over_words = self.weights(scores, mask[:, None])
        over_clips = self.weights(scores, dim=1)
        words_seen = over_words @ words
        clips_seen = over_words @ over_clips.mT @ clips
        joined: Tensor = self.join(torch.cat((clips, words_seen, clips * words_seen, clips * clips_seen), dim=-1))
        return joined


class PSACReader(nn.Module):
    """All of PSAC but its last layers."""

    def __init__(self, sizes: InputSizes, options: PSACOptions) -> None:
        super().__init__()
        width = sizes.appearance + (sizes.motion if options.motion else 0)
        self.has_motion = options.motion
        self.video = VideoSelfAttention(width, options)
        self.words = WordSelfAttention(sizes.words, options)
        self.both = CrossAttention(width, options.hidden, options.dropout)

    def forward(self, video: VideoFeatures, words: Words) -> tuple[Tensor, Tensor]:
        """Return the clips that know the words (B, N, D), and the words (B, T, D)."""
        question = self.words(words)
        clips = self.video(video.clips if self.has_motion else video.appearance)
        return self.both(clips, question, words.mask), question


class PSAC(MultiChoiceModel):
    """PSAC for multiple choice."""

    Options = PSACOptions

    def __init__(self, sizes: InputSizes, options: PSACOptions) -> None:
        super().__init__()
        self.reader = PSACReader(sizes, options)
        self.score = nn.Sequential(
            weight_norm(nn.Linear(options.hidden, 2 * options.hidden)),
            nn.ReLU(),
            nn.Dropout(options.score_dropout),
            weight_norm(nn.Linear(2 * options.hidden, 1)),
        )

    def forward(self, video: VideoFeatures, words: Words) -> Tensor:
        """Return the scores (B,)."""
        clips, _ = self.reader(video, words)
        scores: Tensor = self.score(clips.mean(dim=1))[:, 0]
        return scores


class PSACEncoder(Encoder):
    """PSAC for open-ended answers; it is in no table of Xiao et al. The question's state is the mean of its words."""

    Options = PSACOptions

    def __init__(self, sizes: InputSizes, options: PSACOptions) -> None:
        super().__init__()
        self.fused_size = self.hidden_size = options.hidden
        self.reader = PSACReader(sizes, options)

    def forward(self, video: VideoFeatures, words: Words) -> Encoded:
        """Return what a decoder answers from."""
        clips, question = self.reader(video, words)
        mask = words.mask[..., None]
        state = (question * mask).sum(dim=1) / mask.sum(dim=1)
        return Encoded(fused=clips.mean(dim=1), question_state=state, question=question, question_mask=words.mask, video=clips)
