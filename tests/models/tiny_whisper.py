"""A Whisper of a few numbers that says a sentence it was built for, whatever it hears; converted by CTranslate2's own converter.

Its decoder attends to nothing: the embedding of each place is the token that comes there. Its tokenizer has Whisper's special tokens, and
stands-in for the words, so that the size is that of a multilingual model.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from ctranslate2.converters import TransformersConverter
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration, WhisperTokenizerFast
from transformers.models.whisper.tokenization_whisper import LANGUAGES

WORDS, WIDTH, PLACES = 50257, 64, 448
SPECIAL = [
    *("<|endoftext|>", "<|startoftranscript|>", *(f"<|{code}|>" for code in list(LANGUAGES)[:99])),
    *("<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"),
    *(f"<|{step / 50:.2f}|>" for step in range(1501)),
]


def build(folder: Path, tokens: Sequence[str], *, language: str = "de", scale: float = 8.0) -> Path:
    """Write a model that says these tokens, such as `<|0.00|>`, `Ġhello`, `<|1.00|>`.

    Args:
        scale: how sure it is; near 0 all tokens are as likely.
    """
    tokenizer = _tokenizer()
    ids = [tokenizer.convert_tokens_to_ids(token) for token in (*tokens, "<|endoftext|>")]
    config = WhisperConfig(
        vocab_size=len(tokenizer), d_model=WIDTH, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=8, decoder_ffn_dim=8, num_mel_bins=80, max_source_positions=1500,
        max_target_positions=PLACES,
        pad_token_id=50257, bos_token_id=50257, eos_token_id=50257, decoder_start_token_id=50258,
        suppress_tokens=[], begin_suppress_tokens=[],
    )  # fmt: skip
    torch.manual_seed(0)
    model = WhisperForConditionalGeneration(config)
    with torch.no_grad():
        for name, value in model.model.decoder.layers.named_parameters():
            if name.endswith(("out_proj.weight", "out_proj.bias", "fc2.weight", "fc2.bias")):
                value.zero_()  # nothing is added to what stands at a place
        embeddings = torch.nn.functional.normalize(torch.randn(len(tokenizer), WIDTH), dim=1)
        model.model.decoder.embed_tokens.weight.copy_(embeddings)
        model.model.decoder.layer_norm.weight.fill_(scale)
        places = model.model.decoder.embed_positions.weight
        places.zero_()
        places[0] = 100 * embeddings[tokenizer.convert_tokens_to_ids(f"<|{language}|>")]
        for place, token in enumerate(ids, 2):  # behind the start, the language and the task
            places[place] = 100 * embeddings[token]
        places[2 + len(ids) :] = 100 * embeddings[ids[-1]]
    source = folder.with_name(f"{folder.name}-transformers")
    model.save_pretrained(source)
    tokenizer.save_pretrained(source)
    WhisperFeatureExtractor().save_pretrained(source)
    TransformersConverter(str(source), copy_files=["tokenizer.json", "preprocessor_config.json"]).convert(str(folder))
    path = folder / "config.json"  # what published models take from their generation_config.json
    languages = [tokenizer.convert_tokens_to_ids(f"<|{code}|>") for code in list(LANGUAGES)[:99]]
    path.write_text(json.dumps({**json.loads(path.read_text()), "lang_ids": languages, "alignment_heads": [[0, 0]]}))
    return folder


def _tokenizer() -> Any:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = [*letters, "", "Ġhello", "Ġworld", "Ġthere"]  # by "" CTranslate2 knows a multilingual model
    words += [f"~{number}" for number in range(WORDS - len(words))]
    bare = Tokenizer(models.BPE(vocab={word: number for number, word in enumerate(words)}, merges=[]))
    bare.pre_tokenizer, bare.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    bare.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    return WhisperTokenizerFast(tokenizer_object=bare, unk_token="<|endoftext|>", bos_token="<|endoftext|>", eos_token="<|endoftext|>")
