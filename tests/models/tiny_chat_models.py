"""Models of the library transformers that write, built here with random weights and saved as users find them on the hub.

They write nonsense, and each step is nearly a toss-up: an answer that is right shows that it was held to be so.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

MARKS = ("<s>", "</s>", "<pad>", "<image>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
MORE_MARKS = ("<end_of_utterance>", "<fake_token_around_image>", "<global-img>")
TEXT = "The dog jumps for a frisbee in the park. A person in red stands by the water. Focus, action, mood, objects and setting."
PARTS = """{% for message in messages %}<s>{{ message.role }}: {% if message.content is string %}{{ message.content }}{% else %}\
{% for part in message.content %}{% if part.type == 'image' %}IMAGE{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}\
<|im_end|>{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"""
LANGUAGE = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "initializer_range": 0.5,
    "tie_word_embeddings": False,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
}
VISION = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 32,
    "patch_size": 8,
    "initializer_range": 0.5,
}
UNKNOWN_TO_TOKENIZER = 9  # published models score some more tokens than there are, so that the number is a round one
LONGEST = 4096


def tokenizer(template: str | None = None) -> Any:
    """Byte-level BPE, as most models have it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=360, initial_alphabet=alphabet, special_tokens=[*MARKS, *MORE_MARKS], min_frequency=1, show_progress=False
    )
    made.train_from_iterator([TEXT], trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>", pad_token="<pad>")
    fast.chat_template = template
    return fast


def old_tokenizer(template: str | None = None) -> Any:
    """As the first Llamas have it, and with them Vicuna and LLaVA 1.5: spaces are letters, and other letters fall apart into bytes."""
    from tokenizers import Tokenizer, decoders, models, normalizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(set(TEXT.replace(" ", "\u2581")) | set('{}[]":,'))
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *letters]
    merges = [("\u2581", "d"), ("\u2581d", "o"), ("\u2581do", "g"), ("\u2581", "a"), ('"', ":"), ('"', ",")]
    pieces += ["".join(pair) for pair in merges]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    made = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    made.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(content=" ", left=1)]
    )
    fast = PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>", bos_token="<s>", eos_token="</s>")
    fast.chat_template = template
    return fast


def save_llama(folder: Path, template: str | None = PARTS) -> Path:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(1)
    words = tokenizer(template)
    words.save_pretrained(folder)
    return _saved(LlamaForCausalLM(LlamaConfig(**_language(words))), folder)


def save_old_llama(folder: Path) -> Path:
    """It has no token for padding."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(11)
    words = old_tokenizer("{{ bos_token }}{% for message in messages %}[INST] {{ message.content }} [/INST]{% endfor %}")
    words.save_pretrained(folder)
    settings = {**_language(words), "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": None}
    return _saved(LlamaForCausalLM(LlamaConfig(**settings)), folder, ends=[2])


def save_llava(folder: Path, template: str | None = PARTS.replace("IMAGE", "<image>\n"), **settings: Any) -> Path:
    from transformers import CLIPImageProcessor, CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration, LlavaProcessor

    torch.manual_seed(2)
    words = tokenizer()
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(**VISION),
        text_config=LlamaConfig(**_language(words)),
        image_token_index=words.convert_tokens_to_ids("<image>"),
        image_seq_length=16,
        vision_feature_layer=-1,
    )
    images = CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    sizes = {"patch_size": 8, "vision_feature_select_strategy": "default", "num_additional_image_tokens": 1, **settings}
    LlavaProcessor(images, words, chat_template=template, **sizes).save_pretrained(folder)
    return _saved(LlavaForConditionalGeneration(config), folder)


def save_qwen2_vl(folder: Path) -> Path:
    from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration, Qwen2VLImageProcessor, Qwen2VLProcessor, Qwen2VLVideoProcessor

    torch.manual_seed(3)
    words = tokenizer()
    ids = dict(zip(MARKS, words.convert_tokens_to_ids(list(MARKS)), strict=True))
    text = {**_language(words), "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]}}
    config = Qwen2VLConfig(
        text_config=text,
        vision_config={"depth": 1, "embed_dim": 16, "hidden_size": 32, "num_heads": 2, "mlp_ratio": 2, "patch_size": 8},
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
    )
    sizes = {"patch_size": 8, "min_pixels": 32 * 32, "max_pixels": 64 * 64}
    template = PARTS.replace("IMAGE", "<|vision_start|><|image_pad|><|vision_end|>")
    Qwen2VLProcessor(Qwen2VLImageProcessor(**sizes), words, Qwen2VLVideoProcessor(**sizes), chat_template=template).save_pretrained(folder)
    return _saved(Qwen2VLForConditionalGeneration(config), folder)


def save_qwen3_vl(folder: Path) -> Path:
    """The family of the model that `--engine transformers` takes by default."""
    from transformers import Qwen2VLImageProcessor, Qwen3VLConfig, Qwen3VLForConditionalGeneration, Qwen3VLProcessor, Qwen3VLVideoProcessor

    torch.manual_seed(11)
    words = tokenizer()
    ids = dict(zip(MARKS, words.convert_tokens_to_ids(list(MARKS)), strict=True))
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3], "mrope_interleaved": True}
    vision = {"depth": 2, "hidden_size": 16, "intermediate_size": 32, "num_heads": 2, "patch_size": 8, "out_hidden_size": 32}
    config = Qwen3VLConfig(
        text_config={**_language(words), "head_dim": 16, "rope_parameters": rope},
        vision_config={**vision, "num_position_embeddings": 16, "deepstack_visual_indexes": [0]},
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
    )
    images = Qwen2VLImageProcessor(patch_size=8, min_pixels=32 * 32, max_pixels=64 * 64)
    videos = Qwen3VLVideoProcessor(patch_size=8, size={"shortest_edge": 32 * 32, "longest_edge": 64 * 64})
    template = PARTS.replace("IMAGE", "<|vision_start|><|image_pad|><|vision_end|>")
    Qwen3VLProcessor(images, words, videos, chat_template=template).save_pretrained(folder)
    return _saved(Qwen3VLForConditionalGeneration(config), folder)


def save_smolvlm(folder: Path) -> Path:
    """SmolVLM-Instruct is an Idefics3."""
    from transformers import Idefics3Config, Idefics3ForConditionalGeneration, Idefics3ImageProcessor, Idefics3Processor

    torch.manual_seed(4)
    words = tokenizer()
    words.add_special_tokens({"additional_special_tokens": [f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)]})
    images = Idefics3ImageProcessor(size={"longest_edge": 64}, max_image_size={"longest_edge": 32})
    template = PARTS.replace("IMAGE", "<image>").replace("<|im_end|>", "<end_of_utterance>")
    processor = Idefics3Processor(images, words, image_seq_len=4, chat_template=template)
    config = Idefics3Config(
        vision_config=VISION,
        text_config={"model_type": "llama", **_language(words)},
        image_token_id=words.convert_tokens_to_ids("<image>"),
        scale_factor=2,
        pad_token_id=2,
    )
    processor.save_pretrained(folder)
    return _saved(Idefics3ForConditionalGeneration(config), folder, ends=[1, words.convert_tokens_to_ids("<end_of_utterance>")])


def save_blip(folder: Path) -> Path:
    from transformers import BertTokenizer, BlipConfig, BlipForConditionalGeneration, BlipImageProcessor, BlipProcessor

    torch.manual_seed(5)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dog", "red", "cup", "the", "park"]
    words = BertTokenizer(vocab={piece: number for number, piece in enumerate(pieces)})
    text = {**LANGUAGE, "encoder_hidden_size": 16, "vocab_size": len(pieces), "max_position_embeddings": 64}
    ends = {"bos_token_id": 2, "eos_token_id": 3, "sep_token_id": 3, "pad_token_id": 0}
    config = BlipConfig(text_config={**text, **ends}, vision_config=VISION, projection_dim=16, image_text_hidden_size=16)
    BlipProcessor(BlipImageProcessor(size={"height": 32, "width": 32}), words).save_pretrained(folder)
    model = BlipForConditionalGeneration(config)
    with torch.no_grad():
        model.text_decoder.get_output_embeddings().bias[3] += 2
    return _saved(model, folder, ends=None)


def save_blip2(folder: Path) -> Path:
    from transformers import Blip2Config, Blip2ForConditionalGeneration, Blip2Processor, BlipImageProcessor

    torch.manual_seed(6)
    words = tokenizer()
    text = {"model_type": "opt", "hidden_size": 32, "ffn_dim": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "init_std": 0.5}
    ends = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2, "word_embed_proj_dim": 32}
    asker = {**{key: value for key, value in VISION.items() if "size" in key or "num" in key}, "encoder_hidden_size": 16}
    config = Blip2Config(
        vision_config=VISION,
        qformer_config={**asker, "vocab_size": 8},
        text_config={**text, **ends, "vocab_size": len(words), "max_position_embeddings": 128},
        num_query_tokens=4,
        image_token_index=words.convert_tokens_to_ids("<image>"),
    )
    Blip2Processor(BlipImageProcessor(size={"height": 32, "width": 32}), words, num_query_tokens=4).save_pretrained(folder)
    model = Blip2ForConditionalGeneration(config)
    with torch.no_grad():
        model.query_tokens.normal_()
        model.language_projection.weight.normal_()
        model.language_model.get_output_embeddings().weight[1] *= 2
    return _saved(model, folder, ends=None)


def _language(words: Any) -> dict[str, Any]:
    return {**LANGUAGE, "vocab_size": len(words) + UNKNOWN_TO_TOKENIZER, "max_position_embeddings": LONGEST}


def _saved(model: Any, folder: Path, ends: list[int] | None = [1, 4]) -> Path:  # noqa: B006 - never changed
    """With settings as some models bring along, none of which makes an answer the likeliest one."""
    from transformers import GenerationConfig

    if ends is not None:
        model.generation_config = GenerationConfig(eos_token_id=ends, do_sample=True, temperature=1.5, top_k=5, repetition_penalty=1.3)
        with torch.no_grad():
            model.get_output_embeddings().weight[ends] *= 2  # or few texts would end before their last token
    model.eval().save_pretrained(folder)
    return folder


SAVERS: dict[str, Callable[[Path], Path]] = {
    "llava": save_llava,
    "qwen2-vl": save_qwen2_vl,
    "qwen3-vl": save_qwen3_vl,
    "smolvlm": save_smolvlm,
    "llama": save_llama,
}
