"""CoMem: its cycles, and its two memories."""

from __future__ import annotations

import pytest
import torch

from vip.baselines.nextqa.co_mem import CoMem, CoMemOptions, EpisodicMemory
from vip.baselines.nextqa.interface import InputSizes, VideoFeatures, Words

SIZES = InputSizes(appearance=5, motion=5, clips=4, words=6, length=7)


def model(**changes: object) -> CoMem:
    torch.manual_seed(1)
    options = {"hidden": 8, "cell": "lstm", "cycles": 3, "word_dropout": 0.2, "layer_dropout": 0.5} | changes
    return CoMem(SIZES, CoMemOptions(**options)).eval()


def pairs() -> tuple[VideoFeatures, Words]:
    random = torch.Generator().manual_seed(2)
    appearance, motion = torch.randn(2, 3, 4, 5, generator=random)
    return VideoFeatures(appearance, motion), Words(torch.randn(3, 7, 6, generator=random), torch.tensor([7, 2, 5]))


@torch.no_grad()
def test_appearance_and_motion_exchanged_with_their_weights_give_the_same_scores() -> None:
    first, second, (video, words) = model(), model(), pairs()
    state = first.state_dict()
    exchanged = {name.replace("appearance", "*").replace("motion", "appearance").replace("*", "motion"): state[name] for name in state}
    exchanged["score.weight"] = torch.cat(state["score.weight"].chunk(2, dim=1)[::-1], dim=1)
    second.load_state_dict(exchanged)
    other = VideoFeatures(video.motion, video.appearance)
    torch.testing.assert_close(second(other, words), first(video, words))
    assert (first(other, words) - first(video, words)).abs().max() > 1e-4


@torch.no_grad()
def test_each_memory_is_read_three_times() -> None:
    read = model()
    calls: list[int] = []
    for memory in (read.reader.appearance_memory, read.reader.motion_memory):
        memory.register_forward_hook(lambda *_: calls.append(1))
    read(*pairs())
    assert len(calls) == 2 * 3


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_the_cells_of_the_paper_and_of_the_code_are_both_there(cell: str) -> None:
    read = model(cell=cell)
    kinds = {type(module).__name__ for module in read.modules()}
    assert kinds & {"LSTM", "GRU"} == {cell.upper()}


@torch.no_grad()
def test_an_episode_is_the_gated_sum_by_hand() -> None:
    """The equations of the module for three clips, in plain numbers."""
    torch.manual_seed(3)
    memory = EpisodicMemory(2)
    clips, query, before = torch.randn(3, 2), torch.tensor([0.2, 0.3]), torch.tensor([1.0, 0.0])
    first, last = memory.gate[0], memory.gate[2]
    facts = [torch.cat((clip * query, clip * before, (clip - query).abs(), (clip - before).abs())) for clip in clips]
    gates = torch.cat([last(torch.tanh(first(fact))) for fact in facts]).softmax(0)
    state = torch.zeros(2)
    for clip, gate in zip(clips, gates, strict=True):
        reset = torch.sigmoid(memory.reset_clip(clip) + memory.reset_state(state))
        state = gate * torch.tanh(memory.new_clip(clip) + reset * memory.new_state(state)) + (1 - gate) * state
    expected = torch.relu(memory.update(torch.cat((before, state, query))))
    torch.testing.assert_close(memory(clips[None], query[None], before[None])[0], expected)


class _Query(torch.nn.Module):
    """Reads nothing but the sum of both memories."""

    def forward(self, clips: torch.Tensor, query: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        return query


def test_no_gradient_flows_through_the_memories_as_they_begin() -> None:
    read = model(cycles=1).reader
    read.appearance_memory, read.motion_memory = _Query(), _Query()
    memories, *_ = read(*pairs())
    memories.sum().backward()
    assert {name.partition(".")[0] for name, one in read.named_parameters() if one.grad is not None} == {
        "words",
        "appearance_update",
        "motion_update",
    }
