"""HERO: the encoder of a fusion, and the heads of retrieval, questions, captions and pre-training on it (Li et al. 2021, section 4.1).

One model has all heads: a training of one task uses one of them, the joint training of all tasks (`HeroForMultiTask` of
model/multitask.py) every one.
"""

from __future__ import annotations

from torch import Tensor

from vip.baselines.value import pretraining
from vip.baselines.value.captions import CaptionHead
from vip.baselines.value.encoder import HeroEncoder, make_encoder
from vip.baselines.value.interface import (
    RANKING_SCALE,
    Batch,
    CaptionBatch,
    FrameOrderBatch,
    HeroModel,
    HeroSettings,
    LossOptions,
    MaskedFrameBatch,
    MaskedTextBatch,
    Predicted,
    QuestionBatch,
    RetrievalBatch,
    RetrievalScores,
    VideoBatch,
    VideoIndex,
)
from vip.baselines.value.layers import initialize
from vip.baselines.value.questions import QuestionHead
from vip.baselines.value.retrieval import RetrievalHead
from vip.errors import UsageError


class Hero(HeroModel):
    """A model with one encoder."""

    def __init__(self, settings: HeroSettings) -> None:
        super().__init__()
        if settings.hidden % settings.heads:
            raise UsageError(f"{settings.hidden} numbers cannot be shared by {settings.heads} heads. Set hidden to a multiple of heads.")
        if settings.span_kernel % 2 == 0:
            raise UsageError(f"A convolution over {settings.span_kernel} frames has no middle. Set span_kernel to an odd number.")
        self.settings = settings
        self.encoder = make_encoder(settings)
        self.retrieval_head = RetrievalHead(settings)
        self.question_head = QuestionHead(settings)
        self.caption_head = CaptionHead(settings)
        initialize(self)

    def loss(self, batch: Batch, options: LossOptions) -> Tensor:
        match batch:
            case RetrievalBatch():
                return self.retrieval_head.loss(self.encoder, batch, options)
            case QuestionBatch():
                return self.question_head.loss(self.encoder, batch, options)
            case CaptionBatch():
                return self.caption_head.loss(self.encoder, batch, options)
            case MaskedTextBatch():
                return pretraining.masked_text_loss(self.encoder, batch)
        if not isinstance(self.encoder, HeroEncoder):
            raise UsageError(f"The fusion {self.settings.fusion} has no pre-training with frames. Set fusion=hero.")
        match batch:
            case MaskedFrameBatch():
                return pretraining.masked_frame_loss(self.encoder, batch, options)
            case FrameOrderBatch():
                return pretraining.frame_order_loss(self.encoder, batch)
        raise TypeError(f"HERO has no head for {type(batch).__name__}")

    def predict(self, batch: RetrievalBatch | QuestionBatch | CaptionBatch) -> Predicted:
        match batch:
            case RetrievalBatch():
                return self.retrieval_head.predict(self.encoder, batch)
            case QuestionBatch():
                return self.question_head.predict(self.encoder, batch)
            case CaptionBatch():
                return self.caption_head.predict(self.encoder, batch)

    def index(self, video: VideoBatch) -> VideoIndex:
        return VideoIndex((self.encoder(video),), video.frame_mask)

    def score(self, queries: Tensor, mask: Tensor, index: VideoIndex, *, scale: float = RANKING_SCALE) -> RetrievalScores:
        vectors = self.retrieval_head.encode_queries(self.encoder, queries, mask)
        return self.retrieval_head.score(vectors, index.streams[0], index.mask, scale=scale)
