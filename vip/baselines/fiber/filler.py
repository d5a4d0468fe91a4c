"""The models of FIBER: an encoder, and T5's decoder, which generates the phrase (Castro et al. 2022, section 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessorList
from transformers.modeling_outputs import BaseModelOutput

from vip.baselines.fiber.data import NO_LOSS, T5_BLANK, T5_NEXT, BlankItem, FillerBatch
from vip.baselines.fiber.decoding import EndBehindBlank, first_blank, log_probabilities
from vip.baselines.fiber.encoders import ENCODERS
from vip.baselines.fiber.settings import DecodingSettings, FillerSettings
from vip.baselines.learner import Learner
from vip.metrics.blank_answers import exact_match, normalized_token_f1

JudgePhrases: TypeAlias = Callable[[Sequence[tuple[str, str]]], Sequence[bool]]
"""Returns for each caption with a blank, and phrase, whether the phrase is a noun phrase there."""
SCORES = {"exact-match": exact_match, "token-f1": normalized_token_f1}


@dataclass(frozen=True, slots=True)
class FilledBlank:
    """What a model fills a blank with."""

    phrase: str
    """"" where it says nothing."""
    log_probabilities: tuple[float, ...]
    """Of the tokens of its answer, without the end of the text."""
    label_log_probabilities: tuple[float, ...] | None = None
    """Of the tokens of the label; None where that is not known."""


class Filler(Learner):
    """A model of FIBER.

    Args:
        t5: of transformers, any size.
        tokenizer: of that model.
        width: numbers a feature; 0 where the model sees no video.
    """

    def __init__(self, settings: FillerSettings, t5: Any, tokenizer: Any, width: int) -> None:
        super().__init__()
        self.settings, self.tokenizer = settings, tokenizer
        self.t5 = t5
        self.encoder = ENCODERS[settings.model](t5, settings, width)
        self._blank, self._next = tokenizer.convert_tokens_to_ids([T5_BLANK, T5_NEXT])

    def loss(self, batch: FillerBatch) -> Tensor:
        """Return the cross-entropy of the labels' tokens."""
        assert batch.labels is not None, "training items have labels"
        loss: Tensor = self.logits(batch, batch.labels)[1]
        return loss

    def frozen_names(self) -> set[str]:
        """Return the second names of tensors that T5 uses in several places: words are read and said by the same ones."""
        first = {name for name, _ in (*self.named_parameters(), *self.named_buffers())}
        return self.state_dict().keys() - first

    def logits(self, batch: FillerBatch, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return (B, L, V) of the tokens of `labels`, (B, L), each given those before it, and their mean loss."""
        hidden, mask = self.encoder(self.t5, batch)
        found = self.t5(encoder_outputs=BaseModelOutput(last_hidden_state=hidden), attention_mask=mask, labels=labels)
        return found.logits, found.loss

    def scores(self, batch: FillerBatch) -> list[float]:
        """Return the score of each phrase against all that are right, without looking for noun phrases."""
        measure = SCORES[self.settings.training.best_by]
        phrases = [beams[0] for beams in self._generate(batch)[1]]
        return [measure(phrase, item.answers or (item.label or "",)) for phrase, item in zip(phrases, batch.items, strict=True)]

    def fill(self, batch: FillerBatch, judge: JudgePhrases | None = None) -> list[FilledBlank]:
        """Return what fills each blank: of the beams the first that is a noun phrase in the caption, else the first.

        Args:
            judge: None takes the first beam.
        """
        ids, phrases = self._generate(batch)
        places = [0] * len(phrases) if judge is None else _first_noun_phrases(batch.items, phrases, judge)
        chosen = torch.stack([beams[place] for beams, place in zip(ids, places, strict=True)])
        own = self._likelihoods(batch, chosen[:, 1:])
        of_labels: Sequence[tuple[float, ...] | None] = [None] * len(phrases)
        if batch.labels is not None:
            of_labels = self._likelihoods(batch, batch.labels)
        rows = zip(phrases, places, own, of_labels, strict=True)
        return [FilledBlank(beams[place], mine, label) for beams, place, mine, label in rows]

    def _likelihoods(self, batch: FillerBatch, ids: Tensor) -> list[tuple[float, ...]]:
        pad, end = self.t5.config.pad_token_id, self.t5.config.eos_token_id
        ids = ids.masked_fill(ids == pad, NO_LOSS)
        logits, _ = self.logits(batch, ids)
        return [tuple(row) for row in log_probabilities(logits, ids, {NO_LOSS, end})]

    def _generate(self, batch: FillerBatch) -> tuple[Tensor, list[list[str]]]:
        """Return the tokens of all beams, (B, K, L), and the phrases that they say."""
        config, decoding = self.t5.config, self.settings.decoding
        hidden, mask = self.encoder(self.t5, batch)
        found = self.t5.generate(
            encoder_outputs=BaseModelOutput(last_hidden_state=hidden),
            attention_mask=mask,
            generation_config=generation_config(decoding, config),
            logits_processor=LogitsProcessorList([EndBehindBlank(self._next, config.eos_token_id)]),
        )
        ids = found.view(len(batch.items), decoding.beams, -1)
        return ids, [[self._phrase(row) for row in beams] for beams in ids.tolist()]

    def _phrase(self, ids: Sequence[int]) -> str:
        config = self.t5.config
        ends = {config.eos_token_id, config.pad_token_id}
        kept = first_blank(ids, start=config.decoder_start_token_id, blank=self._blank, next_blank=self._next, ends=ends)
        return str(self.tokenizer.decode(kept, skip_special_tokens=True)).strip()


def generation_config(decoding: DecodingSettings, config: Any) -> GenerationConfig:
    """Return how to generate; what the folder of the model says of it does not count."""
    return GenerationConfig(  # type: ignore[no-untyped-call]
        do_sample=False,
        num_beams=decoding.beams,
        num_return_sequences=decoding.beams,
        early_stopping=decoding.beams > 1,
        max_length=decoding.most_tokens,
        no_repeat_ngram_size=decoding.no_repeat,
        pad_token_id=config.pad_token_id,
        eos_token_id=config.eos_token_id,
        decoder_start_token_id=config.decoder_start_token_id,
    )


def _first_noun_phrases(items: Sequence[BlankItem], phrases: Sequence[Sequence[str]], judge: JudgePhrases) -> list[int]:
    pairs = [(item.masked, phrase) for item, beams in zip(items, phrases, strict=True) for phrase in beams]
    judged = iter(judge(pairs))
    flags = [[next(judged) for _ in beams] for beams in phrases]
    return [row.index(True) if True in row else 0 for row in flags]
