"""HME: the sizes of its memories, and what is written to them."""

from __future__ import annotations

import pytest
import torch

from vip.baselines.nextqa.hme import HME, HMEOptions, MultimodalAttention, MultiStepFusion, TwoStreamMemory, WordMemory
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
def test_words_read_what_those_before_them_wrote() -> None:
    """Fan et al., equations 15–17, in plain numbers for four words."""
    torch.manual_seed(1)
    memory, words = WordMemory(4, 3), torch.randn(1, 4, 4)
    written, state = torch.zeros(3, 4), torch.zeros(4)
    for place, word in enumerate(words[0]):
        joint = torch.cat((word, state))
        read = torch.sigmoid(memory.read_gate(joint)) * (memory.read(joint).softmax(0) @ written)
        address, content = memory.write(joint).softmax(0), torch.relu(memory.content(joint))
        written = torch.stack(
            [
                torch.sigmoid(memory.write_gate(joint)) * share * content + (1 - share) * old
                for share, old in zip(address, written, strict=True)
            ]
        )
        state = torch.relu(memory.state(torch.cat((word, read, state))))
        torch.testing.assert_close(memory(words)[0, place], state)


@torch.no_grad()
def test_clips_read_what_those_before_them_wrote_each_stream_at_addresses_of_its_own() -> None:
    """Fan et al., section 3.1, in plain numbers for three clips."""
    torch.manual_seed(1)
    memory = TwoStreamMemory(4, 3)
    appearance, motion = torch.randn(2, 1, 3, 4)
    written, state, streams = torch.zeros(3, 4), torch.zeros(4), [torch.zeros(4), torch.zeros(4)]
    for clip in range(3):
        known, seen = torch.cat((*streams, state)), (appearance[0, clip], motion[0, clip])
        read = memory.read(known).softmax(0) @ written
        keeps, *shares = memory.write(known).softmax(0)
        written = keeps * written
        for stream in range(2):
            joint = torch.cat((streams[stream], seen[stream]))
            address, content = memory.addresses[stream](joint).softmax(0), torch.relu(memory.contents[stream](joint))
            written = written + shares[stream] * torch.outer(address, content)
        state = torch.relu(memory.state(torch.cat((read, state))))
        streams = [torch.relu(memory.states[stream](torch.cat((seen[stream], read, streams[stream])))) for stream in range(2)]
        torch.testing.assert_close(memory(appearance, motion)[0, clip], state)


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


@torch.no_grad()
def test_the_fusion_looks_at_both_memories_as_often_as_it_has_steps() -> None:
    """Fan et al., section 3.3: each step begins with what the last one saw, the first with the last clip."""
    torch.manual_seed(1)
    fusion = MultiStepFusion(4, steps=3, dropout=0.0)
    start, video, words = torch.randn(1, 8), torch.randn(1, 5, 4), torch.randn(1, 6, 4)
    mask = torch.tensor([[True] * 4 + [False] * 2])
    seen, below, above = torch.tanh(fusion.start(start)), None, None
    for _ in range(3):
        below = fusion.first(seen, below)
        above = fusion.second(below[0], above)
        seen = torch.tanh(fusion.next(torch.cat((above[0], looked(fusion.attention, above[0], video, words[:, :4])), dim=-1)))
    torch.testing.assert_close(fusion(start, video, words, mask), torch.cat((below[0], above[0]), dim=-1))


def looked(attention: MultimodalAttention, state: torch.Tensor, video: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """Return what is seen of both memories, each by its own attention, and mixed by a softmax of two."""
    values, shares = [], []
    for part, memory in zip(attention.attentions, (video, words), strict=True):
        mean = part.attention(state, memory)
        values.append(part.value(mean))
        shares.append(attention.share(torch.tanh(part.key(mean) + attention.share_state(state))))
    weights = torch.cat(shares, dim=-1).softmax(-1)
    return torch.tanh(attention.from_state(state) + weights[:, :1] * values[0] + weights[:, 1:] * values[1])
