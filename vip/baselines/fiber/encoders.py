"""How caption and video become what T5's decoder attends to: three encoders (Castro et al. 2022, section 4, figure 4).

In: (B, T) pieces of captions and (B, M, D) features of videos. Out: (B, L, H) and which of its places count.

The authors' code puts the video behind the padding of the longest caption of a batch; T5's positions are relative, so its answers depend
on the other captions of the batch. Here the video follows the end of its own caption.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from vip.baselines.fiber.data import FillerBatch
from vip.baselines.fiber.settings import FillerSettings

MODALITY_STD = 0.02  # as BERT's embeddings begin (Devlin et al. 2019)


def joined(text: Tensor, text_mask: Tensor, video: Tensor, video_mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return each row's text and video one behind the other, with the padding at the end: (B, T + M, H) and its mask."""
    both, mask = torch.cat([text, video], dim=1), torch.cat([text_mask, video_mask], dim=1)
    order = torch.argsort(1 - mask, dim=1, stable=True)
    return both.gather(1, order[..., None].expand_as(both)), mask.gather(1, order)


class TextEncoder(nn.Module):
    """T5's encoder over the caption."""

    def __init__(self, t5: Any, settings: FillerSettings, width: int) -> None:
        super().__init__()

    def forward(self, t5: Any, batch: FillerBatch) -> tuple[Tensor, Tensor]:
        """Return (B, T, H) and its mask."""
        return t5.get_encoder()(input_ids=batch.ids, attention_mask=batch.mask).last_hidden_state, batch.mask


class _VideoEncoder(nn.Module):
    """What both encoders with video have: the projection of features, and what says text or video."""

    def __init__(self, t5: Any, settings: FillerSettings, width: int) -> None:
        super().__init__()
        size = t5.config.d_model
        self.project = nn.Linear(width, size)
        marks = torch.randn(2, size) * MODALITY_STD if settings.options.modality_embeddings else None
        self.modalities = None if marks is None else nn.Parameter(marks)

    def _marked(self, values: Tensor, modality: int) -> Tensor:
        return values if self.modalities is None else values + self.modalities[modality]


class EarlyFusion(_VideoEncoder):
    """T5's encoder over the caption and the projected video."""

    def forward(self, t5: Any, batch: FillerBatch) -> tuple[Tensor, Tensor]:
        """Return (B, T + M, H) and its mask."""
        assert batch.video is not None
        assert batch.video_mask is not None
        text = self._marked(t5.get_input_embeddings()(batch.ids), 0)
        values, mask = joined(text, batch.mask, self._marked(self.project(batch.video), 1), batch.video_mask)
        return t5.get_encoder()(inputs_embeds=values, attention_mask=mask).last_hidden_state, mask


class LateFusion(_VideoEncoder):
    """T5's encoder over the caption, one layer over the video, and one over both."""

    def __init__(self, t5: Any, settings: FillerSettings, width: int) -> None:
        super().__init__(t5, settings, width)
        self.over_video, self.over_both = _one_layer(t5), _one_layer(t5)
        if settings.options.joint == "first-layer":
            self.over_both.encoder.block[0].load_state_dict(t5.get_encoder().block[0].state_dict())

    def forward(self, t5: Any, batch: FillerBatch) -> tuple[Tensor, Tensor]:
        """Return (B, T + M, H) and its mask."""
        assert batch.video is not None
        assert batch.video_mask is not None
        text = t5.get_encoder()(input_ids=batch.ids, attention_mask=batch.mask).last_hidden_state
        video = self.over_video(inputs_embeds=self.project(batch.video), attention_mask=batch.video_mask).last_hidden_state
        values, mask = joined(self._marked(text, 0), batch.mask, self._marked(video, 1), batch.video_mask)
        return self.over_both(inputs_embeds=values, attention_mask=mask).last_hidden_state, mask


def _one_layer(t5: Any) -> Any:
    """Return one layer of T5's kind with random weights; its table of words is empty, since it reads vectors."""
    from transformers import T5EncoderModel

    own = {"num_layers": 1, "vocab_size": 1, "eos_token_id": None, "tie_word_embeddings": False}
    config = type(t5.config)(**{**t5.config.to_dict(), **own})
    layer = T5EncoderModel(config)
    layer.shared.weight.requires_grad_(False)
    return layer


ENCODERS = {"text": TextEncoder, "early-fusion": EarlyFusion, "late-fusion": LateFusion}
