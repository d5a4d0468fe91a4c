"""HME: memories of the video and of the question that are written and read, and a fusion in three steps (Fan et al. 2019; Xiao et al.
2021, section 4.1.2).

    A, M = two LSTMs over the clips, one above the other, for appearance and for motion;  q = two-layer LSTM over the words
    a, m = temporal attention of q over A, over M (outputs of both layers)
    V    = memory of 16 places over the upper outputs of A and M, step by step        (`TwoStreamMemory`)
    Q    = memory of 37 places over the outputs of the words, step by step            (`WordMemory`, Fan et al. equations 15–17)
    s    = two LSTM cells that look three times at V and Q                            (`MultiStepFusion`)
    score = w · [tanh W_v a; tanh W_v m; tanh W_s s]                                  open-ended: a linear layer to 2H instead

Where paper and code differ:
- W_v is one layer for appearance and motion in the code (a second one is made and never used). Built: one.
- The code runs one video after the other; here all at once. Words behind the end of a question are left out in both.
- Open-ended: Xiao et al. write that all models adapted from multiple choice answer by attention over the question (`att-qns`). Their code
  gives HME a decoder of its own: two LSTM layers, begun with the question's states (`hme-lstm`). Both are built.
- The memories have as many places as there may be clips and words: 16 and 37 (23 for open-ended). Any other number can be set.
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor, nn

from vip.baselines.nextqa.attention import AdditiveAttention, AttentionWeights
from vip.baselines.nextqa.interface import Encoded, Encoder, InputSizes, ModelOptions, MultiChoiceModel, VideoFeatures, Words
from vip.baselines.nextqa.layers import WordEncoder
from vip.baselines.nextqa.stacked import StackedEncoder, layers_side_by_side


class HMEOptions(ModelOptions):
    """Hyper-parameters of HME."""

    hidden: int = Field(ge=1, le=8192)
    """H."""
    attention: int = Field(ge=1, le=8192)
    """Size in which query and clips are added."""
    video_memory: int = Field(ge=0, le=4096)
    """Places of the video's memory; 0: one a clip."""
    word_memory: int = Field(ge=0, le=4096)
    """Places of the question's memory; 0: as many as a text may have words."""
    steps: int = Field(ge=2, le=64)
    """Steps of the fusion."""
    word_dropout: float = Field(ge=0, lt=1)
    layer_dropout: float = Field(ge=0, lt=1)
    """Between the two layers over the words."""
    fusion_dropout: float = Field(ge=0, lt=1)


class TwoStreamMemory(nn.Module):
    """The video's memory: each step reads it, and writes appearance, motion, or neither."""

    def __init__(self, hidden: int, places: int) -> None:
        super().__init__()
        self.places = places
        self.read = nn.Linear(3 * hidden, places)
        self.write = nn.Linear(3 * hidden, 3)
        self.state = nn.Linear(2 * hidden, hidden)
        self.states = nn.ModuleList(nn.Linear(3 * hidden, hidden) for _ in range(2))
        self.contents = nn.ModuleList(nn.Linear(2 * hidden, hidden) for _ in range(2))
        self.addresses = nn.ModuleList(nn.Linear(2 * hidden, places) for _ in range(2))
        self.weights = AttentionWeights()

    def forward(self, appearance: Tensor, motion: Tensor) -> Tensor:
        """Return the hidden state after each step, (B, N, H); both inputs are (B, N, H)."""
        batch, steps, hidden = appearance.shape
        memory = appearance.new_zeros(batch, self.places, hidden)
        state = appearance.new_zeros(batch, hidden)
        streams = [state, state]
        outputs = []
        for step in range(steps):
            inputs = [appearance[:, step], motion[:, step]]
            known = torch.cat((*streams, state), dim=-1)
            read = (self.weights(self.read(known))[:, None] @ memory)[:, 0]
            memory = self._written(memory, known, inputs, streams)
            state, streams = (
                torch.relu(self.state(torch.cat((read, state), dim=-1))),
                [
                    torch.relu(layer(torch.cat((x, read, stream), dim=-1)))
                    for layer, x, stream in zip(self.states, inputs, streams, strict=True)
                ],
            )
            outputs.append(state)
        return torch.stack(outputs, dim=1)

    def _written(self, memory: Tensor, known: Tensor, inputs: list[Tensor], streams: list[Tensor]) -> Tensor:
        """Return the memory after a step: what stays, and appearance and motion at their addresses, shared out by a softmax of three."""
        shares = self.weights(self.write(known))
        memory = shares[:, 0, None, None] * memory
        for place, (x, stream) in enumerate(zip(inputs, streams, strict=True)):
            joint = torch.cat((stream, x), dim=-1)
            content = torch.relu(self.contents[place](joint))
            address = self.weights(self.addresses[place](joint))
            memory = memory + shares[:, place + 1, None, None] * address[..., None] * content[:, None]
        return memory


class WordMemory(nn.Module):
    """The question's memory: gates say how much is read and written."""

    def __init__(self, hidden: int, places: int) -> None:
        super().__init__()
        self.places = places
        self.read_gate, self.read = nn.Linear(2 * hidden, 1), nn.Linear(2 * hidden, places)
        self.write_gate, self.write = nn.Linear(2 * hidden, 1), nn.Linear(2 * hidden, places)
        self.content = nn.Linear(2 * hidden, hidden)
        self.state = nn.Linear(3 * hidden, hidden)
        self.weights = AttentionWeights()
        nn.init.normal_(self.state.weight, std=0.1)
        nn.init.zeros_(self.state.bias)

    def forward(self, words: Tensor) -> Tensor:
        """Return the hidden state after each word, (B, T, H), of words (B, T, H)."""
        batch, steps, hidden = words.shape
        memory = words.new_zeros(batch, self.places, hidden)
        state = words.new_zeros(batch, hidden)
        outputs = []
        for step in range(steps):
            word = words[:, step]
            joint = torch.cat((word, state), dim=-1)
            read = torch.sigmoid(self.read_gate(joint)) * (self.weights(self.read(joint))[:, None] @ memory)[:, 0]
            address = self.weights(self.write(joint))[..., None]
            content = torch.relu(self.content(joint))[:, None]
            memory = torch.sigmoid(self.write_gate(joint))[..., None] * address * content + (1 - address) * memory
            state = torch.relu(self.state(torch.cat((word, read, state), dim=-1)))
            outputs.append(state)
        return torch.stack(outputs, dim=1)


class MultimodalAttention(nn.Module):
    """One look at both memories: temporal attention over each, and a weight for each of the two."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.attentions = nn.ModuleList(_MemoryAttention(hidden) for _ in range(2))
        self.from_state = nn.Linear(hidden, hidden)
        self.share_state = nn.Linear(hidden, hidden, bias=False)
        self.share = nn.Linear(hidden, 1, bias=False)
        self.weights = AttentionWeights()

    def forward(self, state: Tensor, video: Tensor, words: Tensor, word_mask: Tensor) -> Tensor:
        """Return (B, H). `state` is (B, H), `video` (B, N, H), `words` (B, T, H)."""
        looks = [self.attentions[0](state, video, None), self.attentions[1](state, words, word_mask)]
        shares = self.weights(
            torch.cat([self.share(torch.tanh(key + self.share_state(state))) for _, key in looks], dim=-1)
        )  # (B, 2): video, words
        mixed = shares[:, :1] * looks[0][0] + shares[:, 1:] * looks[1][0]
        return torch.tanh(self.from_state(state) + mixed)


class _MemoryAttention(nn.Module):
    """Attention over one memory, and what its share is reckoned from."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.attention = AdditiveAttention(hidden, hidden, hidden)
        self.value, self.key = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)

    def forward(self, state: Tensor, memory: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return value and key of the weighted mean, each (B, H)."""
        mean = self.attention(state, memory, mask)
        return self.value(mean), self.key(mean)


class MultiStepFusion(nn.Module):
    """Two LSTM cells that look at both memories again and again."""

    def __init__(self, hidden: int, *, steps: int, dropout: float) -> None:
        super().__init__()
        self.hidden, self.steps = hidden, steps
        self.first, self.second = nn.LSTMCell(hidden, hidden), nn.LSTMCell(hidden, hidden)
        self.start, self.next = nn.Linear(2 * hidden, hidden), nn.Linear(2 * hidden, hidden)
        self.dropout = nn.Dropout(dropout)
        self.attention = MultimodalAttention(hidden)
        nn.init.xavier_normal_(self.start.weight)
        nn.init.xavier_normal_(self.next.weight)

    def forward(self, start: Tensor, video: Tensor, words: Tensor, word_mask: Tensor) -> Tensor:
        """Return the last states of both cells, (B, 2H); `start` is (B, 2H)."""
        zero = start.new_zeros(start.shape[0], self.hidden)
        first, second = (zero, zero), (zero, zero)
        seen = self.dropout(torch.tanh(self.start(start)))
        for _ in range(self.steps):
            first = self.first(seen, first)
            second = self.second(first[0], second)
            looked = self.attention(second[0], video, words, word_mask)
            seen = self.dropout(torch.tanh(self.next(torch.cat((second[0], looked), dim=-1))))
        return torch.cat((first[0], second[0]), dim=-1)


class HMEReader(nn.Module):
    """All of HME but its last layer."""

    def __init__(self, sizes: InputSizes, options: HMEOptions) -> None:
        super().__init__()
        hidden, both = options.hidden, 2 * options.hidden
        self.words = WordEncoder(
            sizes.words, hidden, cell="lstm", layers=2, input_dropout=options.word_dropout, dropout=options.layer_dropout
        )
        self.appearance = StackedEncoder(sizes.appearance, hidden, cell="lstm")
        self.motion = StackedEncoder(sizes.motion, hidden, cell="lstm")
        self.appearance_attention = AdditiveAttention(both, both, options.attention)
        self.motion_attention = AdditiveAttention(both, both, options.attention)
        self.video_memory = TwoStreamMemory(hidden, options.video_memory or sizes.clips)
        self.word_memory = WordMemory(hidden, options.word_memory or sizes.length)
        self.fusion = MultiStepFusion(hidden, steps=options.steps, dropout=options.fusion_dropout)
        self.attended = nn.Linear(both, hidden)
        self.remembered = nn.Linear(both, hidden)

    def forward(self, video: VideoFeatures, words: Words) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Return the fused vector (B, 3H), the question's outputs (B, T, H), its states and cells (2, B, H), and the video's memory.

        The memory is (B, N, H).
        """
        question, states, cells = self.words(words)
        asked = layers_side_by_side(states)
        appearance, motion = self.appearance(video.appearance), self.motion(video.motion)
        memory = self.video_memory(appearance.second, motion.second)
        start = torch.cat((appearance.second[:, -1], motion.second[:, -1]), dim=-1)
        fused = self.fusion(start, memory, self.word_memory(question), words.mask)
        parts = (
            self.attended(self.appearance_attention(asked, appearance.both)),
            self.attended(self.motion_attention(asked, motion.both)),
            self.remembered(fused),
        )
        return torch.tanh(torch.cat(parts, dim=-1)), question, states, cells, memory


class HME(MultiChoiceModel):
    """HME for multiple choice."""

    Options = HMEOptions

    def __init__(self, sizes: InputSizes, options: HMEOptions) -> None:
        super().__init__()
        self.reader = HMEReader(sizes, options)
        self.score = nn.Linear(3 * options.hidden, 1)

    def forward(self, video: VideoFeatures, words: Words) -> Tensor:
        """Return the scores (B,)."""
        fused, *_ = self.reader(video, words)
        scores: Tensor = self.score(fused)[:, 0]
        return scores


class HMEEncoder(Encoder):
    """HME for open-ended answers."""

    Options = HMEOptions
    decoders = ("att-qns", "hme-lstm", "naive", "naive-trans", "qns-ans", "att-vid")

    def __init__(self, sizes: InputSizes, options: HMEOptions) -> None:
        super().__init__()
        self.fused_size, self.hidden_size = 2 * options.hidden, options.hidden
        self.reader = HMEReader(sizes, options)
        self.fuse = nn.Linear(3 * options.hidden, self.fused_size)

    def forward(self, video: VideoFeatures, words: Words) -> Encoded:
        """Return what a decoder answers from."""
        fused, question, states, cells, memory = self.reader(video, words)
        return Encoded(
            fused=self.fuse(fused),
            question_state=states[-1],
            question=question,
            question_mask=words.mask,
            video=memory,
            hidden=states,
            cell=cells,
        )
