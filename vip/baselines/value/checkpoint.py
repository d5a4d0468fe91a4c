"""Published weights of HERO: whose names they have, and how they come into the model.

A checkpoint of the authors is a pickle of tensors (`hero-tv-ht100.pt`, or `model_step_N.pt` of a training). It is read with `weights_only`,
so that nothing in it is run. `published_names` is the table of names: each tensor here, and the tensors there that it is made of. Three of
them, query, key and value of an attention, are one here. `RoBERTa` itself begins a pre-training: `load_roberta`.

What a checkpoint lacks stays as it was drawn, and is named; so is what it has too much.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vip import files, store
from vip.baselines.resumed import most_of_file, stated_bytes
from vip.baselines.value.hero import Hero
from vip.baselines.value.interface import Fusion, HeroSettings
from vip.errors import InputError
from vip.untrusted import one_line

MOST_BYTES = 8 * 2**30
ATTENTION = {
    "in_proj_weight": ("query.weight", "key.weight", "value.weight"),
    "in_proj_bias": ("query.bias", "key.bias", "value.bias"),
}
LAYER = {
    "self_attn.out_proj": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "linear1": "intermediate.dense",
    "linear2": "output.dense",
    "norm2": "output.LayerNorm",
}
"""Parts of a transformer layer, here and in the authors' model/layers.py."""
DECODER_LAYER = {
    "self_attn.out_proj": "add_norm_1.dense",
    "norm1": "add_norm_1.LayerNorm",
    "multihead_attn.out_proj": "add_norm_2.dense",
    "norm2": "add_norm_2.LayerNorm",
    "linear1": "intermidiate.dense",  # spelt so in model/videoCap.py
    "linear2": "add_norm_3.dense",
    "norm3": "add_norm_3.LayerNorm",
}
"""Parts of a layer of the caption decoder, here and in model/videoCap.py."""
PARTS = {
    "encoder.cross_modal.text.words": "v_encoder.f_encoder.embeddings.word_embeddings",
    "encoder.cross_modal.text.places": "v_encoder.f_encoder.embeddings.position_embeddings",
    "encoder.cross_modal.text.types": "v_encoder.f_encoder.embeddings.token_type_embeddings",
    "encoder.cross_modal.text.norm": "v_encoder.f_encoder.embeddings.LayerNorm",
    "encoder.cross_modal.frames.input_norm": "v_encoder.f_encoder.img_embeddings.img_LayerNorm",
    "encoder.cross_modal.frames.linear": "v_encoder.f_encoder.img_embeddings.img_linear",
    "encoder.cross_modal.frames.places": "v_encoder.f_encoder.img_embeddings.position_embeddings",
    "encoder.cross_modal.frames.mask": "v_encoder.f_encoder.img_embeddings.mask_embedding",
    "encoder.cross_modal.frames.norm": "v_encoder.f_encoder.img_embeddings.LayerNorm",
    "encoder.language_head.linear": "v_encoder.f_encoder.lm_head.dense",
    "encoder.language_head.norm": "v_encoder.f_encoder.lm_head.LayerNorm",
    "encoder.language_head": "v_encoder.f_encoder.lm_head",
    "encoder.temporal.places": "v_encoder.c_encoder.embeddings.position_embeddings",
    "encoder.temporal.norm": "v_encoder.c_encoder.embeddings.LayerNorm",
    "encoder.frame_transform.norm": "v_encoder.frame_transform.LayerNorm",
    "encoder.frame_transform.linear": "v_encoder.frame_transform.net.1",
    "encoder.mask": "v_encoder.mask_embedding",
    "encoder.feature_head.first": "v_encoder.feat_regress.net.0",
    "encoder.feature_head.norm": "v_encoder.feat_regress.net.2",
    "encoder.feature_head.second": "v_encoder.feat_regress.net.3",
    "encoder.order_head.first": "v_encoder.fom_output.linear_1",
    "encoder.order_head.norm": "v_encoder.fom_output.LayerNorm",
    "encoder.order_head.second": "v_encoder.fom_output.linear_2",
    "encoder.text_transform.norm": "v_encoder.sub_transform.LayerNorm",
    "encoder.text_transform.linear": "v_encoder.sub_transform.net.1",
    "encoder.joined_transform.norm": "v_encoder.video_sub_feature_transform.LayerNorm",
    "encoder.joined_transform.linear": "v_encoder.video_sub_feature_transform.net.1",
    "encoder.text.places": "v_encoder.sub_embeddings.position_embeddings",
    "encoder.text.types": "v_encoder.sub_embeddings.token_type_embeddings",
    "encoder.text.norm": "v_encoder.sub_embeddings.LayerNorm",
    "encoder.frames.input_norm": "v_encoder.frame_embeddings.img_LayerNorm",
    "encoder.frames.linear": "v_encoder.frame_embeddings.img_linear",
    "encoder.frames.places": "v_encoder.frame_embeddings.position_embeddings",
    "encoder.frames.mask": "v_encoder.frame_embeddings.mask_embedding",
    "encoder.frames.norm": "v_encoder.frame_embeddings.LayerNorm",
    "retrieval_head.query_encoder.projection.norm": "q_feat_attn.query_input_proj.LayerNorm",
    "retrieval_head.query_encoder.projection.linear": "q_feat_attn.query_input_proj.net.1",
    "retrieval_head.query_encoder.places": "q_feat_attn.query_pos_embed.position_embeddings",
    "retrieval_head.query_encoder.norm": "q_feat_attn.query_pos_embed.LayerNorm",
    "retrieval_head.query_encoder.attention.out_proj": "q_feat_attn.query_self_attention.output.dense",
    "retrieval_head.query_encoder.attention_norm": "q_feat_attn.query_self_attention.output.LayerNorm",
    "retrieval_head.query_encoder.pool.score": "q_feat_attn.modular_vector_mapping",
    "retrieval_head.query_linear": "video_query_linear",
    "retrieval_head.start": "video_st_predictor",
    "retrieval_head.end": "video_ed_predictor",
    "question_head.pool.score": "qa_pool",
    "question_head.answer.first": "qa_pred_head.linear_1",
    "question_head.answer.norm": "qa_pred_head.LayerNorm",
    "question_head.answer.second": "qa_pred_head.linear_2",
    "question_head.span_pool.score": "st_ed_pool",
    "question_head.span.first": "st_ed_pred_head.linear_1",
    "question_head.span.norm": "st_ed_pred_head.LayerNorm",
    "question_head.span.second": "st_ed_pred_head.linear_2",
    "caption_head.places": "position_embeddings",
    "caption_head.norm": "emb_LayerNorm",
}
"""Parts, here and there. The tensors of a part have the same names, `weight` and `bias`."""
ATTENTIONS = {
    "retrieval_head.query_encoder.attention": "q_feat_attn.query_self_attention.self",
}
"""Attentions outside of layers: whose `in_proj` is query, key and value."""
STACKS = {
    "encoder.cross_modal.transformer.layers": "v_encoder.f_encoder.encoder.layer",
    "encoder.temporal.transformer.layers": "v_encoder.c_encoder.encoder.layer",
}
DECODER = ("caption_head.layers", "decoder.layer")
UNUSED = re.compile(
    r"(.*\.)?pooler\.dense\.(weight|bias)|(.*\.)?pad|decoder\.tri_mask|(caption_)?loss_func\.one_hot"
    r"|v_encoder\.f_encoder\.lm_head\.decoder\.weight"
)
"""What the authors' models hold and never use, or hold twice: poolers, padding, masks, the table of words as the last layer."""
OLD_NAMES = {"violin_pool": "qa_pool", "violin_pred_head": "qa_pred_head"}
"""Names of HERO before VALUE: eval_videoQA.py renames them, too."""
HEAD_SIZE = 64
"""Numbers of an attention head: 768 / 12."""


# ---------------------------------------------------------------- names


def published_names(model: nn.Module) -> dict[str, tuple[str, ...]]:
    """Return of each tensor of the model the published tensors that it is made of."""
    return {name: published_name(name) for name in model.state_dict()}


def published_name(name: str) -> tuple[str, ...]:
    """Return the published tensors of one tensor.

    Raises:
        KeyError: the authors' models have none for it.
    """
    for own, theirs in STACKS.items():
        if match := re.fullmatch(re.escape(own) + r"\.(\d+)\.(.+)", name):
            return _of_layer(f"{theirs}.{match[1]}", match[2], LAYER, {"self_attn": "attention.self"})
    if match := re.fullmatch(re.escape(DECODER[0]) + r"\.(\d+)\.(.+)", name):
        attentions = {"self_attn": "self_attention", "multihead_attn": "dec_enc_attention"}
        return _of_layer(f"{DECODER[1]}.{match[1]}", match[2], DECODER_LAYER, attentions)
    part, _, tensor = name.rpartition(".")
    if tensor in ATTENTION:
        return tuple(f"{ATTENTIONS[part]}.{one}" for one in ATTENTION[tensor])
    return (f"{PARTS[part]}.{tensor}",)


def _of_layer(prefix: str, name: str, parts: Mapping[str, str], attentions: Mapping[str, str]) -> tuple[str, ...]:
    part, _, tensor = name.rpartition(".")
    if tensor in ATTENTION:
        return tuple(f"{prefix}.{attentions[part]}.{one}" for one in ATTENTION[tensor])
    return (f"{prefix}.{parts[part]}.{tensor}",)


# ---------------------------------------------------------------- loading


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What came out of a checkpoint."""

    loaded: int
    """Tensors of the model that were set."""
    missing: tuple[str, ...]
    """Published names that the model wants and the checkpoint lacks."""
    extra: tuple[str, ...]
    """Names of the checkpoint that the model has no place for; what the authors never use is left out."""

    def __str__(self) -> str:
        """Return the report as one sentence."""
        parts = [f"{self.loaded:,} tensors are loaded"]
        parts += [f"{len(self.missing):,} are missing and stay as drawn ({_shown(self.missing)})"] if self.missing else []
        parts += [f"{len(self.extra):,} have no place here ({_shown(self.extra)})"] if self.extra else []
        return "; ".join(parts) + "."


def _shown(names: tuple[str, ...]) -> str:
    """Return the parts that tensors belong to, the first three of them."""
    parts = list(dict.fromkeys(".".join(one_line(name)[:80].split(".")[:2]) for name in names))
    return ", ".join(parts[:3]) + (" …" if len(parts) > 3 else "")


def load_checkpoint(path: Path, model: Hero) -> LoadReport:
    """Put the weights of a published checkpoint into a model.

    Raises:
        InputError: it is missing or damaged, is no HERO, or its sizes are others.
    """
    return load_published(read_tensors(path), model, str(path))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a checkpoint by name. Nothing in it is run.

    Raises:
        InputError: it is missing, too large, damaged, or holds something else.
    """
    if not store.exists(path):
        raise InputError(f"There is no checkpoint {path}. Give the file that the authors publish, hero-tv-ht100.pt.")
    try:
        opened = files.open_named(path, most_bytes=MOST_BYTES)
    except OSError as exc:
        raise InputError(f"{path} cannot be read: {exc.strerror}. Give the file that the authors publish, hero-tv-ht100.pt.") from exc
    try:
        with opened as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch, about tensors that are refused below
            most = most_of_file(os.fstat(file.fileno()).st_size, MOST_BYTES)
            files.check_unpacked(file, most)
            tensors: Any = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as exc:  # a damaged pickle raises anything
        raise InputError(f"{path} holds no tensors that can be read ({one_line(str(exc))[:100]}). Download it again.") from exc
    if not isinstance(tensors, dict) or not all(isinstance(k, str) and _has_numbers(v) for k, v in tensors.items()):
        raise InputError(f"{path} holds something else than tensors by name. Give the weights of a model, not the state of a training.")
    if stated_bytes(tensors) > most:  # a small file can name a tensor of any shape
        raise InputError(f"{path} names more numbers than any checkpoint of HERO has. Give the file that the authors publish.")
    return {_renamed(name): tensor for name, tensor in tensors.items()}


def _has_numbers(value: object) -> bool:
    """Return whether this is a tensor with numbers; one of the device `meta` states its shape alone."""
    return isinstance(value, Tensor) and not value.is_meta


def _renamed(name: str) -> str:
    first, dot, rest = name.partition(".")
    return OLD_NAMES.get(first, first) + dot + rest


def settings_of(tensors: Mapping[str, Tensor], source: str, *, heads: int | None = None) -> HeroSettings:
    """Return the sizes of published weights.

    Args: heads: attention heads, which no tensor tells; None: one for each 64 numbers, as the authors have.

    Raises:
        InputError: they are no HERO.
    """
    cross = "v_encoder.f_encoder."
    try:
        words, frames = tensors[f"{cross}embeddings.word_embeddings.weight"], tensors[f"{cross}img_embeddings.img_linear.weight"]
        hidden = words.shape[1]
        decoder = _count(tensors, "decoder.layer.")
        captions = tensors.get("position_embeddings.weight")
        span = tensors.get("video_st_predictor.weight")
        return HeroSettings(
            features=frames.shape[1],
            fusion=_fusion_of(tensors),
            hidden=hidden,
            heads=heads or max(1, hidden // HEAD_SIZE),
            intermediate=len(tensors[f"{cross}encoder.layer.0.intermediate.dense.weight"]),
            cross_layers=_count(tensors, f"{cross}encoder.layer."),
            temporal_layers=_count(tensors, "v_encoder.c_encoder.encoder.layer."),
            vocabulary=-(-len(words) // 8) * 8,
            positions=len(tensors[f"{cross}embeddings.position_embeddings.weight"]),
            frame_positions=len(tensors[f"{cross}img_embeddings.position_embeddings.weight"]),
            **({"decoder_layers": decoder} if decoder else {}),
            **({} if captions is None else {"caption_positions": len(captions)}),
            **({} if span is None else {"span_kernel": span.shape[-1]}),
        )
    except (LookupError, TypeError, ValueError) as exc:
        raise InputError(f"{source} holds no HERO ({one_line(str(exc))[:100]} is missing or wrong). Give weights of HERO.") from exc


def _count(tensors: Mapping[str, Tensor], prefix: str) -> int:
    """Return how many layers there are."""
    return len({name.removeprefix(prefix).split(".")[0] for name in tensors if name.startswith(prefix)})


def _fusion_of(tensors: Mapping[str, Tensor]) -> Fusion:
    if "v_encoder.sub_embeddings.LayerNorm.weight" in tensors:
        return "sequence"
    if "v_encoder.video_sub_feature_transform.net.1.weight" in tensors:
        return "concat"
    return "add" if "v_encoder.sub_transform.net.1.weight" in tensors else "hero"


def load_published(tensors: Mapping[str, Tensor], model: Hero, source: str) -> LoadReport:
    """Put tensors with published names into a model.

    Raises:
        InputError: none fits, or one has another shape.
    """
    names = published_names(model)
    own = model.state_dict()
    found: dict[str, Tensor] = {}
    for name, theirs in names.items():
        if all(one in tensors for one in theirs):
            parts = zip(theirs, own[name].chunk(len(theirs)), strict=True)
            found[name] = torch.cat([_fitted(tensors[one], part, one, source) for one, part in parts])
    wanted = {one for theirs in names.values() for one in theirs}
    if not found:
        raise InputError(f"{source} holds no tensor of HERO, such as v_encoder.f_encoder.embeddings.word_embeddings.weight.")
    model.load_state_dict(found, strict=False)
    missing = tuple(sorted(wanted - tensors.keys()))
    extra = tuple(sorted(name for name in tensors.keys() - wanted if not UNUSED.fullmatch(name)))
    return LoadReport(len(found), missing, extra)


def _fitted(tensor: Tensor, own: Tensor, name: str, source: str) -> Tensor:
    """Return a tensor in the shape of ours: words are padded with zeros, and one type is taken for both."""
    if tensor.layout != torch.strided or not tensor.is_floating_point() or not tensor.ndim:
        raise InputError(f"{name} in {source} is no table of numbers. Give weights of HERO as the authors publish them.")
    if "token_type_embeddings" in name and len(tensor) == 1:
        tensor = tensor.expand(len(own), -1)
    if ("word_embeddings" in name or name.endswith("lm_head.bias")) and len(own) - 8 < len(tensor) < len(own):
        tensor = torch.cat((tensor, tensor.new_zeros(len(own) - len(tensor), *tensor.shape[1:])))
    if tensor.shape != own.shape:
        shapes = f"{tuple(tensor.shape)} in {source}, and {tuple(own.shape)} in these settings"
        raise InputError(f"{name} has the shape {shapes}. Set the sizes, or the features, that the checkpoint was trained with.")
    return tensor


def to_published(model: Hero) -> dict[str, Tensor]:
    """Return the weights of a model by their published names, with the table of words as the last layer, as the authors save it."""
    tensors: dict[str, Tensor] = {}
    for name, tensor in model.state_dict().items():
        theirs = published_name(name)
        tensors.update(zip(theirs, (part.clone() for part in tensor.chunk(len(theirs))), strict=True))
    tensors["v_encoder.f_encoder.lm_head.decoder.weight"] = tensors["v_encoder.f_encoder.embeddings.word_embeddings.weight"]
    return tensors


# ---------------------------------------------------------------- RoBERTa

ROBERTA = {
    "roberta.embeddings.": "v_encoder.f_encoder.embeddings.",
    "roberta.encoder.layer.": "v_encoder.f_encoder.encoder.layer.",
    "lm_head.layer_norm.": "v_encoder.f_encoder.lm_head.LayerNorm.",
    "lm_head.dense.": "v_encoder.f_encoder.lm_head.dense.",
    "lm_head.bias": "v_encoder.f_encoder.lm_head.bias",
}
"""Names of RoBERTa's tensors, and those of the cross-modal transformer."""
ROBERTA_LAYER = re.compile(r"roberta\.encoder\.layer\.([0-9]{1,4})\.")


def load_roberta(tensors: Mapping[str, Tensor], model: Hero, source: str) -> LoadReport:
    """Put a RoBERTa into the cross-modal transformer: of 12 layers every second one where that has 6 (`load_partial_checkpoint`).

    Raises:
        InputError: it is no RoBERTa, or one of another size.
    """
    own = len(model.encoder.cross_modal.transformer.layers)
    theirs = 1 + max((int(match[1]) for name in tensors if (match := ROBERTA_LAYER.match(name))), default=-1)
    gap = theirs // own
    if not gap:
        raise InputError(f"{source} holds a RoBERTa of {theirs} layers, and the cross-modal transformer has {own}. Give a larger one.")
    renamed = {}
    for name, tensor in tensors.items():
        prefix = next((one for one in ROBERTA if name.startswith(one)), None)
        if prefix is None:
            continue
        rest = name.removeprefix(prefix)
        if match := ROBERTA_LAYER.match(name):
            place, left = divmod(int(match[1]) + 1, gap)
            if left or place > own:
                continue
            rest = f"{place - 1}.{name[match.end() :]}"
        renamed[ROBERTA[prefix] + rest] = tensor
    return load_published(renamed, model, source)
