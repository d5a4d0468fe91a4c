"""HME: the sizes of its memories, and what is written to them."""

from __future__ import annotations

import pytest
import torch

from vip.baselines.nextqa.hme import HME, HMEOptions, TwoStreamMemory, WordMemory
from vip.baselines.nextqa.interface import InputSizes

OPTIONS = {"hidden": 8, "attention": 8, "video_memory": 0, "word_memory": 0, "steps": 3, "fusion_dropout": 0.2}
OPTIONS |= {"word_dropout": 0.2, "layer_dropout": 0.5}


@pytest.mark.parametrize(("changes", "places"), [({}, (16, 37)), ({"video_memory": 5, "word_memory": 9}, (5, 9))])
def test_memories_have_a_place_a_clip_and_a_word_unless_set(changes: dict[str, int], places: tuple[int, int]) -> None:
    sizes = InputSizes(appearance=6, motion=5, clips=16, words=7, length=37)
    reader = HME(sizes, HMEOptions(**{**OPTIONS, **changes})).reader
    assert (reader.video_memory.places, reader.word_memory.places) == places
    assert reader.video_memory.read.out_features == places[0]
    assert reader.word_memory.write.out_features == places[1]


@torch.no_grad()
def test_the_first_step_of_the_words_reads_nothing() -> None:
    torch.manual_seed(1)
    memory, words = WordMemory(4, 3), torch.randn(1, 1, 4)
    nothing = torch.zeros(4)
    torch.testing.assert_close(memory(words)[0, 0], torch.relu(memory.state(torch.cat((words[0, 0], nothing, nothing)))))


@torch.no_grad()
def test_the_second_word_reads_what_the_first_one_wrote() -> None:
    """Fan et al., equations 15–17, in plain numbers for two words."""
    torch.manual_seed(1)
    memory, words = WordMemory(4, 3), torch.randn(1, 2, 4)
    first, second = words[0]
    nothing = torch.zeros(4)
    joint = torch.cat((first, nothing))
    address = memory.write(joint).softmax(0)
    written = torch.sigmoid(memory.write_gate(joint)) * address[:, None] * torch.relu(memory.content(joint))
    state = torch.relu(memory.state(torch.cat((first, nothing, nothing))))
    joint = torch.cat((second, state))
    read = torch.sigmoid(memory.read_gate(joint)) * (memory.read(joint).softmax(0) @ written)
    torch.testing.assert_close(memory(words)[0, 1], torch.relu(memory.state(torch.cat((second, read, state)))))


@torch.no_grad()
def test_appearance_alone_is_written_where_motion_has_no_share() -> None:
    torch.manual_seed(1)
    memory = TwoStreamMemory(4, 3)
    memory.write.weight.zero_()
    memory.write.bias.copy_(torch.tensor([0.0, 0.0, -1e9]))
    appearance, motion, other = torch.randn(3, 1, 5, 4)
    for layer in memory.states:
        layer.weight[:, :4] = 0.0  # what comes in reaches the state by way of the memory alone
    torch.testing.assert_close(memory(appearance, motion), memory(appearance, other))
    assert (memory(appearance, motion) - memory(other, motion)).abs().max() > 1e-6
