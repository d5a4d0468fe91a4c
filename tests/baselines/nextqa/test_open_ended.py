"""vip.baselines.nextqa.open_ended"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from vip.baselines.nextqa.data import Batch, Collator, Item
from vip.baselines.nextqa.interface import Decoder, DecoderState, Encoded, Encoder, VideoFeatures, Words
from vip.baselines.nextqa.open_ended import OpenEndedLearner, exact_match
from vip.baselines.nextqa.words import EmbeddedWords
from vip.baselines.settings import TrainingSettings, WordSettings
from vip.baselines.vocabulary import SPECIAL, WordVocabulary

VOCABULARY = WordVocabulary((*SPECIAL, "the", "dog", "barks", "loudly"))
SIZE = len(VOCABULARY)
WORDS = WordSettings(size=SIZE, length=5, part_length=5, least_count=1, layer=0, answer_length=4)


class Nothing(Encoder):
    fused_size = hidden_size = 1

    def forward(self, video: VideoFeatures, words: Words) -> Encoded:
        one = torch.zeros(len(words.lengths), 1)
        return Encoded(fused=one, question_state=one, question=one[:, None], question_mask=words.mask, video=one[:, None])


class Counter(Decoder):
    """Says the word behind the one it is given, and notes what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[list[int]] = []

    def start(self, encoded: Encoded) -> DecoderState:
        return DecoderState(encoded.fused[None])

    def step(self, word: Tensor, state: DecoderState, encoded: Encoded) -> tuple[Tensor, DecoderState]:
        self.given.append(word.argmax(dim=1).tolist())
        return word.roll(1, dims=1) * 5, state


def learner(teacher_forcing: float = 0.5) -> OpenEndedLearner:
    settings = TrainingSettings(
        **{"loss": "cross-entropy", "margin": 1, "learning_rate": 1, "bert_learning_rate": 1, "batch": 2, "epochs": 1},
        **{"plateau_factor": 0.5, "plateau_patience": 1, "seed": 0, "best_by": "exact-match", "teacher_forcing": teacher_forcing},
    )
    words = EmbeddedWords(VOCABULARY, WORDS, torch.eye(SIZE))
    return OpenEndedLearner(words, Nothing(), Counter(), VOCABULARY, torch.eye(SIZE), settings, answer_length=4)


def batch_of(model: OpenEndedLearner, *answers: str) -> Batch:
    items = [Item(str(place), "v", "the dog", (), answer) for place, answer in enumerate(answers)]
    return Collator(model.words.prepare, None, model.encode_answer)(items)


def test_an_answer_has_a_start_and_padding_up_to_its_length() -> None:
    model = learner()
    assert batch_of(model, "dog", "the dog barks loudly").answers.tolist() == [[1, 5, 0, 0], [1, 4, 5, 6]]  # type: ignore[union-attr]


def test_the_right_word_before_is_given_as_often_as_said() -> None:
    always, never = learner(1.0), learner(0.0)
    for model in (always, never):
        model.loss(batch_of(model, "dog", "the dog"))
    assert always.decoder.given == [[1, 1], [1, 1], [5, 4], [0, 5]]
    assert never.decoder.given == [[1, 1], [2, 2], [3, 3], [4, 4]]


def test_the_loss_is_the_cross_entropy_over_all_places_and_padding() -> None:
    model = learner(1.0)
    batch = batch_of(model, "dog")
    logits = 5 * torch.eye(SIZE)[[2, 2, 6, 1]]  # behind <start>, <start>, dog and padding
    expected = -logits.log_softmax(dim=1)[range(4), [1, 5, 0, 0]].mean()
    torch.testing.assert_close(model.loss(batch), expected)


def test_as_many_places_are_generated_and_special_words_are_left_out() -> None:
    model = learner()
    assert model.answer(batch_of(model, "dog", "the")) == ["the dog", "the dog"]  # <end> <unk> the dog
    assert len(model.decoder.given) == 4


def test_answers_are_scored_by_their_words() -> None:
    item = Item("1", "v", "what", (), "The dog")
    assert (exact_match(item, "the dog"), exact_match(item, "dog"), exact_match(item, "")) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize("ratio", [0.5])
def test_teacher_forcing_is_drawn_by_the_seed(ratio: float) -> None:
    seen = []
    for _ in range(2):
        model = learner(ratio)
        torch.manual_seed(3)
        for _ in range(5):
            model.loss(batch_of(model, "dog"))
        seen.append(model.decoder.given)
    assert seen[0] == seen[1]
    assert [2] in seen[0]
    assert [5] in seen[0]
