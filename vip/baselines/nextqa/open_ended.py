"""An open-ended model, from texts to words: the words' vectors, an encoder, a decoder, their loss (section 4.3; videoqa.py of NExT-OE).

The answer is `<start> w1 … wk` with padding behind it, seven places in all. From the start on, the decoder says all of it: at each place it
is given the word before, the right one as often as `teacher_forcing` says, else its own. The loss is the cross-entropy over all places,
padding too, so that padding ends an answer. Seven places are generated; special words are left out of the text.

The authors' code pads to the longest answer of a batch, so that this one's end is not learned; in batches of 64, that is about seven
places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from vip.baselines.learner import Learner
from vip.baselines.nextqa.data import Batch, Item
from vip.baselines.nextqa.interface import Decoder, Encoder
from vip.baselines.nextqa.words import WordVectors, trained_embedding
from vip.baselines.settings import TrainingSettings
from vip.baselines.vocabulary import PAD, START, WordVocabulary, tokenize

ScoreAnswer = Callable[[Item, str], float]
"""How good an answer is, from 0 to 1."""


class OpenEndedLearner(Learner):
    """Says answers.

    Args:
        vectors: (V, E) of the answers' words, trained apart from those of the questions.
        answer_length: the most places of an answer, its start among them.
        score_answer: for the choice of the best weights.
    """

    def __init__(
        self,
        words: WordVectors,
        encoder: Encoder,
        decoder: Decoder,
        vocabulary: WordVocabulary,
        vectors: Tensor,
        settings: TrainingSettings,
        *,
        answer_length: int,
        score_answer: ScoreAnswer | None = None,
    ) -> None:
        super().__init__()
        self.words, self.encoder, self.decoder = words, encoder, decoder
        self.answer_words = trained_embedding(vectors)
        self.vocabulary, self.settings, self.answer_length = vocabulary, settings, answer_length
        self.score_answer = score_answer or exact_match

    def encode_answer(self, answer: str) -> list[int]:
        """Return the numbers of an answer's start, its words, and padding up to the length of all answers."""
        numbers = [START, *self.vocabulary.encode(tokenize(answer))][: self.answer_length]
        return numbers + [PAD] * (self.answer_length - len(numbers))

    def loss(self, batch: Batch) -> Tensor:
        assert batch.answers is not None
        logits = self._decode(batch, batch.answers.shape[1], batch.answers)
        return functional.cross_entropy(logits.flatten(0, 1), batch.answers.flatten())

    def answer(self, batch: Batch) -> list[str]:
        """Return the answers, the most likely word at each place."""
        said = self._decode(batch, self.answer_length, None).argmax(dim=-1)
        return [self.vocabulary.decode(row) for row in said.tolist()]

    def scores(self, batch: Batch) -> Sequence[float]:
        return [self.score_answer(item, answer) for item, answer in zip(batch.items, self.answer(batch), strict=True)]

    def frozen_names(self) -> set[str]:
        return {f"words.{name}" for name in self.words.frozen_names()}

    def _decode(self, batch: Batch, places: int, right: Tensor | None) -> Tensor:
        """Return the logits (B, places, V) of what is said; with the right answers, some of their words are given."""
        encoded = self.encoder(batch.video, self.words(batch.texts))
        state = self.decoder.start(encoded)
        word = torch.full((len(batch.items),), START, device=encoded.fused.device)
        logits = []
        for place in range(places):
            said, state = self.decoder.step(self.answer_words(word), state, encoded)
            logits.append(said)
            is_given = right is not None and bool(torch.rand(()) < self.settings.teacher_forcing)
            word = right[:, place] if right is not None and is_given else said.argmax(dim=-1)
        return torch.stack(logits, dim=1)


def exact_match(item: Item, answer: str) -> float:
    """Return 1 where the words of the answer are those of the right one."""
    return float(tokenize(answer) == tokenize(str(item.answer)))
