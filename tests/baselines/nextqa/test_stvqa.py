"""STVQA: where it looks."""

from __future__ import annotations

import pytest
import torch

from vip.baselines.nextqa.interface import InputSizes, VideoFeatures, Words
from vip.baselines.nextqa.stvqa import STVQA, STVQAOptions

SIZES = InputSizes(appearance=2, motion=2, clips=3, words=6, length=5, maps=4)
OPTIONS = STVQAOptions(hidden=8, attention=8, word_dropout=0.2, layer_dropout=0.5, map_dropout=0.2)


def given() -> tuple[VideoFeatures, Words]:
    random = torch.Generator().manual_seed(2)
    maps = torch.randn(2, 3, 4, 7, 7, generator=random)
    return VideoFeatures(maps[:, :, :2].mean(dim=(3, 4)), maps[:, :, 2:].mean(dim=(3, 4)), maps), Words(
        torch.randn(2, 5, 6, generator=random), torch.tensor([5, 2])
    )


@torch.no_grad()
def test_places_within_a_frame_may_be_exchanged_but_frames_may_not() -> None:
    torch.manual_seed(1)
    model, (video, words) = STVQA(SIZES, OPTIONS).eval(), given()
    assert video.maps is not None
    scores = model(video, words)
    within = VideoFeatures(video.appearance, video.motion, video.maps.flip(-1))
    between = VideoFeatures(video.appearance, video.motion, video.maps.flip(1))
    torch.testing.assert_close(model(within, words), scores)
    assert (model(between, words) - scores).abs().max() > 1e-6


@torch.no_grad()
def test_the_question_says_where_to_look() -> None:
    """A query and a place that agree draw all attention: the place's own vector comes out."""
    torch.manual_seed(1)
    reader, (video, _) = STVQA(SIZES, OPTIONS).eval().reader, given()
    assert video.maps is not None
    spatial = reader.spatial
    for layer in (spatial.query, spatial.places):
        layer.weight.zero_()
        layer.bias.zero_()
    spatial.places.weight[0, 0] = 1.0
    spatial.score.weight.fill_(1e4)
    looked = reader._look(video, torch.zeros(2, 16))
    places = video.maps.flatten(3)
    best = places[:, :, 0].argmax(dim=-1)
    expected = places.gather(3, best[:, :, None, None].expand(-1, -1, 4, 1))[..., 0]
    torch.testing.assert_close(looked, expected)


@torch.no_grad()
def test_the_question_is_read_again_from_where_the_video_ended_and_then_chooses_the_clips() -> None:
    """The equations of the module, with LSTMs of torch."""
    torch.manual_seed(1)
    reader, (video, words) = STVQA(SIZES, OPTIONS).eval().reader, given()
    assert video.maps is not None
    asked, row = words.vectors[:1], slice(0, 1)  # the first text fills its length
    _, (first_look, _) = reader.words.rnn(asked)
    clips = reader._look(VideoFeatures(video.appearance[row], video.motion[row], video.maps[row]), first_look.transpose(0, 1).flatten(1))
    below, (hidden_below, cell_below) = reader.clips.first(clips)
    above, (hidden_above, cell_above) = reader.clips.second(below)
    question, (states, _) = reader.words.rnn(asked, (torch.cat((hidden_below, hidden_above)), torch.cat((cell_below, cell_above))))
    state = states.transpose(0, 1).flatten(1)
    read = reader(video, words)
    torch.testing.assert_close(read.fused[row], state + reader.temporal(state, torch.cat((below, above), dim=-1)))
    torch.testing.assert_close(read.question[row], question)
    torch.testing.assert_close(read.question_state[row], states[-1])
    torch.testing.assert_close(read.video[row], above)


def test_a_video_without_maps_is_refused() -> None:
    video, words = given()
    with pytest.raises(ValueError, match="expected feature maps"):
        STVQA(SIZES, OPTIONS)(VideoFeatures(video.appearance, video.motion), words)
