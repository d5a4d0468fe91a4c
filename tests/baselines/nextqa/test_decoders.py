"""Decoders: what each begins with, and what it listens to (figure 11)."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from vip.baselines.nextqa.decoders import (
    AttQns,
    AttVid,
    DecoderOptions,
    HMEDecoder,
    Naive,
    NaiveTrans,
    QnsAns,
    TwoLayerOptions,
    UATTDecoder,
)
from vip.baselines.nextqa.interface import Decoder, Encoded, Encoder, ModelOptions, VideoFeatures, Words

SMALL: DecoderOptions = DecoderOptions(dropout=0.3)
DEEP = TwoLayerOptions(dropout=0.3, layer_dropout=0.5)


class _Encoder(Encoder):
    """The sizes of an encoder whose output is longer than its states."""

    Options = ModelOptions
    fused_size, hidden_size = 6, 4

    def forward(self, video: VideoFeatures, words: Words) -> Encoded:
        return encoded()


def encoded() -> Encoded:
    random = torch.Generator().manual_seed(1)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random)

    mask = torch.tensor([[True, True, True], [True, False, False]])
    return Encoded(
        fused=draw(2, 6),
        question_state=draw(2, 4),
        question=draw(2, 3, 4),
        question_mask=mask,
        video=draw(2, 5, 4),
        hidden=draw(2, 2, 4),
        cell=draw(2, 2, 4),
    )


def decoder(kind: type[nn.Module]) -> Decoder:
    torch.manual_seed(2)
    made = kind(_Encoder(), words=3, vocabulary=7, options=DEEP if kind in {UATTDecoder, HMEDecoder} else SMALL)
    assert isinstance(made, Decoder)
    return made.eval()


def listens_to(kind: type[nn.Module]) -> tuple[set[str], set[str]]:
    """Return the parts of the encoder's output that the first state depends on, and those that a step depends on."""
    speaker, plain, word = decoder(kind), encoded(), torch.ones(2, 3)
    names = ("fused", "question_state", "question", "video", "hidden", "cell")
    others = {name: replace(plain, **{name: getattr(plain, name) + 1}) for name in names}
    state = speaker.start(plain)
    logits, _ = speaker.step(word, state, plain)
    begins = {name for name, other in others.items() if not torch.equal(speaker.start(other).hidden, state.hidden)}
    begins |= {name for name, other in others.items() if state.cell is not None and not torch.equal(speaker.start(other).cell, state.cell)}  # type: ignore[arg-type]
    return begins, {name for name, other in others.items() if not torch.equal(speaker.step(word, state, other)[0], logits)}


@pytest.mark.parametrize(
    ("kind", "begins", "steps"),
    [
        (Naive, {"fused"}, set()),
        (NaiveTrans, {"fused"}, set()),
        (QnsAns, {"question_state"}, {"fused"}),
        (AttVid, {"fused"}, {"video"}),
        (AttQns, {"fused"}, {"question"}),
        (UATTDecoder, {"hidden", "cell"}, set()),
        (HMEDecoder, {"hidden", "cell"}, {"fused"}),
    ],
)
@torch.no_grad()
def test_a_decoder_begins_with_and_listens_to_what_the_figure_shows(kind: type[nn.Module], begins: set[str], steps: set[str]) -> None:
    assert listens_to(kind) == (begins, steps)


@pytest.mark.parametrize("kind", [Naive, NaiveTrans, QnsAns, AttVid, AttQns, UATTDecoder, HMEDecoder])
@torch.no_grad()
def test_each_step_gives_logits_and_another_state(kind: type[nn.Module]) -> None:
    speaker, given = decoder(kind), encoded()
    first = speaker.start(given)
    logits, second = speaker.step(torch.ones(2, 3), first, given)
    again, _ = speaker.step(torch.ones(2, 3), second, given)
    assert logits.shape == (2, 7)
    assert second.hidden.shape == first.hidden.shape
    assert not torch.equal(again, logits)


@torch.no_grad()
def test_words_behind_the_end_of_the_question_are_not_attended_to() -> None:
    speaker, given = decoder(AttQns), encoded()
    other = replace(given, question=torch.where(given.question_mask[..., None], given.question, torch.tensor(9.0)))
    state, word = speaker.start(given), torch.ones(2, 3)
    assert torch.equal(speaker.step(word, state, other)[0], speaker.step(word, state, given)[0])


def test_an_encoder_without_states_needs_another_decoder() -> None:
    with pytest.raises(ValueError, match=r"got none\. Choose another decoder"):
        decoder(HMEDecoder).start(replace(encoded(), hidden=None))
