"""UATT: attention with what was read before."""

from __future__ import annotations

import torch

from tests.baselines.nextqa.test_interface import SIZES, encoder, texts, video
from vip.baselines.nextqa.interface import Words
from vip.baselines.nextqa.uatt import AttentionWithHistory, UATTEncoder


def by_hand(attention: AttentionWithHistory, queries: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Return what is read of one text, step by step as in the paper."""
    read = torch.zeros(attention.history.in_features)
    for query in queries:
        scores = [attention.score(torch.tanh(attention.query(query) + attention.places(p) + attention.history(read))) for p in places]
        weights = torch.cat(scores).softmax(dim=0)
        read = weights @ attention.places(places) + torch.tanh(attention.carry(read))
    return read


@torch.no_grad()
def test_the_recurrence_is_that_of_the_paper_and_stops_at_the_last_word() -> None:
    torch.manual_seed(1)
    attention, queries, places = AttentionWithHistory(3, 4, 5), torch.randn(2, 6, 3), torch.randn(2, 7, 4)
    lengths = [6, 2]
    mask = torch.arange(6)[None] < torch.tensor(lengths)[:, None]
    read = attention(queries, places, query_mask=mask, place_mask=None)
    for text, length in enumerate(lengths):
        torch.testing.assert_close(read[text], by_hand(attention, queries[text, :length], places[text]))


@torch.no_grad()
def test_a_decoder_begins_with_what_words_read_of_the_clips_and_clips_of_the_words() -> None:
    reader, seen, words = encoder("uatt"), video(1), Words(texts(1).vectors, torch.tensor([SIZES.length]))
    assert isinstance(reader, UATTEncoder)
    question, (_, question_cells) = reader.words(words.vectors)
    clips, (_, clip_cells) = reader.clips(torch.cat((seen.appearance, seen.motion), dim=-1))
    read, watched = by_hand(reader.words_to_video, question[0], clips[0]), by_hand(reader.clips_to_question, clips[0], question[0])
    encoded = reader(seen, words)
    assert encoded.hidden is not None
    torch.testing.assert_close(encoded.hidden[:, 0], torch.stack((read, watched)))
    torch.testing.assert_close(encoded.cell, torch.stack((clip_cells[0], question_cells[0])))  # of the forward directions
    torch.testing.assert_close((encoded.fused[0], encoded.question_state[0]), (read, watched))
    for outputs, summed in ((question, encoded.question), (clips, encoded.video)):
        torch.testing.assert_close(summed, sum(outputs.chunk(2, dim=-1)))


@torch.no_grad()
def test_the_order_of_the_words_counts() -> None:
    torch.manual_seed(1)
    attention, queries, places = AttentionWithHistory(3, 4, 5), torch.randn(1, 4, 3), torch.randn(1, 7, 4)
    plain, turned = (attention(q, places, query_mask=None, place_mask=None) for q in (queries, queries.flip(1)))
    assert (plain - turned).abs().max() > 1e-6
