"""SentenceBERT: the cosine of the sentence embeddings of two texts (Reimers and Gurevych 2019), by the library sentence-transformers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from vip.metrics.encoder import EncoderFiles, choose_device, score_in_batches
from vip.metrics.metric import Pair, Result, check_installed, library_version, score_mean

DEFAULT_ENCODER = "sentence-transformers/all-MiniLM-L6-v2"
"""The paper does not name its encoder."""


class SentenceBert:
    """The mean cosine of the embeddings of predicted texts and their references. A pair with an empty text scores 0.

    Args:
        encoder: a folder or a model of the hub as owner/name, for sentence-transformers.
        device: `auto`, `cpu`, `cuda`, `cuda:1`, `mps`.
        advice: how an encoder is named on the command line, where that is not by `--metric`.
    """

    name = "sentence-bert"

    def __init__(self, encoder: str = DEFAULT_ENCODER, *, device: str = "auto", advice: str = "") -> None:
        self.encoder = EncoderFiles(encoder, self.name, advice)
        self.device = device
        self.needs = ("the library sentence-transformers", f"the encoder {encoder}")

    def with_encoder(self, encoder: str) -> SentenceBert:
        """Return the metric with another encoder: a folder, or a repository of the hub."""
        return SentenceBert(encoder, device=self.device)

    @property
    def signature(self) -> str:
        """The name and what a value depends on; loads the encoder."""
        tokens = self._model.max_seq_length
        return (
            f"{self.name}|v:1|cosine|encoder:{self.encoder.identity}|tokens:{tokens}|empty:0"
            f"|device:{choose_device(self.device).partition(':')[0]}"
            f"|lib:{library_version('sentence-transformers', 'transformers', 'torch')}"
        )

    def check(self) -> None:
        check_installed(self.name, "sentence_transformers", "sentence-transformers")
        self.encoder.check()

    def score(self, pairs: Sequence[Pair[str, str]]) -> Result:
        return score_mean(pairs, lambda texts: score_in_batches(texts, self._score_batch), self.signature)

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return the embeddings of texts, float64 (N, D), rows of length 1.

        Raises:
            BackendError: as `check` does.
        """
        vectors = self._model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float64)

    def _score_batch(self, predictions: list[str], references: list[str]) -> Sequence[float]:
        mine, theirs = np.split(self.embed(predictions + references), 2)
        return [float(cosine) for cosine in (mine * theirs).sum(axis=1)]

    @cached_property
    def _model(self) -> Any:
        """The encoder, loaded."""
        self.check()
        device = choose_device(self.device)
        return self.encoder.load(lambda: _load_model(self.encoder, device))


def _load_model(encoder: EncoderFiles, device: str) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(encoder.folder or encoder.name), device=device, trust_remote_code=False)
