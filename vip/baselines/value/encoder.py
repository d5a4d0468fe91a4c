"""The encoder of HERO: sentences with their frames, then frames with one another (Li et al. 2020, "HERO"; Li et al. 2021, section 4.1).

    each sentence with its frames  →  cross-modal transformer  →  frames that have read
    + frames, projected            →  temporal transformer     →  one vector a frame

Frames of a sentence have a place in it, words another; the result of a frame is added to what it was. Without video the first token of the
sentence stands for all of its frames. Queries and questions go through the cross-modal transformer as text alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from vip.baselines.value.batches import PAD
from vip.baselines.value.interface import HeroSettings, VideoBatch
from vip.baselines.value.layers import MLP, NORM_EPS, Projection, Transformer

TYPES, TYPE = 2, 1
"""Rows of the table of types, and the one that all places have: model/embed.py takes 1 for words and for frames."""


class TextEmbeddings(nn.Module):
    """Words and their places: `SubEmbeddings` of model/embed.py."""

    def __init__(self, settings: HeroSettings, *, has_words: bool = True) -> None:
        super().__init__()
        self.words = nn.Embedding(settings.vocabulary, settings.hidden, padding_idx=PAD) if has_words else None
        self.places = nn.Embedding(settings.positions, settings.hidden)
        self.types = nn.Embedding(TYPES, settings.hidden)
        self.norm = nn.LayerNorm(settings.hidden, eps=NORM_EPS)
        self.dropout = nn.Dropout(settings.dropout)

    def forward(self, tokens: Tensor, *, first: int = 0) -> Tensor:
        """Return (B, T, H). Args: tokens: (B, T) ids; first: the place of the first one."""
        assert self.words is not None
        return self.embed(self.words(tokens), first=first)

    def embed(self, vectors: Tensor, *, first: int = 0) -> Tensor:
        """Return vectors (B, T, H) with their places."""
        last = self.places.num_embeddings - 1
        places = torch.arange(first, first + vectors.shape[1], device=vectors.device).clamp(max=last)
        result: Tensor = self.dropout(self.norm(vectors + self.places(places) + self.types.weight[TYPE]))
        return result


class FrameEmbeddings(nn.Module):
    """Features of frames and their places in a sentence: `ImageEmbeddings` of model/embed.py."""

    def __init__(self, settings: HeroSettings) -> None:
        super().__init__()
        self.input_norm = nn.LayerNorm(settings.features, eps=NORM_EPS)
        self.linear = nn.Linear(settings.features, settings.hidden)
        self.places = nn.Embedding(settings.frame_positions, settings.hidden)
        self.mask = nn.Embedding(2, settings.features, padding_idx=0)
        self.norm = nn.LayerNorm(settings.hidden, eps=NORM_EPS)
        self.dropout = nn.Dropout(settings.dropout)

    def project(self, frames: Tensor) -> Tensor:
        """Return (…, H) of features (…, D)."""
        projected: Tensor = self.linear(self.input_norm(frames))
        return projected

    def place(self, projected: Tensor, kind: Tensor) -> Tensor:
        """Return projected frames (B, F, H) with their places. Args: kind: (H,), the vector of their type."""
        places = torch.arange(projected.shape[1], device=projected.device).clamp(max=self.places.num_embeddings - 1)
        result: Tensor = self.dropout(self.norm(projected + self.places(places) + kind))
        return result


class CrossModalTransformer(nn.Module):
    """Frames and words of a sentence, each reading all others."""

    def __init__(self, settings: HeroSettings) -> None:
        super().__init__()
        self.text = TextEmbeddings(settings)
        self.frames = FrameEmbeddings(settings)
        self.transformer = Transformer(settings, settings.cross_layers)

    def forward(self, video: VideoBatch, *, masked: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the frames (S, F, H) and the words (S, T, H) of all sentences, each having read the other.

        Args: masked: (B, V) bool, frames whose features are hidden.
        """
        features = video.frames if masked is None else hide_frames(video.frames, masked, self.frames.mask)
        projected = self.frames.project(features)[video.sentence_video[:, None], video.sentence_frames]
        frames = self.frames.place(projected, self.text.types.weight[TYPE])
        frame_mask = video.sentence_frame_mask if video.has_frames else torch.zeros_like(video.sentence_frame_mask)
        places = torch.cat((frames, self.text(video.sentences)), dim=1)
        read = self.transformer(places, torch.cat((frame_mask, video.sentence_mask), dim=1))
        count = frames.shape[1]
        return read[:, :count], read[:, count:]

    def encode_text(self, tokens: Tensor, mask: Tensor, *, first: int = 0) -> Tensor:
        """Return (B, T, H) of texts alone."""
        read: Tensor = self.transformer(self.text(tokens, first=first), mask)
        return read


def hide_frames(frames: Tensor, masked: Tensor, vectors: nn.Embedding) -> Tensor:
    """Return features (B, V, D) with one learned vector in place of those that are masked."""
    return torch.where(masked[..., None], vectors.weight[1], frames)


class TemporalTransformer(nn.Module):
    """Frames of a video, each reading all others: `TemporalTrm` of model/encoder.py."""

    def __init__(self, settings: HeroSettings) -> None:
        super().__init__()
        self.places = nn.Embedding(settings.positions, settings.hidden)
        self.norm = nn.LayerNorm(settings.hidden, eps=NORM_EPS)
        self.dropout = nn.Dropout(settings.dropout)
        self.transformer = Transformer(settings, settings.temporal_layers)

    def place(self, frames: Tensor, places: Tensor | None = None) -> Tensor:
        """Return frames (B, V, H) with their places. Args: places: (B, V); None: 0, 1, 2 …"""
        if places is None:
            places = torch.arange(frames.shape[1], device=frames.device)
        result: Tensor = self.dropout(self.norm(frames + self.places(places.clamp(max=self.places.num_embeddings - 1))))
        return result


class LanguageHead(nn.Module):
    """From vectors to logits of words; the words are those of the text embeddings."""

    def __init__(self, settings: HeroSettings) -> None:
        super().__init__()
        self.linear = nn.Linear(settings.hidden, settings.hidden)
        self.norm = nn.LayerNorm(settings.hidden, eps=NORM_EPS)
        self.bias = nn.Parameter(torch.zeros(settings.vocabulary))

    def forward(self, vectors: Tensor, words: nn.Embedding) -> Tensor:
        """Return (…, vocabulary)."""
        return functional.linear(self.norm(functional.gelu(self.linear(vectors))), words.weight, self.bias)


class VideoEncoder(nn.Module, ABC):
    """What all fusions of one encoder share. `fuse` is what they differ in."""

    def __init__(self, settings: HeroSettings) -> None:
        super().__init__()
        self.cross_modal = CrossModalTransformer(settings)
        self.temporal = TemporalTransformer(settings)
        self.language_head = LanguageHead(settings)

    @property
    def words(self) -> nn.Embedding:
        """The table of words."""
        assert self.cross_modal.text.words is not None
        return self.cross_modal.text.words

    @abstractmethod
    def fuse(self, video: VideoBatch) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return vectors (B, L, H) of the video before the temporal transformer, their mask (B, L), and their places there (B, L).

        The first V are the frames. Places are None where they are 0, 1, 2 …
        """

    def forward(self, video: VideoBatch) -> Tensor:
        """Return the frames (B, V, H) after the temporal transformer."""
        fused, mask, places = self.fuse(video)
        read: Tensor = self.temporal.transformer(self.temporal.place(fused, places), mask)
        return read[:, : video.frames.shape[1]]

    def read_with(self, video: VideoBatch, texts: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return the video (B, L, H) that has read a text behind it, and its mask (B, L)."""
        fused, fused_mask, places = self.fuse(video)
        both = torch.cat((self.temporal.place(fused, places), self.cross_modal.text(texts)), dim=1)
        read = self.temporal.transformer(both, torch.cat((fused_mask, mask), dim=1))
        return read[:, : fused.shape[1]], fused_mask

    def encode_text(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Return (B, T, H) of texts alone."""
        return self.cross_modal.encode_text(tokens, mask)


class HeroEncoder(VideoEncoder):
    """HERO's: `HierarchicalVlModel` of model/model.py, with the heads of its pre-training."""

    def __init__(self, settings: HeroSettings) -> None:
        super().__init__(settings)
        self.frame_transform = Projection(settings.features, settings.hidden, settings.dropout)
        self.mask = nn.Embedding(2, settings.features, padding_idx=0)
        self.feature_head = MLP(settings.hidden, settings.hidden, settings.features)
        self.order_head = MLP(settings.hidden, 2 * settings.hidden, settings.frame_positions)

    def fuse(self, video: VideoBatch, *, masked: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return frames with what they read in their sentences. Args: masked: (B, V) bool, frames whose features are hidden."""
        frames, words = self.cross_modal(video, masked=masked)
        read = frames if video.has_frames else words[:, :1].expand_as(frames)
        features = video.frames if masked is None else hide_frames(video.frames, masked, self.mask)
        return self.frame_transform(features) + collect_frames(read, video), video.frame_mask, None


def collect_frames(read: Tensor, video: VideoBatch) -> Tensor:
    """Return (B, V, H): of each frame the sum of what it read in its sentences. Args: read: (S, F, H)."""
    videos, frames = video.frames.shape[:2]
    places = (video.sentence_video[:, None] * frames + video.sentence_frames)[video.sentence_frame_mask]
    total = read.new_zeros(videos * frames, read.shape[-1]).index_add(0, places, read[video.sentence_frame_mask])
    return total.view(videos, frames, -1)


class AlignEncoder(VideoEncoder):
    """Temporal alignment, then a sum or a concatenation: `Video_Sub_Feature_Fusion` of model/model.py (Li et al. 2021, Table 4).

    A sentence is read without frames; its vector, the largest of its words, goes to its frames.
    """

    def __init__(self, settings: HeroSettings) -> None:
        super().__init__(settings)
        self.frame_transform = Projection(settings.features, settings.hidden, settings.dropout)
        self.text_transform = Projection(settings.hidden, settings.hidden, settings.dropout)
        joined = Projection(2 * settings.hidden, settings.hidden, settings.dropout)
        self.joined_transform = joined if settings.fusion == "concat" else None

    def fuse(self, video: VideoBatch) -> tuple[Tensor, Tensor, Tensor | None]:
        sentences = pool_sentences(self, video)[:, None].expand(-1, video.sentence_frames.shape[1], -1)
        texts = self.text_transform(collect_frames(sentences, video))
        frames = self.frame_transform(video.frames)
        if self.joined_transform is None:
            return frames + texts, video.frame_mask, None
        return self.joined_transform(torch.cat((frames, texts), dim=-1)), video.frame_mask, None


def pool_sentences(encoder: VideoEncoder, video: VideoBatch) -> Tensor:
    """Return (S, H): the largest value of each dimension over the words of a sentence. Padding does not count; in the code it does."""
    read = encoder.cross_modal.encode_text(video.sentences, video.sentence_mask, first=PAD + 1)
    return read.masked_fill(~video.sentence_mask[..., None], float("-inf")).amax(dim=1)


class SequenceEncoder(VideoEncoder):
    """Frames and sentences one behind the other in the temporal transformer: `Video_Sub_Sequence_Model` of model/model.py."""

    def __init__(self, settings: HeroSettings) -> None:
        super().__init__(settings)
        self.text = TextEmbeddings(settings, has_words=False)
        self.frames = FrameEmbeddings(settings)

    def fuse(self, video: VideoBatch) -> tuple[Tensor, Tensor, Tensor | None]:
        frames = self.frames.place(self.frames.project(video.frames), self.text.types.weight[TYPE])
        sentences, mask = by_video(pool_sentences(self, video), video)
        fused = torch.cat((frames, self.text.embed(sentences, first=PAD + 1)), dim=1)
        behind = video.frame_mask.sum(1, keepdim=True) + torch.arange(sentences.shape[1], device=mask.device)
        places = torch.cat((torch.arange(frames.shape[1], device=mask.device).expand(len(frames), -1), behind), dim=1)
        return fused, torch.cat((video.frame_mask, mask), dim=1), places

    def forward(self, video: VideoBatch) -> Tensor:
        """Return the frames (B, V, H); they have had their places before, so that `TemporalTransformer.place` gives them none."""
        fused, mask, _ = self.fuse(video)
        read: Tensor = self.temporal.transformer(fused, mask)
        return read[:, : video.frames.shape[1]]


def by_video(sentences: Tensor, video: VideoBatch) -> tuple[Tensor, Tensor]:
    """Return (B, N, H): the sentences (S, H) of each video in a row of its own, and their mask (B, N)."""
    counts = torch.bincount(video.sentence_video, minlength=len(video.frames))
    firsts = counts.cumsum(0) - counts
    places = torch.arange(len(sentences), device=sentences.device) - firsts[video.sentence_video]
    width = int(counts.max())
    rows = sentences.new_zeros(len(counts), width, sentences.shape[-1])
    rows[video.sentence_video, places] = sentences
    return rows, torch.arange(width, device=sentences.device) < counts[:, None]


def make_encoder(settings: HeroSettings) -> VideoEncoder:
    """Return the encoder of a fusion."""
    kinds: dict[str, Callable[[HeroSettings], VideoEncoder]] = {
        **{"hero": HeroEncoder, "sequence": SequenceEncoder},
        **dict.fromkeys(("add", "concat"), AlignEncoder),
    }
    return kinds[settings.fusion](settings)
