"""Small examples of VALUE: videos of a few frames, a tokenizer of single letters."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vip.baselines.value.data import Example, ItemMaker
from vip.baselines.value.interface import CollateOptions
from vip.records import Vectors

WIDTH = 6
SMALL = {
    "model": {"hidden": 16, "heads": 2, "intermediate": 32, "cross_layers": 1, "temporal_layers": 1, "decoder_layers": 1}
    | {"vocabulary": 272, "positions": 66, "caption_positions": 66, "frame_positions": 20},
    "training": {"learning_rate": 1e-3, "steps": 6, "warmup_steps": 2, "validate_every": 3, "hard_negatives_from": 4},
}
"""Settings of a model that trains in a second."""


def write_tokenizer(folder: Path) -> Path:
    """Write a tokenizer of RoBERTa's form whose words are bytes."""
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    vocabulary = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    for letter in bytes_to_unicode().values():
        vocabulary[letter] = len(vocabulary)
    vocabulary["<mask>"] = len(vocabulary)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")
    return folder


@dataclass(frozen=True)
class Spoken:
    text: str
    start_s: float = 0.0
    end_s: float = 3.0


@dataclass(frozen=True)
class Channels:
    features: Vectors
    sentences: tuple[Spoken, ...]
    frames: tuple[range, ...]


def channels_of(video: str) -> Channels:
    """Return a video that its name decides: 4 to 7 frames, one sentence over the first two."""
    generator = np.random.default_rng(sum(map(ord, video)))
    features = generator.standard_normal((4 + len(video) % 4, WIDTH)).astype(np.float32)
    return Channels(features, (Spoken(f"this is {video}"),), (range(2),))


def encode(text: str) -> tuple[int, ...]:
    return tuple(4 + ord(letter) % 250 for letter in text)


def make_maker(options: CollateOptions | None = None) -> ItemMaker:
    return ItemMaker(encode, channels_of, options or CollateOptions(frames=20, text_tokens=30))


def make_examples(task: str, count: int = 8, first: int = 0) -> list[Example]:
    """Return examples of a task: two of each video."""
    found = []
    for number in range(first, first + count):
        video = f"v{number // 2}"
        if task in ("tvr", "how2r", "yc2r", "vatex_en_r"):
            span = (0.0, 3.0) if task in ("tvr", "how2r") else None
            found.append(Example(f"{task}-{number}", "retrieval", video, ((f"find {number}",),), span_s=span))
        elif task in ("tvc", "yc2c", "vatex_en_c"):
            found.append(
                Example(f"{task}-{number}", "captioning", video, ((f"see {number}",),), span_s=(0.0, 3.0) if task == "tvc" else None)
            )
        elif task == "violin":
            found.append(Example(f"{task}-{number}", "qa", video, ((f"{number} it is",),), answer=number % 2))
        else:
            options = tuple((f"what {number}?", f"answer {option}") for option in range(2 if task == "vlep" else 4))
            found.append(Example(f"{task}-{number}", "qa", video, options, answer=number % len(options), span_s=(0.0, 3.0)))
    return found
