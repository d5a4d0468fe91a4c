"""A HERO that a test can train, and items that it is trained on."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from vip.baselines.value.interface import (
    CaptionItem,
    HeroModel,
    HeroSettings,
    QuestionItem,
    RetrievalItem,
    Sentence,
    VideoItem,
    build,
)

FEATURES, WORDS = 12, 72
TINY = HeroSettings(
    features=FEATURES,
    hidden=16,
    heads=2,
    intermediate=32,
    cross_layers=2,
    temporal_layers=1,
    decoder_layers=2,
    vocabulary=WORDS,
    positions=64,
    caption_positions=32,
    frame_positions=16,
)
FUSIONS = ("hero", "sequence", "add", "concat", "two-stream")


def tiny(*, seed: int = 0, spread: float | None = None, **changed: Any) -> HeroModel:
    """Return a model. Args: spread: of its weights, larger than they are drawn, so that no part of a sum is lost in rounding."""
    torch.manual_seed(seed)
    model = build(TINY.model_copy(update=changed))
    if spread is not None:
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=spread)
    return model.eval()


def video(name: str, count: int, *sentences: tuple[tuple[int, ...], tuple[int, ...]]) -> VideoItem:
    """Return a video of `count` frames whose features are drawn by its name."""
    rng = np.random.default_rng(sum(map(ord, name)))
    return VideoItem(name, rng.normal(size=(count, FEATURES)).astype(np.float32), tuple(Sentence(*one) for one in sentences))


LONG = video("long", 9, ((5, 6, 7), (0, 1)), ((8,), (1, 2, 3)), ((9, 10), ()), ((11,), (7, 8)))
SHORT = video("short", 4, ((12, 13), (0, 1, 2)))
SILENT = video("silent", 6)

QUERIES = (
    RetrievalItem(LONG, (20, 21), (1, 4)),
    RetrievalItem(LONG, (22,), (0, 2)),
    RetrievalItem(SHORT, (23, 24, 25), (0, 3)),
    RetrievalItem(SILENT, (26,), None),
)
QUESTIONS = (
    QuestionItem(LONG, (((30, 31), (32,)), ((30, 31), (33, 34)), ((30, 31), (35,))), 1, (1, 2)),
    QuestionItem(SHORT, (((36,), (32,)), ((36,), (33,)), ((36,), (34,))), 2, None),
)
STATEMENTS = (QuestionItem(LONG, (((40, 41, 42),),), 1), QuestionItem(SHORT, (((43,),),), 0))
CAPTIONS = (CaptionItem(LONG, (1, 3), (50, 51)), CaptionItem(LONG, (4, 9), (52,)), CaptionItem(SHORT, None, (53, 54, 55)))
