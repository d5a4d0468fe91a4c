"""Models of the library transformers that are built here, small and with random weights, and saved as users find them on the hub.

Their heads are scaled so that, on one picture, scores lie on both sides of the bounds that the adapters set, and boxes differ.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch

from vip.records import Image

CLASSES = ("Person", "dog", "Traffic Light", "cup")
WORDS = ("a", "person", "dog", "red", "cup", "##s", ".", ",")
PATCH_WORDS = ("dog", "cup", "cat", "red")


def save_detr(folder: Path) -> Path:
    from transformers import DetrConfig, DetrForObjectDetection, DetrImageProcessor, ResNetConfig

    torch.manual_seed(3)
    backbone = ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], out_features=["stage2"])
    config = DetrConfig(use_timm_backbone=False, backbone_config=backbone, **_small_transformer(), num_queries=20, **_classes())
    model = DetrForObjectDetection(config)
    _enliven(model.model.decoder)
    _enliven(model.model.query_position_embeddings)
    processor = DetrImageProcessor(size={"shortest_edge": 48, "longest_edge": 96})
    _spread(model, {model.class_labels_classifier: 2, model.bbox_predictor.layers[-1]: 1}, processor(picture(), return_tensors="pt"))
    processor.save_pretrained(folder)
    return _saved(model, folder)


def save_rt_detr(folder: Path) -> Path:
    from transformers import RTDetrConfig, RTDetrForObjectDetection, RTDetrImageProcessor, RTDetrResNetConfig

    torch.manual_seed(1)
    backbone = RTDetrResNetConfig(
        embedding_size=8, hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1], layer_type="basic", out_indices=[2, 3, 4]
    )
    config = RTDetrConfig(
        backbone_config=backbone,
        **_small_transformer(),
        encoder_hidden_dim=16,
        encoder_in_channels=[8, 16, 16],
        decoder_in_channels=[16, 16, 16],
        num_queries=12,
        **_classes(),
    )
    model = RTDetrForObjectDetection(config)
    _enliven(model.model.decoder)
    decoder = model.model.decoder
    processor = RTDetrImageProcessor(size={"height": 64, "width": 64})
    _spread(model, {decoder.class_embed[-1]: 2, decoder.bbox_embed[-1].layers[-1]: 1}, processor(picture(), return_tensors="pt"))
    with torch.no_grad():
        decoder.class_embed[-1].bias -= 3  # of the many pairs of box and class it takes the best
    processor.save_pretrained(folder)
    return _saved(model, folder)


def save_yolos(folder: Path) -> Path:
    from transformers import YolosConfig, YolosForObjectDetection, YolosImageProcessor

    torch.manual_seed(0)
    config = YolosConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, image_size=[32, 32], patch_size=16, **_classes()
    )
    model = YolosForObjectDetection(config)
    with torch.no_grad():
        model.vit.embeddings.detection_tokens.normal_()
    heads = {model.class_labels_classifier.layers[-1]: 2.0, model.bbox_predictor.layers[-1]: 1.0}
    processor = YolosImageProcessor(size={"shortest_edge": 32, "longest_edge": 64})
    _spread(model, heads, processor(picture(), return_tensors="pt"))
    processor.save_pretrained(folder)
    return _saved(model, folder)


def save_owlv2(folder: Path) -> Path:
    from transformers import CLIPTokenizer, Owlv2Config, Owlv2ForObjectDetection, Owlv2ImageProcessor, Owlv2Processor

    torch.manual_seed(0)
    letters = [chr(number) for number in range(97, 123)]
    pieces = ["!", *letters, *(letter + "</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    tokenizer = CLIPTokenizer(vocab={piece: number for number, piece in enumerate(pieces)}, merges=[], pad_token="!", model_max_length=16)
    part = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    ends = {"pad_token_id": 0, "bos_token_id": len(pieces) - 2, "eos_token_id": len(pieces) - 1}
    text = {**part, **ends, "vocab_size": len(pieces), "max_position_embeddings": 16}
    config = Owlv2Config(text_config=text, vision_config={**part, "image_size": 64, "patch_size": 16}, projection_dim=16)
    model = Owlv2ForObjectDetection(config)
    with torch.no_grad():
        model.class_head.logit_scale.weight.normal_(std=4)
        model.class_head.dense0.weight.normal_()
        model.owlv2.text_model.embeddings.token_embedding.weight.normal_()
    processor = Owlv2Processor(Owlv2ImageProcessor(size={"height": 64, "width": 64}), tokenizer)
    _spread(model, {model.box_head.dense2: 1}, processor(text=["dog"], images=picture(), return_tensors="pt"))
    processor.save_pretrained(folder)
    return _saved(model, folder)


def save_grounding_dino(folder: Path) -> Path:
    from transformers import (
        GroundingDinoConfig,
        GroundingDinoForObjectDetection,
        GroundingDinoImageProcessor,
        GroundingDinoProcessor,
        SwinConfig,
    )

    torch.manual_seed(0)
    swin = SwinConfig(image_size=32, patch_size=4, embed_dim=8, depths=[1, 1], num_heads=[2, 2], window_size=2, out_indices=[1, 2])
    config = GroundingDinoConfig(
        backbone_config=swin,
        text_config={**_small_bert(), "model_type": "bert"},
        **{**_small_transformer(), "d_model": 32},
        num_queries=16,
        num_feature_levels=3,
        max_text_len=24,
        disable_custom_kernels=True,
    )
    model = GroundingDinoForObjectDetection(config)
    _enliven(model.model.decoder)
    with torch.no_grad():
        model.model.decoder.layer_norm.weight.mul_(0.3)
        model.model.text_backbone.embeddings.word_embeddings.weight.normal_()
    processor = GroundingDinoProcessor(GroundingDinoImageProcessor(size={"shortest_edge": 32, "longest_edge": 64}), _words())
    _spread(model, {model.bbox_embed[-1].layers[-1]: 1}, processor(text="dog.", images=picture(), return_tensors="pt"))
    processor.save_pretrained(folder)
    return _saved(model, folder)


def save_florence(folder: Path) -> Path:
    """It writes mostly words and places, in an order that depends on the picture."""
    from transformers import (
        CLIPImageProcessor,
        Florence2Config,
        Florence2ForConditionalGeneration,
        Florence2Processor,
        GenerationConfig,
        RobertaTokenizer,
    )

    torch.manual_seed(4)
    tokenizer = florence_tokenizer()
    vision = {
        "depths": [1, 1],
        "embed_dim": [8, 16],
        "num_heads": [2, 2],
        "num_groups": [2, 2],
        "patch_size": [7, 3],
        "patch_stride": [4, 2],
        "patch_padding": [3, 1],
        "patch_prenorm": [False, True],
        "window_size": 4,
        "projection_dim": 16,
        "drop_path_rate": 0.0,
    }
    text = {
        "model_type": "bart",
        "vocab_size": len(tokenizer),
        "d_model": 16,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 32,
        "decoder_ffn_dim": 32,
        "max_position_embeddings": 128,
        "init_std": 1.0,
    }
    config = Florence2Config(text_config=text, vision_config=vision, image_token_id=tokenizer.convert_tokens_to_ids("<image>"))
    model = Florence2ForConditionalGeneration(config)
    model.generation_config = GenerationConfig(
        bos_token_id=0, pad_token_id=1, eos_token_id=2, decoder_start_token_id=2, num_beams=3, early_stopping=True, no_repeat_ngram_size=3
    )
    _let_it_write_words_and_places(model, tokenizer)
    images = CLIPImageProcessor(size={"height": 32, "width": 32}, do_center_crop=False)
    images.image_seq_length = 17  # 4 x 4 patches and their mean
    rules = {"description_with_bboxes": {}, "pure_text": {}}
    Florence2Processor(images, tokenizer, post_processor_config=rules).save_pretrained(folder)
    assert isinstance(tokenizer, RobertaTokenizer)
    return _saved(model, folder)


def florence_tokenizer() -> Any:
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import RobertaTokenizer

    pieces = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *sorted(ByteLevel.alphabet())]
    merges = []
    for word in PATCH_WORDS:
        for end in range(2, len(word) + 1):
            merges.append((word[: end - 1], word[end - 1]))
            pieces.append(word[:end])
    tokenizer = RobertaTokenizer(
        vocab={piece: number for number, piece in enumerate(dict.fromkeys(pieces))},
        merges=merges,
        extra_special_tokens={"image_token": "<image>"},
    )
    tokenizer.add_tokens(["<od>", "</od>", "<sep>", *(f"<loc_{place}>" for place in range(1000))], special_tokens=True)
    return tokenizer


def _let_it_write_words_and_places(model: Any, tokenizer: Any) -> None:
    words = [*PATCH_WORDS, "Ġ", "s"]
    places = [f"<loc_{place}>" for place in (3, 120, 250, 333, 480, 512, 600, 777, 850, 901, 990, 999)]
    allowed = tokenizer.convert_tokens_to_ids([*words, *places])
    with torch.no_grad():
        vectors = model.get_input_embeddings().weight
        vectors.normal_(std=0.05)
        vectors[allowed] = torch.randn(len(allowed), vectors.shape[1])


def save_bert(folder: Path) -> Path:
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    _words().save_pretrained(folder)
    return _saved(BertModel(BertConfig(**_small_bert())), folder)


def picture(seed: int = 0, height: int = 60, width: int = 90) -> Image:
    """Some coloured squares, the same for a seed."""
    squares = np.random.default_rng(seed).integers(0, 256, (4, 6, 3), np.uint8)
    return np.asarray(cv2.resize(squares, (width, height), interpolation=cv2.INTER_NEAREST), np.uint8)


def _enliven(part: Any) -> None:
    """Larger weights than those a training starts with: with these all boxes of a picture are the same."""
    with torch.no_grad():
        for weight in part.parameters():
            if weight.ndim > 1:
                weight.normal_(std=0.5)


def _spread(model: Any, heads: dict[Any, float], inputs: Any) -> None:
    """Scale the last layers of heads so that each of their outputs has mean 0 and this spread over the boxes of one picture."""
    seen: dict[Any, Any] = {}
    hooks = [head.register_forward_hook(lambda module, _, output: seen.__setitem__(module, output)) for head in heads]
    with torch.no_grad():
        model.eval()(**inputs)
        for hook in hooks:
            hook.remove()
        for head, spread in heads.items():
            outputs = seen[head].flatten(0, -2)
            factor = spread / outputs.std(dim=0).clamp(min=1e-6)
            head.weight.mul_(factor[:, None])
            head.bias.copy_((head.bias - outputs.mean(dim=0)) * factor)


def _words() -> Any:
    from transformers import BertTokenizer

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    return BertTokenizer(vocab={piece: number for number, piece in enumerate(pieces)})


def _small_bert() -> dict[str, Any]:
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    return {**size, "vocab_size": 5 + len(WORDS), "max_position_embeddings": 32}


def _small_transformer() -> dict[str, Any]:
    layers = {"encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
    return {**layers, "d_model": 16, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}


def _classes() -> dict[str, Any]:
    return {"id2label": dict(enumerate(CLASSES)), "label2id": {name: number for number, name in enumerate(CLASSES)}}


def _saved(model: Any, folder: Path) -> Path:
    model.eval().save_pretrained(folder)
    return folder


SAVERS: dict[str, Callable[[Path], Path]] = {
    "detr": save_detr,
    "rt_detr": save_rt_detr,
    "yolos": save_yolos,
    "owlv2": save_owlv2,
    "grounding-dino": save_grounding_dino,
    "florence2": save_florence,
}
