"""The retrieval head of HERO: how well a query fits a video, and where in it (TVR, How2R, YC2R, VATEX-EN-R; Li et al. 2020, section 3.3).

    q = mean of the query's words, weighted by attention
    score of a video = largest cosine of q and a frame
    score of a start = convolution over (W q · frame), the same of an end

Losses are those of `HeroForPretraining` in model/pretrain.py of the starter code: a hinge loss of the right pair against all others of the
batch, by query and by video, the hardest of them weighted more; and cross-entropy of start and end. VSM of the pre-training is the same
with sentences of the subtitles as queries.

≠ The code lets frames of padding into the convolution of the last two frames, and takes other queries of the same video for negatives
where a batch has the video twice. Here neither happens.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from vip.baselines.value.batches import NOTHING
from vip.baselines.value.encoder import VideoEncoder
from vip.baselines.value.interface import RANKING_SCALE, HeroSettings, LossOptions, RetrievalBatch, RetrievalScores, VideoIndex
from vip.baselines.value.layers import HIDDEN_SCORE, LAYER_EPS, NORM_EPS, AttentionPool, Projection, mean_of

COSINE_EPS = 1e-5
"""Of the lengths that vectors are divided by."""


class QueryEncoder(nn.Module):
    """From the words of a query to one vector: `QueryFeatEncoder` of model/encoder.py."""

    def __init__(self, settings: HeroSettings) -> None:
        super().__init__()
        self.projection = Projection(settings.hidden, settings.hidden, settings.dropout)
        self.places = nn.Embedding(settings.positions, settings.hidden)
        self.norm = nn.LayerNorm(settings.hidden, eps=NORM_EPS)
        self.dropout = nn.Dropout(settings.dropout)
        self.attention = nn.MultiheadAttention(settings.hidden, settings.heads, settings.dropout, batch_first=True)
        self.attention_dropout = nn.Dropout(settings.dropout)
        self.attention_norm = nn.LayerNorm(settings.hidden, eps=LAYER_EPS)
        self.pool = AttentionPool(settings.hidden)

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        """Return (Q, H). Args: words: (Q, T, H); mask: (Q, T) bool."""
        places = torch.arange(words.shape[1], device=words.device).clamp(max=self.places.num_embeddings - 1)
        placed = self.dropout(self.norm(self.projection(words) + self.places(places)))
        attended, _ = self.attention(placed, placed, placed, key_padding_mask=~mask, need_weights=False)
        pooled: Tensor = self.pool(self.attention_norm(placed + self.attention_dropout(attended)), mask, dim=1)
        return pooled


class RetrievalHead(nn.Module):
    """Scores of queries with videos, and of starts and ends."""

    def __init__(self, settings: HeroSettings) -> None:
        super().__init__()
        self.query_encoder = QueryEncoder(settings)
        self.query_linear = nn.Linear(settings.hidden, settings.hidden)
        self.start = nn.Conv1d(1, 1, settings.span_kernel, padding=settings.span_kernel // 2, bias=False)
        self.end = nn.Conv1d(1, 1, settings.span_kernel, padding=settings.span_kernel // 2, bias=False)

    def loss(self, encoder: VideoEncoder, batch: RetrievalBatch, options: LossOptions) -> Tensor:
        """Return the weighted sum of the losses of ranks and of spans."""
        frames = encoder(batch.video)
        queries = self.encode_queries(encoder, batch.queries, batch.query_mask)
        scores = video_scores(queries, frames, batch.video.frame_mask)
        loss = options.rank_weight * sum(rank_losses(scores, batch.query_video, options), start=scores.new_zeros(()))
        if options.span_weight and not (self.training and torch.rand(()) <= options.skip_spans):
            own = batch.query_video
            loss = loss + options.span_weight * span_loss(self.span_logits(queries, frames[own], batch.video.frame_mask[own]), batch.spans)
        return loss

    def predict(self, encoder: VideoEncoder, batch: RetrievalBatch) -> RetrievalScores:
        """Return the scores of all queries with all videos of the batch."""
        index = VideoIndex((encoder(batch.video),), batch.video.frame_mask)
        return self.score(self.encode_queries(encoder, batch.queries, batch.query_mask), index.streams[0], index.mask)

    def encode_queries(self, encoder: VideoEncoder, tokens: Tensor, mask: Tensor) -> Tensor:
        """Return (Q, H) of queries (Q, T)."""
        vectors: Tensor = self.query_encoder(encoder.encode_text(tokens, mask), mask)
        return vectors

    def score(self, queries: Tensor, frames: Tensor, mask: Tensor, *, scale: float = RANKING_SCALE) -> RetrievalScores:
        """Return the scores of all queries (Q, H) with all videos (N, V, H)."""
        starts, ends = self.cross_span_logits(queries, frames, mask)
        weights = (scale * video_scores(queries, frames, mask).float()).exp()
        return RetrievalScores(weights, starts.softmax(-1), ends.softmax(-1))

    def span_logits(self, queries: Tensor, frames: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits (Q, V) of start and end. Args: frames: (Q, V, H), of the query's own video."""
        return self._convolve(torch.einsum("qh,qvh->qv", self.query_linear(queries), frames), mask)

    def cross_span_logits(self, queries: Tensor, frames: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits (Q, N, V) of all pairs. Args: frames: (N, V, H)."""
        return self._convolve(torch.einsum("qh,nvh->qnv", self.query_linear(queries), frames), mask.expand(len(queries), -1, -1))

    def _convolve(self, similarity: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        rows = similarity.masked_fill(~mask, 0.0).flatten(0, -2)[:, None]
        starts, ends = (layer(rows).view_as(similarity).masked_fill(~mask, HIDDEN_SCORE) for layer in (self.start, self.end))
        return starts, ends


def video_scores(queries: Tensor, frames: Tensor, mask: Tensor) -> Tensor:
    """Return (Q, N): the largest cosine of a query (Q, H) and a frame of a video (N, V, H)."""
    queries = functional.normalize(queries, dim=-1, eps=COSINE_EPS)
    frames = functional.normalize(frames, dim=-1, eps=COSINE_EPS)
    return torch.einsum("qh,nvh->qnv", queries, frames).masked_fill(~mask, HIDDEN_SCORE).amax(dim=-1)


def rank_losses(scores: Tensor, own: Tensor, options: LossOptions) -> tuple[Tensor, Tensor]:
    """Return the hinge losses against other videos, and against queries of other videos, each the mean over negatives, then queries.

    Args:
        scores: (Q, N) cosines.
        own: (Q,) the video of each query.
    """
    right = scores.gather(1, own[:, None])
    other_video = own[:, None] != torch.arange(scores.shape[1], device=own.device)
    other_query = own[:, None] != own
    by_video = _hinge(right, scores, other_video, options)
    by_query = _hinge(right, scores.T[own], other_query, options)
    return by_video, by_query


def _hinge(right: Tensor, others: Tensor, negative: Tensor, options: LossOptions) -> Tensor:
    """Return the loss of (Q, 1) against (Q, M) where `negative` is True."""
    ranked, order = others.masked_fill(~negative, float("-inf")).sort(dim=1, descending=True)
    losses = (options.margin + ranked - right).clamp(min=0.0)
    if options.hard_negatives:
        places = torch.arange(losses.shape[1], device=losses.device)
        losses = losses * torch.where(places < options.hard_pool, options.hard_weight, options.easy_weight)
    return mean_of(losses, negative.gather(1, order)).mean()


def span_loss(logits: tuple[Tensor, Tensor], spans: Tensor) -> Tensor:
    """Return the cross-entropy of the start plus that of the end, the mean over known ones; 0 where none is known.

    Args: spans: (Q, 2); -1: not known.
    """
    known = spans[:, 0] != NOTHING
    if not known.any():
        return logits[0].new_zeros(())
    parts = [functional.cross_entropy(logit[known], spans[known, side]) for side, logit in enumerate(logits)]
    return parts[0] + parts[1]
