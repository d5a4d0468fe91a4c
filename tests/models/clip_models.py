"""Small models of open_clip with random weights, saved as open_clip saves its own."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import open_clip
import torch
from open_clip.push_to_hf_hub import save_for_hf
from open_clip.transform import PreprocessCfg
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import PreTrainedTokenizerFast

WORDS = ["nothing", "dog", "cat", "frisbee", "face", "person", "at", "the", "left", "right", "top", "bottom", "in", "centre", "a", "jumps"]

CLIP: dict[str, Any] = {
    "embed_dim": 24,
    "vision_cfg": {"image_size": 64, "layers": 2, "width": 48, "patch_size": 16, "head_width": 16},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 48, "heads": 3, "layers": 2},
}
SIGLIP: dict[str, Any] = {  # as ViT-B-16-SigLIP.json of open_clip, smaller
    "embed_dim": 48,
    "init_logit_bias": -10,
    "custom_text": True,
    "vision_cfg": {
        "image_size": 64,
        "timm_model_name": "test_vit",
        "timm_model_pretrained": False,
        "timm_pool": "avg",
        "timm_proj": "linear",
    },
    "text_cfg": {
        "context_length": 64,
        "vocab_size": 64,
        "hf_tokenizer_name": "timm/ViT-B-16-SigLIP",
        "tokenizer_kwargs": {"clean": "canonicalize"},
        "width": 48,
        "heads": 3,
        "layers": 2,
        "no_causal_mask": True,
        "proj_bias": True,
        "pool_type": "last",
    },
}
PREPROCESSING = {
    "clip": {"resize_mode": "shortest", "interpolation": "bicubic"},
    "siglip": {"resize_mode": "squash", "interpolation": "bicubic", "mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)},
    "longest": {"resize_mode": "longest", "interpolation": "bilinear", "fill_color": 7},
}


def model(config: dict[str, Any], preprocessing: str, seed: int = 0) -> Any:
    """A model with larger random weights than open_clip begins with, so that different pictures differ."""
    torch.manual_seed(seed)
    cls = open_clip.CustomTextCLIP if config.get("custom_text") else open_clip.CLIP
    made = cls(**{key: value for key, value in config.items() if key != "custom_text"})
    with torch.no_grad():
        for name, weights in made.named_parameters():
            if weights.ndim > 1:
                weights.normal_(0, 2 / weights.shape[-1] ** 0.5 if "position" not in name else 0.02)
    open_clip.model.set_model_preprocess_cfg(made, {**asdict(PreprocessCfg()), "size": 64, **PREPROCESSING[preprocessing]})
    return made.eval()


def folder(path: Path, kind: str) -> Path:
    """A folder as open_clip saves one for a hub: `clip`, `siglip` or `longest`."""
    config = SIGLIP if kind == "siglip" else CLIP
    save_for_hf(model(config, kind), _Tokenizer(), dict(config), str(path), safe_serialization=True)
    return path


class _Tokenizer:
    """Saves a tokenizer of a few words."""

    def save_pretrained(self, path: Path) -> None:
        words = {word: number for number, word in enumerate(["<pad>", "</s>", "<unk>", *WORDS])}
        tokenizer = Tokenizer(WordLevel(words, unk_token="<unk>"))
        tokenizer.pre_tokenizer = Whitespace()
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>").save_pretrained(path)


def architecture(path: Path, name: str, config: dict[str, Any]) -> None:
    """Make an architecture known to open_clip under this name, as its users do with their own."""
    path.mkdir(exist_ok=True)
    (path / f"{name}.json").write_text(json.dumps(config))
    open_clip.add_model_config(path)
