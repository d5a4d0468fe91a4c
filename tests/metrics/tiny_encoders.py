"""Encoders that are built here, small and with random weights, and saved as users find them on the hub."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import torch

WORDS = ("a", "the", "dog", "cat", "runs", "sits", "fast", "in", "park", "red", "##s", "##ing", "walk", ".", ",")
PLAIN = [word for word in WORDS if word[0].isalpha()]
POSITIONS = 40
SMALL: Any = {
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "initializer_range": 0.5,
}


def save_bert(folder: Path, *, knows_limit: bool = True, layers: int = 3) -> Path:
    """A BERT of few layers.

    Args:
        knows_limit: the tokenizer has the number of the model's positions.
    """
    from transformers import BertConfig, BertModel, BertTokenizer

    vocabulary = {word: number for number, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])}
    tokenizer = BertTokenizer(vocab=vocabulary)
    torch.manual_seed(1)
    model = BertModel(BertConfig(vocab_size=len(vocabulary), max_position_embeddings=POSITIONS, **{**SMALL, "num_hidden_layers": layers}))
    return _save(model, tokenizer, POSITIONS if knows_limit else None, folder)


def save_roberta(folder: Path, *, knows_limit: bool = True, begins_with_space: bool = False) -> Path:
    """A RoBERTa of three layers: byte-level BPE, and two positions fewer than its table has.

    Args:
        begins_with_space: its tokenizer makes the first word of a text one like the others; that of the published models does not.
    """
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import RobertaConfig, RobertaModel, RobertaTokenizer

    pieces = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *sorted(ByteLevel.alphabet())]
    tokenizer = RobertaTokenizer(
        vocab={piece: number for number, piece in enumerate(pieces)}, merges=[], add_prefix_space=begins_with_space
    )
    torch.manual_seed(2)
    model = RobertaModel(RobertaConfig(vocab_size=len(pieces), max_position_embeddings=POSITIONS + 2, pad_token_id=1, **SMALL))
    return _save(model, tokenizer, POSITIONS if knows_limit else None, folder)


def _save(model: Any, tokenizer: Any, limit: int | None, folder: Path) -> Path:
    if limit is not None:
        tokenizer.model_max_length = limit
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    return folder


def save_sentence_bert(folder: Path) -> Path:
    """The same BERT with mean pooling, as sentence-transformers saves it."""
    from sentence_transformers import SentenceTransformer

    SentenceTransformer(str(save_bert(folder / "bert")), device="cpu").save(str(folder / "saved"))  # it adds the pooling
    return folder / "saved"


def texts(count: int, seed: int, longest: int = 20) -> list[str]:
    """Texts that the tokenizer knows, some of them the same."""
    chosen = random.Random(seed)
    return [" ".join(chosen.choices(PLAIN, k=chosen.randint(1, longest))) for _ in range(count)]
