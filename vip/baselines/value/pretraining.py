"""The four tasks of HERO's pre-training: their batches, and their losses (Li et al. 2020, "HERO", section 3.2).

    MLM      15 % of the words of each sentence are masked and predicted, its frames being seen
    MFM-NCE  15 % of the frames are masked; the feature of each is told from those that were not masked and from other masked ones
    FOM      15 % of the frames change places; the true place of each is predicted
    VSM      sentences of the subtitles are queries: `collate_subtitle_queries` makes the batch, `retrieval` has the loss

They are drawn in the ratio 2 : 2 : 1 : 2 (config/pretrain-tv-16gpu.json of the starter code).

≠ The code of MFM takes padding for negatives, too, and adds a vector that is never trained to frames that are not masked; that of MLM
leaves the seven padded words out of its softmax. Here none of this is so.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import exp
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from vip.baselines.value.batches import MASK, NOTHING, START, collate_retrieval, collate_videos
from vip.baselines.value.encoder import HeroEncoder, VideoEncoder
from vip.baselines.value.interface import (
    Batch,
    CollateOptions,
    FrameOrderBatch,
    HeroModel,
    LossOptions,
    MaskedFrameBatch,
    MaskedTextBatch,
    RetrievalBatch,
    RetrievalItem,
    VideoItem,
)

MASK_RATE = 0.15
"""`mask_prob`, and `random_reorder_p` of data/fom.py."""
AS_MASK, AS_RANDOM = 0.8, 0.9
"""Of the chosen words 80 % become <mask>, 10 % a random word, and 10 % stay: data/mlm.py."""
RATIOS = {"mlm": 2, "mfm-nce": 2, "fom": 1, "vsm": 2}
"""`ratio` of the tasks."""
VIDEOS_AT_ONCE = 8
"""In a batch of validation."""
QUERIES = 5
"""Of a video in VSM: `query_per_video` of data/vsm.py."""


# ---------------------------------------------------------------- batches


class PretrainingMaker:
    """Makes the batches of one of the four tasks; what is masked is drawn anew each time.

    Args:
        task: a name of `RATIOS`.
        read: the item of a video by its name.
        words, mask: as of `collate_masked_text`.
    """

    def __init__(self, task: str, read: Callable[[str], VideoItem], options: CollateOptions, *, words: range, mask: int) -> None:
        self.task, self.options = task, options
        self._read, self._words, self._mask = read, words, mask

    def batch(self, videos: Sequence[HasVideo]) -> Batch:
        """Return the batch of videos. What is drawn follows from torch's generator, as all chance of a training."""
        items, draw = [self._read(one.video) for one in videos], random.Random(int(torch.randint(2**62, ()).item()))
        match self.task:
            case "mlm":
                return collate_masked_text(items, self.options, draw, words=self._words, mask=self._mask)
            case "mfm-nce":
                return collate_masked_frames(items, self.options, draw)
            case "fom":
                return collate_frame_order(items, self.options, draw)
        return collate_subtitle_queries(items, self.options, draw)


class HasVideo(Protocol):
    """What names a video."""

    @property
    def video(self) -> str: ...


def collate_masked_text(
    items: Sequence[VideoItem], options: CollateOptions, draw: random.Random, *, words: range, mask: int = MASK
) -> MaskedTextBatch:
    """Return videos whose sentences have masked words.

    Args:
        words: ids that a random word is drawn from (`v_range` of scripts/prepro_sub.py: from "." to the last one).
        mask: the id of <mask>.
    """
    video = collate_videos(items, options)
    tokens, labels = video.sentences.clone(), torch.full_like(video.sentences, NOTHING)
    tokens[:, 0] = START  # data/mlm.py puts <s> before a sentence, and </s> elsewhere
    for row, length in enumerate(video.sentence_mask.sum(1).tolist()):
        changed, answers = mask_words(tokens[row, 1:length].tolist(), draw, words=words, mask=mask)
        tokens[row, 1:length] = torch.tensor(changed, dtype=torch.long)
        labels[row, 1:length] = torch.tensor(answers, dtype=torch.long)
    return MaskedTextBatch(replace(video, sentences=tokens), labels)


def mask_words(tokens: Sequence[int], draw: random.Random, *, words: range, mask: int = MASK) -> tuple[list[int], list[int]]:
    """Return the words with some masked, and what was there (-1 where it still stands unasked): at least one of a sentence."""
    changed, answers = list(tokens), [NOTHING] * len(tokens)
    for place, token in enumerate(tokens):
        if draw.random() >= MASK_RATE:
            continue
        answers[place] = token
        kind = draw.random()
        if kind < AS_MASK:
            changed[place] = mask
        elif kind < AS_RANDOM:
            changed[place] = draw.choice(words)
    if tokens and all(answer == NOTHING for answer in answers):
        changed[0], answers[0] = mask, tokens[0]
    return changed, answers


def collate_masked_frames(items: Sequence[VideoItem], options: CollateOptions, draw: random.Random) -> MaskedFrameBatch:
    """Return videos with masked frames: at least one of each video."""
    video = collate_videos(items, options)
    masked = torch.zeros_like(video.frame_mask)
    for row, count in enumerate(video.frame_mask.sum(1).tolist()):
        chosen = [place for place in range(count) if draw.random() < MASK_RATE] or [draw.randrange(count)]
        masked[row, chosen] = True
    return MaskedFrameBatch(video, masked)


def collate_frame_order(items: Sequence[VideoItem], options: CollateOptions, draw: random.Random) -> FrameOrderBatch:
    """Return videos with frames that change places among one another."""
    video = collate_videos(items, options)
    order = torch.arange(video.frames.shape[1]).repeat(len(items), 1)
    targets = torch.full_like(order, NOTHING)
    for row, count in enumerate(video.frame_mask.sum(1).tolist()):
        chosen = [place for place in range(count) if draw.random() < MASK_RATE]
        shuffled = draw.sample(chosen, len(chosen))
        order[row, chosen] = torch.tensor(shuffled, dtype=torch.long)
        targets[row, shuffled] = torch.tensor(chosen, dtype=torch.long)
    return FrameOrderBatch(video, order, targets)


def collate_subtitle_queries(items: Sequence[VideoItem], options: CollateOptions, draw: random.Random) -> RetrievalBatch:
    """Return videos with up to five of their sentences as queries; the sentences are taken out of the subtitles."""
    queries = []
    for item in items:
        count = min(len(item.frames), options.frames)
        said = [place for place, one in enumerate(item.sentences) if any(frame < count for frame in one.frames)]
        chosen = sorted(draw.sample(said, min(len(said), QUERIES)))
        left = tuple(replace(one, tokens=()) if place in chosen else one for place, one in enumerate(item.sentences))
        video = replace(item, sentences=left)
        found = [RetrievalItem(video, item.sentences[place].tokens, _said_in(item, place, count)) for place in chosen]
        queries += found or [RetrievalItem(video, (), None)]  # a video without subtitles is a negative of the others
    return collate_retrieval(queries, options)


def _said_in(item: VideoItem, place: int, count: int) -> tuple[int, int]:
    frames = [frame for frame in item.sentences[place].frames if frame < count]
    return frames[0], min(max(frames[0] + 1, frames[-1]), count - 1)


def scores_on(
    model: HeroModel, makers: Mapping[str, PretrainingMaker], videos: Sequence[HasVideo], options: LossOptions, *, seed: int
) -> dict[str, float]:
    """Return 100 · exp(−loss) of each task, with the same masks for the same seed; torch's generator stays as it was."""
    device = next(model.parameters()).device
    scores = {}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for task, maker in makers.items():
            batches = [videos[start : start + VIDEOS_AT_ONCE] for start in range(0, len(videos), VIDEOS_AT_ONCE)]
            losses = [model.loss(maker.batch(some).to(device), options).item() for some in batches]
            scores[task] = round(100 * exp(-sum(losses) / len(losses)), 6)
    return scores


# ---------------------------------------------------------------- losses


def masked_text_loss(encoder: VideoEncoder, batch: MaskedTextBatch) -> Tensor:
    """Return the cross-entropy of the masked words; 0 where there is none."""
    _, words = encoder.cross_modal(batch.video)
    asked = batch.labels != NOTHING
    if not asked.any():
        return torch.mul(words.sum(), 0.0)
    loss: Tensor = functional.cross_entropy(encoder.language_head(words[asked], encoder.words), batch.labels[asked])
    return loss


def masked_frame_loss(encoder: HeroEncoder, batch: MaskedFrameBatch, options: LossOptions) -> Tensor:
    """Return the noise-contrastive loss of the masked frames."""
    fused, mask, _ = encoder.fuse(batch.video, masked=batch.masked)
    frames = encoder.temporal.transformer(encoder.temporal.place(fused), mask)
    predicted = encoder.feature_head(frames[batch.masked])
    negatives = encoder.feature_head(frames[mask & ~batch.masked])
    return contrastive_loss(predicted, batch.video.frames[batch.masked], negatives, options.nce_temperature)


def contrastive_loss(predicted: Tensor, targets: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    """Return the cross-entropy of each prediction (M, D) with its own target (M, D), against other targets and negatives (K, D)."""
    logits = torch.cat((predicted @ targets.T, predicted @ negatives.T), dim=1).float() / temperature
    return functional.cross_entropy(logits, torch.arange(len(logits), device=logits.device))


def frame_order_loss(encoder: HeroEncoder, batch: FrameOrderBatch) -> Tensor:
    """Return the cross-entropy of the true places of frames that were moved; 0 where none was."""
    asked = batch.targets != NOTHING
    fused, mask, _ = encoder.fuse(batch.video)
    shuffled = torch.zeros_like(fused).scatter(1, batch.order[..., None].expand_as(fused), fused)
    frames = encoder.temporal.transformer(encoder.temporal.place(shuffled), mask)
    if not asked.any():
        return torch.mul(frames.sum(), 0.0)
    loss: Tensor = functional.cross_entropy(encoder.order_head(frames[asked]), batch.targets[asked])
    return loss
