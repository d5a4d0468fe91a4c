"""Encoders that are built here, small and with random weights, and saved as users find them on the hub."""

from __future__ import annotations

import random
from pathlib import Path

import torch

WORDS = ("a", "the", "dog", "cat", "runs", "sits", "fast", "in", "park", "red", "##s", "##ing", "walk", ".", ",")
PLAIN = [word for word in WORDS if word[0].isalpha()]
POSITIONS = 40


def save_bert(folder: Path, *, knows_limit: bool = True) -> Path:
    """A BERT of three layers.

    Args:
        knows_limit: the tokenizer has the number of the model's positions.
    """
    from transformers import BertConfig, BertModel, BertTokenizer

    torch.manual_seed(1)
    vocabulary = {word: number for number, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])}
    limit = {"model_max_length": POSITIONS} if knows_limit else {}
    BertTokenizer(vocab=vocabulary, **limit).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=POSITIONS,
        initializer_range=0.5,
    )
    BertModel(config).save_pretrained(folder)
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
