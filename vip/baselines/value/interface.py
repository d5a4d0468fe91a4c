"""What HERO is given and returns: items of tasks, batches of tensors, settings, and what every head can do.

The readers of files make items: texts as ids of RoBERTa's vocabulary without special ones, features as arrays, moments as frames. `batches`
makes batches of items: it puts special ids in, cuts what is too long, and leaves out a channel. `build` makes the model, `answer` reads
predictions off it. Nothing here knows a task by its name.

    model = build(HeroSettings(features=4352))
    batch = collate_questions(items, CollateOptions(text_tokens=120))
    model.loss(batch, LossOptions()).backward()
    model.predict(batch)                        # (B, O) probabilities

Sources: (P) Li et al. 2021, "VALUE"; (C) the starter code of the benchmark, VALUE-Leaderboard/StarterCode, by its file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Protocol, Self

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from vip.records import Vectors

Channels = Literal["video+sub", "video", "sub"]
"""What a model sees (P, Table 3). Without subtitles: one sentence without words over all frames; without video: features are zero."""
Fusion = Literal["hero", "sequence", "add", "concat", "two-stream"]
"""How frames and sentences meet (P, Table 4)."""

RANKING_SCALE = 20.0
"""`q2c_alpha` of C config/train-tvr-8gpu.json."""

# ---------------------------------------------------------------- items


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the subtitles."""

    tokens: tuple[int, ...]
    """Without special ids; may be empty."""
    frames: tuple[int, ...]
    """In which it is said, ascending; empty where none is. Frames behind the last one are left out by `batches`."""


@dataclass(frozen=True, slots=True)
class VideoItem:
    """Both channels of a video. Where it has no sentences, `batches` makes empty ones of five frames each."""

    name: str
    frames: Vectors  # float32 (V, D), a row each 1.5 s
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True)
class RetrievalItem:
    """A query and its video."""

    video: VideoItem
    query: tuple[int, ...]
    span: tuple[int, int] | None = None
    """First and last frame of the moment, both in it: `frame_span`. None: the video as a whole (YC2R, VATEX-EN-R), or hidden."""


@dataclass(frozen=True, slots=True)
class QuestionItem:
    """A question about a video."""

    video: VideoItem
    options: tuple[tuple[tuple[int, ...], ...], ...]
    """Of each option its texts in order: (question, answer) in TVQA and How2QA, (event,) in VLEP; one option (statement,) in VIOLIN."""
    answer: int | None = None
    """Index of the option; with one option 1 is true and 0 false. None: hidden."""
    span: tuple[int, int] | None = None
    """First and last frame that show the answer; None where that is not known."""


@dataclass(frozen=True, slots=True)
class CaptionItem:
    """A moment of a video, or all of it, and one caption of it."""

    video: VideoItem
    moment: tuple[int, int] | None = None
    """First frame, and the one behind the last: `frame_range` (TVC). None: the whole video."""
    caption: tuple[int, ...] | None = None
    """None: to be predicted."""


# ---------------------------------------------------------------- batches


@dataclass(frozen=True, slots=True)
class Batch:
    """Tensors of several items."""

    def to(self, device: torch.device | str) -> Self:
        """Return it on a device."""
        values: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Tensor | Batch):
                values[field.name] = value.to(device)
            elif isinstance(value, tuple):
                values[field.name] = tuple(one.to(device) for one in value)
        return replace(self, **values)


@dataclass(frozen=True, slots=True)
class VideoBatch(Batch):
    """B videos of at most V frames, and all S sentences of them in a row."""

    frames: Tensor
    """(B, V, D) float32."""
    frame_mask: Tensor
    """(B, V) bool: True where there is a frame."""
    sentences: Tensor
    """(S, T) int64, with special ids and padding."""
    sentence_mask: Tensor
    """(S, T) bool."""
    sentence_video: Tensor
    """(S,) int64: the row of its video."""
    sentence_frames: Tensor
    """(S, F) int64: frames in which it is said; 0 where `sentence_frame_mask` is False."""
    sentence_frame_mask: Tensor
    """(S, F) bool."""
    has_frames: bool = True
    """False: subtitles alone."""


@dataclass(frozen=True, slots=True)
class RetrievalBatch(Batch):
    """Q queries of B videos. Query i belongs to video `query_video[i]`; several may share one."""

    video: VideoBatch
    queries: Tensor
    """(Q, T) int64."""
    query_mask: Tensor
    """(Q, T) bool."""
    query_video: Tensor
    """(Q,) int64."""
    spans: Tensor
    """(Q, 2) int64: first and last frame; -1 where there is none."""


@dataclass(frozen=True, slots=True)
class QuestionBatch(Batch):
    """B questions of O options each. The texts of an option stand behind every sentence of a video of its own: row b × O + o."""

    video: VideoBatch
    """B × O videos."""
    texts: Tensor
    """(B × O, T) int64."""
    text_mask: Tensor
    """(B × O, T) bool."""
    options: int
    """O; 1: a statement that is true or false."""
    answers: Tensor
    """(B,) int64; -1 where it is hidden."""
    spans: Tensor
    """(B, 2) int64; -1 where there is none."""


@dataclass(frozen=True, slots=True)
class CaptionBatch(Batch):
    """C captions of B videos."""

    video: VideoBatch
    caption_video: Tensor
    """(C,) int64."""
    moments: Tensor
    """(C, 2) int64: first frame, and the one behind the last."""
    inputs: Tensor
    """(C, T) int64: <s> and the words; T is 0 where captions are to be predicted."""
    targets: Tensor
    """(C, T) int64: the words and </s>; -1 behind the end."""


@dataclass(frozen=True, slots=True)
class MaskedTextBatch(Batch):
    """Sentences with masked tokens: MLM."""

    video: VideoBatch
    labels: Tensor
    """(S, T) int64: the token that was there; -1 where none is asked for."""


@dataclass(frozen=True, slots=True)
class MaskedFrameBatch(Batch):
    """Videos with masked frames: MFM. `video.frames` are whole; the model masks them."""

    video: VideoBatch
    masked: Tensor
    """(B, V) bool."""


@dataclass(frozen=True, slots=True)
class FrameOrderBatch(Batch):
    """Videos with frames out of their places: FOM. `video` is in order; the model shuffles what was fused."""

    video: VideoBatch
    order: Tensor
    """(B, V) int64: where each frame goes."""
    targets: Tensor
    """(B, V) int64: of each place the frame's true place; -1 where nothing was moved."""


# ---------------------------------------------------------------- settings


class HeroSettings(BaseModel):
    """Sizes of the model: they decide the shape of every weight."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    features: int = Field(default=4352, ge=1, le=100_000)
    """D, numbers a frame: ResNet 2048 + SlowFast 2304 (C utils/const.py)."""
    fusion: Fusion = "hero"
    hidden: int = Field(default=768, ge=1, le=8192)
    """C config/model_config/hero_finetune.json, as all that follows."""
    heads: int = Field(default=12, ge=1, le=256)
    intermediate: int = Field(default=3072, ge=1, le=65_536)
    cross_layers: int = Field(default=6, ge=1, le=64)
    """Of the cross-modal transformer."""
    temporal_layers: int = Field(default=3, ge=1, le=64)
    """Of the temporal transformer."""
    decoder_layers: int = Field(default=2, ge=1, le=64)
    """Of the caption decoder."""
    vocabulary: int = Field(default=50_272, ge=8, le=1_000_000)
    """RoBERTa's 50,265, padded to a multiple of 8."""
    positions: int = Field(default=514, ge=4, le=65_536)
    """Most positions of texts, and of frames in the temporal transformer."""
    caption_positions: int = Field(default=1024, ge=2, le=65_536)
    frame_positions: int = Field(default=100, ge=1, le=65_536)
    """Most frames of a sentence, and of a video: C utils/const.py, MAX_FRM_SEQ_LEN."""
    span_kernel: int = Field(default=5, ge=1, le=101)
    """Of the convolutions that find start and end: C model/pretrain.py."""
    dropout: float = Field(default=0.1, ge=0, lt=1)


class CollateOptions(BaseModel):
    """How items become batches."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    channels: Channels = "video+sub"
    frames: int = Field(default=100, ge=1, le=65_536)
    """The most of a video: `max_clip_len` of C config/train-*.json."""
    text_tokens: int = Field(default=60, ge=1, le=65_536)
    """The most of a sentence, a query, an option or a caption: `max_txt_len`, 60 and 120 with questions."""
    alignment: Literal["best", "all"] = "best"
    """Whether a frame belongs to the sentence that covers most of it, as published weights were trained (`unique_sub2frames` of C
    scripts/prepro_sub.py), or to each that is said in it."""
    context: int = Field(default=0, ge=0, le=64)
    """Sentences before, which a sentence is read with: `sub_ctx_len`, 0 or 1 by task."""


class LossOptions(BaseModel):
    """Weights of the losses, which differ by task."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    margin: float = Field(default=0.1, gt=0)
    """Of the hinge loss."""
    rank_weight: float = Field(default=8.0, ge=0)
    """`lw_neg_ctx` and `lw_neg_q`: 8; 10 in YC2R and VATEX-EN-R."""
    span_weight: float = Field(default=0.01, ge=0)
    """`lw_st_ed`: 0.01; 0 in YC2R and VATEX-EN-R."""
    skip_spans: float = Field(default=0.8, ge=0, le=1)
    """`drop_svmr_prob`: how often a training step leaves out the loss of spans."""
    hard_negatives: bool = False
    """Whether the hardest negatives weigh more; the code begins with step 2,000 (TVR), so that training sets it step by step."""
    hard_pool: int = Field(default=20, ge=1)
    """How many are the hardest: 20; 80 in YC2R and VATEX-EN-R."""
    hard_weight: float = Field(default=10.0, ge=0)
    """What they weigh."""
    easy_weight: float = Field(default=0.1, ge=0)
    """What the others weigh meanwhile: a constant of C model/pretrain.py."""
    question_span_weight: float = Field(default=0.4, ge=0)
    """`lw_st_ed` of C config/train-tvqa-8gpu.json."""
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    """`lsr` of C config/train-tvc-8gpu.json."""
    nce_temperature: float = Field(default=1.0, gt=0)
    """`nce_temp` of C model/model.py."""


class RankingOptions(BaseModel):
    """How moments are read off scores."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    scale: float = Field(default=RANKING_SCALE, gt=0)
    """`q2c_alpha`: videos weigh exp(scale × score)."""
    videos: int = Field(default=100, ge=1, le=10_000)
    """`max_vcmr_video`: of how many videos moments are taken."""
    least_frames: int = Field(default=2, ge=0, le=65_536)
    """`min_pred_l`: the last frame is at least so many behind the first: 2 in TVR, 3 in How2R."""
    most_frames: int = Field(default=16, ge=1, le=65_536)
    """`max_pred_l`: and fewer than so many: 16 in TVR, 20 in How2R."""
    kept: int = Field(default=100, ge=1, le=100_000)
    """`max_after_nms`: predictions a query."""


# ---------------------------------------------------------------- the model


@dataclass(frozen=True, slots=True)
class VideoIndex(Batch):
    """Encoded videos of a corpus, to be ranked for queries."""

    streams: tuple[Tensor, ...]
    """Of each stream (N, V, H); two in `two-stream`."""
    mask: Tensor
    """(N, V) bool."""


@dataclass(frozen=True, slots=True)
class RetrievalScores:
    """How well queries fit videos and their frames; means over the streams."""

    videos: Tensor
    """(Q, N): exp(scale × cosine)."""
    starts: Tensor
    """(Q, N, V): probability that the moment begins at a frame; 0 at padding."""
    ends: Tensor
    """(Q, N, V): that it ends there."""


Predicted = Tensor | list[tuple[int, ...]] | RetrievalScores


class Head(Protocol):
    """What answers one kind of batch. It shares the encoder with the other heads of a model, so that it is given to it."""

    def loss(self, encoder: Any, batch: Any, options: LossOptions) -> Tensor:
        """Return the loss of a batch, a number with a gradient."""

    def predict(self, encoder: Any, batch: Any) -> Predicted:
        """Return what the head says."""


class HeroModel(nn.Module, ABC):
    """A model of VALUE, `hero.Hero` or `two_stream.TwoStream`: one encoder, and a head for each kind of task."""

    settings: HeroSettings

    @abstractmethod
    def loss(self, batch: Batch, options: LossOptions) -> Tensor:
        """Return the loss of a batch of any kind, a number with a gradient."""

    @abstractmethod
    def predict(self, batch: RetrievalBatch | QuestionBatch | CaptionBatch) -> Predicted:
        """Return what the head of this kind says.

        Questions: probabilities (B, O), the largest is the answer; (B, 1) with one option, true from 0.5 on. Captions: ids of each, without
        special ones. Retrieval: scores of all queries with all videos of the batch.
        """

    @abstractmethod
    def index(self, video: VideoBatch) -> VideoIndex:
        """Return the videos as retrieval needs them."""

    @abstractmethod
    def score(self, queries: Tensor, mask: Tensor, index: VideoIndex, *, scale: float = RANKING_SCALE) -> RetrievalScores:
        """Return the scores of all queries (Q, T) with all videos of an index."""

    def head_names(self) -> set[str]:
        """Return the names of the weights of heads: they learn ten times as fast as the encoder (`lr_mul` of C config/train-*.json)."""
        return {name for name, _ in self.named_parameters() if "encoder" not in name.split(".")[:2]}


def build(settings: HeroSettings) -> HeroModel:
    """Return the model of these settings, its weights drawn by torch's generator."""
    if settings.fusion == "two-stream":
        from vip.baselines.value.two_stream import TwoStream

        return TwoStream(settings)
    from vip.baselines.value.hero import Hero

    return Hero(settings)
