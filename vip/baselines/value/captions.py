"""The caption head of HERO: a decoder of two layers over the encoded frames (TVC, YC2C, VATEX-EN-C).

Words share their table with the encoder, and the last layer is its language head. A caption of a moment sees the frames of the moment
alone. The loss is the divergence from smoothed words; captions are read off greedily (`HeroForVideoCap` of model/videoCap.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from vip.baselines.value.batches import END, NOTHING, START
from vip.baselines.value.encoder import VideoEncoder
from vip.baselines.value.interface import CaptionBatch, HeroSettings, LossOptions
from vip.baselines.value.layers import NORM_EPS, make_decoder_layer

MOST_STEPS = 30
"""Words of a caption: `max_gen_step` of config/train-tvc-8gpu.json."""


class CaptionHead(nn.Module):
    """A decoder of captions."""

    def __init__(self, settings: HeroSettings) -> None:
        super().__init__()
        self.places = nn.Embedding(settings.caption_positions, settings.hidden)
        self.norm = nn.LayerNorm(settings.hidden, eps=NORM_EPS)
        self.layers = nn.ModuleList(make_decoder_layer(settings) for _ in range(settings.decoder_layers))

    def loss(self, encoder: VideoEncoder, batch: CaptionBatch, options: LossOptions) -> Tensor:
        """Return the mean over all words of the divergence from smoothed ones."""
        frames, mask = encode_moments(encoder, batch)
        logits = self.decode(encoder, batch.inputs, frames, mask)
        known = batch.targets != NOTHING
        return smoothed_loss(logits[known], batch.targets[known], options.label_smoothing)

    def predict(self, encoder: VideoEncoder, batch: CaptionBatch) -> list[tuple[int, ...]]:
        """Return the ids of each caption, without special ones."""
        frames, mask = encode_moments(encoder, batch)
        return decode_greedily(lambda words: self.decode(encoder, words, frames, mask), len(frames), frames.device)

    def decode(self, encoder: VideoEncoder, words: Tensor, frames: Tensor, mask: Tensor) -> Tensor:
        """Return the logits (C, T, vocabulary) of the word after each. Args: words: (C, T); frames: (C, V, H); mask: (C, V)."""
        length = words.shape[1]
        decoded = self.norm(encoder.words(words) + self.places(torch.arange(length, device=words.device)))
        later = torch.ones(length, length, dtype=torch.bool, device=words.device).triu(1)
        for layer in self.layers:
            decoded = layer(decoded, frames, tgt_mask=later, memory_key_padding_mask=~mask)
        logits: Tensor = encoder.language_head(decoded, encoder.words)
        return logits


def encode_moments(encoder: VideoEncoder, batch: CaptionBatch) -> tuple[Tensor, Tensor]:
    """Return the frames (C, V, H) of each caption's video, and (C, V) which of them are its moment."""
    frames = encoder(batch.video)
    places = torch.arange(frames.shape[1], device=frames.device)
    inside = (places >= batch.moments[:, :1]) & (places < batch.moments[:, 1:])
    return frames[batch.caption_video], inside & batch.video.frame_mask[batch.caption_video]


def smoothed_loss(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """Return the mean divergence of the model from words of which each keeps 1 − smoothing, the others share the rest.

    It is torch's smoothed cross-entropy, whose rest goes to all words, less the entropy of the smoothed word: 0 is the best.
    """
    others = logits.shape[-1] - 1
    loss = functional.cross_entropy(logits, targets, label_smoothing=smoothing * (others + 1) / others)
    if smoothing == 0:
        return loss
    entropy = -(1 - smoothing) * math.log(1 - smoothing) - smoothing * math.log(smoothing / others)
    return loss - entropy


def decode_greedily(
    decode: Callable[[Tensor], Tensor], count: int, device: torch.device, *, most_steps: int = MOST_STEPS
) -> list[tuple[int, ...]]:
    """Return `count` captions, word by word the likeliest, up to </s>.

    Args: decode: gives logits (C, T, vocabulary) of words (C, T).
    """
    words = torch.full((count, 1), START, device=device)
    ended = torch.zeros(count, dtype=torch.bool, device=device)
    for _ in range(most_steps):
        following = decode(words)[:, -1].argmax(-1)
        words = torch.cat((words, following[:, None]), dim=1)
        ended |= following == END
        if ended.all():
            break
    return [tuple(row[: row.index(END)] if END in row else row) for row in words[:, 1:].tolist()]
