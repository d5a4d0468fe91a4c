"""vip.baselines.nextqa.evqa and blind_qa"""

from __future__ import annotations

import torch

from tests.baselines.nextqa.test_interface import SIZES, texts, video
from vip.baselines.nextqa.blind_qa import BlindQA, BlindQAOptions
from vip.baselines.nextqa.evqa import EVQA, EVQAOptions
from vip.baselines.nextqa.interface import VideoFeatures


def evqa(fusion: str) -> EVQA:
    torch.manual_seed(0)
    return EVQA(SIZES, EVQAOptions.model_validate({"hidden": 8, "dropout": 0.0, "fusion": fusion})).eval()


@torch.no_grad()
def test_scores_are_a_layer_of_the_last_states_of_words_and_clips() -> None:
    model, seen, pairs = evqa("add"), video(3), texts(3)
    for row in range(3):
        _, (words, _) = model.encoder.words.rnn(pairs.vectors[row : row + 1, : pairs.lengths[row]])
        _, (clips, _) = model.encoder.video(torch.cat((seen.appearance, seen.motion), dim=-1)[row : row + 1])
        torch.testing.assert_close(model(seen, pairs)[row], model.score(words[0, 0] + clips[0, 0])[0])


@torch.no_grad()
def test_added_the_video_says_nothing_about_the_options_and_multiplied_it_does() -> None:
    """What the paper's EVQA adds for the video is the same for all options of a question."""
    pairs, seen, other = texts(5), video(1).repeat(5), video(1, seed=9).repeat(5)
    for fusion, is_blind in (("add", True), ("multiply", False)):
        before, after = (scores - scores.mean() for scores in (evqa(fusion)(seen, pairs), evqa(fusion)(other, pairs)))
        assert torch.allclose(before, after, atol=1e-6) is is_blind


@torch.no_grad()
def test_blind_qa_reads_the_words_alone() -> None:
    torch.manual_seed(0)
    model, pairs = BlindQA(SIZES, BlindQAOptions(hidden=8, dropout=0.0)).eval(), texts(3)
    nothing = VideoFeatures(torch.zeros(3, 0, 0), torch.zeros(3, 0, 0))
    torch.testing.assert_close(model(video(3), pairs), model(nothing, pairs))
    assert not BlindQA.sees_video
