"""A T5 as small as can be with random weights, captions whose blank the video alone tells, and features of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vip.baselines.fiber.data import BLANK, BlankItem
from vip.baselines.fiber.video import Clip

WORDS = ("a", "the", "dog", "cat", "boy", "girl", "runs", "in", "park", "Two", "of", "them", "ball", "is", "thrown", ".", "here")
THINGS = ("a dog", "a cat", "a boy", "a girl")
WIDTH = 8


def write_t5(folder: Path, *, seed: int = 0, layers: int = 2, dropout: float = 0.0) -> Path:
    """Write a T5 and its tokenizer, as save_pretrained() does."""
    import torch
    from tokenizers import Tokenizer, pre_tokenizers
    from tokenizers.models import WordLevel
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    extra = [f"<extra_id_{number}>" for number in range(4)]
    words = {word: number for number, word in enumerate(["<pad>", "</s>", "<unk>", *extra, *WORDS])}
    tokenizer = Tokenizer(WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = TemplateProcessing(single="$A </s>", special_tokens=[("</s>", words["</s>"])])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", additional_special_tokens=extra
    )
    fast.save_pretrained(folder)
    torch.manual_seed(seed)
    config = T5Config(
        vocab_size=len(words),
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=layers,
        num_decoder_layers=layers,
        num_heads=4,
        dropout_rate=dropout,
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
        feed_forward_proj="gated-gelu",
    )
    T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder


def make_items(count: int, *, first: int = 0, seed: int = 0) -> list[BlankItem]:
    """Return captions that are all the same but for what fills them."""
    random = np.random.default_rng([seed, first])
    items = []
    for number in range(first, first + count):
        label = THINGS[int(random.integers(len(THINGS)))]
        items.append(BlankItem(f"v{number}", Clip(f"v{number}", 0, 10), f"{BLANK} runs in the park .", label, (label,)))
    return items


def write_npy(folder: Path, items: Sequence[BlankItem], *, features: int = 5, width: int = WIDTH) -> Path:
    """Write features in which each clip shows its label, as VATEX's files are."""
    random, shapes = np.random.default_rng(1), np.random.default_rng(2).normal(size=(len(THINGS), width))
    folder.mkdir(parents=True, exist_ok=True)
    for item in items:
        rows: Any = shapes[THINGS.index(item.label or "")] + 0.1 * random.normal(size=(features, width))
        np.save(folder / f"{item.clip.name}.npy", rows[None].astype(np.float32))
    return folder
