"""Two HEROs, one that sees frames alone and one that reads subtitles alone; what they say is averaged (Li et al. 2021, Table 4).

As in the folder two_stream_eval of the starter code: the mean of the probabilities of options, of exp(20 × cosine) of videos and of the
probabilities of starts and ends, and of the logits of each next word. Two prediction files with scores are averaged the same way by
`vip.baselines.value.fuse_scores`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar, cast

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from vip.baselines.value.batches import PAD, START
from vip.baselines.value.captions import decode_greedily, encode_moments
from vip.baselines.value.hero import Hero
from vip.baselines.value.interface import (
    RANKING_SCALE,
    Batch,
    CaptionBatch,
    HeroModel,
    HeroSettings,
    LossOptions,
    Predicted,
    QuestionBatch,
    RetrievalBatch,
    RetrievalScores,
    VideoBatch,
    VideoIndex,
)
from vip.errors import UsageError

Answerable = TypeVar("Answerable", bound=RetrievalBatch | QuestionBatch | CaptionBatch)


class TwoStream(HeroModel):
    """One model for each channel. Batches hold both channels."""

    def __init__(self, settings: HeroSettings) -> None:
        super().__init__()
        self.settings = settings
        of_stream = settings.model_copy(update={"fusion": "hero"})
        self.video = Hero(of_stream)
        self.subtitles = Hero(of_stream)

    def loss(self, batch: Batch, options: LossOptions) -> Tensor:
        """Return the sum of the losses of both streams: as they share no weight, each is trained as if it were alone."""
        if not isinstance(batch, RetrievalBatch | QuestionBatch | CaptionBatch):
            raise UsageError("The fusion two-stream has no pre-training. Set fusion=hero.")
        return self.video.loss(without_subtitles(batch), options) + self.subtitles.loss(without_video(batch), options)

    def predict(self, batch: RetrievalBatch | QuestionBatch | CaptionBatch) -> Predicted:
        seen, read = without_subtitles(batch), without_video(batch)
        if isinstance(batch, CaptionBatch):
            return self._caption(cast(CaptionBatch, seen), cast(CaptionBatch, read))
        first, second = self.video.predict(seen), self.subtitles.predict(read)
        if isinstance(first, RetrievalScores) and isinstance(second, RetrievalScores):
            return mean_scores(first, second)
        return (cast(Tensor, first) + cast(Tensor, second)) / 2

    def index(self, video: VideoBatch) -> VideoIndex:
        streams = self.video.encoder(_frames_alone(video, None)), self.subtitles.encoder(_sentences_alone(video))
        return VideoIndex(streams, video.frame_mask)

    def score(self, queries: Tensor, mask: Tensor, index: VideoIndex, *, scale: float = RANKING_SCALE) -> RetrievalScores:
        first, second = (
            model.score(queries, mask, VideoIndex((stream,), index.mask), scale=scale)
            for model, stream in zip((self.video, self.subtitles), index.streams, strict=True)
        )
        return mean_scores(first, second)

    def _caption(self, seen: CaptionBatch, read: CaptionBatch) -> list[tuple[int, ...]]:
        streams = [(model, *encode_moments(model.encoder, batch)) for model, batch in ((self.video, seen), (self.subtitles, read))]

        def decode(words: Tensor) -> Tensor:
            logits = [model.caption_head.decode(model.encoder, words, frames, mask) for model, frames, mask in streams]
            return (logits[0] + logits[1]) / 2

        return decode_greedily(decode, len(streams[0][1]), streams[0][1].device)


def mean_scores(first: RetrievalScores, second: RetrievalScores) -> RetrievalScores:
    """Return the mean of each score."""
    return RetrievalScores((first.videos + second.videos) / 2, (first.starts + second.starts) / 2, (first.ends + second.ends) / 2)


def without_subtitles(batch: Answerable) -> Answerable:
    """Return the batch as `channels="video"` makes it: one sentence of all frames, which has the texts of a question alone."""
    texts = (batch.texts, batch.text_mask) if isinstance(batch, QuestionBatch) else None
    return replace(batch, video=_frames_alone(batch.video, texts))


def without_video(batch: Answerable) -> Answerable:
    """Return the batch as `channels="sub"` makes it: features are zero, and sentences begin with <s>."""
    return replace(batch, video=_sentences_alone(batch.video))


def _frames_alone(video: VideoBatch, texts: tuple[Tensor, Tensor] | None) -> VideoBatch:
    rows = torch.arange(len(video.frames), device=video.frames.device)
    sentences = torch.full((len(rows), 1), START, device=rows.device)
    mask = torch.ones_like(sentences, dtype=torch.bool)
    if texts is not None:
        sentences, mask = torch.cat((sentences, texts[0]), dim=1), torch.cat((mask, texts[1]), dim=1)
    frames = pad_sequence([torch.arange(count, device=rows.device) for count in video.frame_mask.sum(1).tolist()], batch_first=True)
    return VideoBatch(
        video.frames, video.frame_mask, sentences.masked_fill(~mask, PAD), mask, rows, frames, video.frame_mask, has_frames=True
    )


def _sentences_alone(video: VideoBatch) -> VideoBatch:
    sentences = video.sentences.clone()
    sentences[:, 0] = START
    return replace(video, frames=torch.zeros_like(video.frames), sentences=sentences, has_frames=False)
