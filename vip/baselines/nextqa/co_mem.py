"""CoMem: two memories, of appearance and of motion, that are read three times (Gao et al. 2018; Xiao et al. 2021, section 4.1.2).

    A, M = two RNNs over the clips, one above the other, for appearance and for motion; outputs of both layers
    q    = two-layer RNN over the words; hidden states of both layers
    m_a, m_b = the last of A, of M;  c_a, c_b = the same
    three times:
        s   = m_a + m_b
        c_a = episode(A, s, c_a);            c_b = episode(M, s, c_b)
        m_a = tanh(W_a [m_a; c_a; q]);       m_b = tanh(W_b [m_b; c_b; q])
    score = w · [m_a; m_b]                               open-ended: a linear layer to H instead

    episode(F, s, c):  g_n = softmax of z₂ tanh(z₁ [f_n ⊙ s; f_n ⊙ c; |f_n − s|; |f_n − c|])
                       h_n = g_n tanh(W f_n + r ⊙ U h_{n−1}) + (1 − g_n) h_{n−1},  r = σ(W_r f_n + U_r h_{n−1})
                       relu(W_c [c; h_N; s])

Where paper and code differ:
- Gao et al. read the clips by temporal convolutions and deconvolutions. Xiao et al. (footnote 4) take the implementation that came with
  HME: "a two-layer GRU instead of TCN". Their code has GRUs for open-ended answers, LSTMs for multiple choice: `cell = "gru"` or `"lstm"`.
- In the paper of Gao et al. each memory attends to its clips with the question and the other memory at hand. In the code the gates see the
  sum of both memories, and the question comes in afterwards, in W_a and W_b. This is built.
- The code cuts the gradient at the first m_a, m_b, not at c_a, c_b. So does this.
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor, nn

from vip.baselines.nextqa.attention import AttentionWeights
from vip.baselines.nextqa.interface import Encoded, Encoder, InputSizes, ModelOptions, MultiChoiceModel, VideoFeatures, Words
from vip.baselines.nextqa.layers import Cell, WordEncoder
from vip.baselines.nextqa.stacked import StackedEncoder, layers_side_by_side


class CoMemOptions(ModelOptions):
    """Hyper-parameters of CoMem."""

    hidden: int = Field(ge=1, le=8192)
    """H."""
    cell: Cell
    """`gru` as in the paper, `lstm` as in the code for multiple choice."""
    cycles: int = Field(ge=1, le=64)
    """How often the memories are read."""
    word_dropout: float = Field(ge=0, lt=1)
    layer_dropout: float = Field(ge=0, lt=1)
    """Between the two layers over the words."""


class EpisodicMemory(nn.Module):
    """One reading of the clips: gates, a GRU whose update gate is the attention, and the next state of the memory."""

    def __init__(self, size: int) -> None:
        """Args: size: D, of a clip, of the query and of the memory."""
        super().__init__()
        self.gate = nn.Sequential(nn.Linear(4 * size, size), nn.Tanh(), nn.Linear(size, 1, bias=False))
        self.weights = AttentionWeights()
        self.reset_clip, self.reset_state = nn.Linear(size, size), nn.Linear(size, size)
        self.new_clip, self.new_state = nn.Linear(size, size), nn.Linear(size, size)
        self.update = nn.Linear(3 * size, size)

    def forward(self, clips: Tensor, query: Tensor, memory: Tensor) -> Tensor:
        """Return the next memory (B, D).

        Args: clips: (B, N, D); query, memory: (B, D).
        """
        q, m = query[:, None], memory[:, None]
        gates = self.weights(self.gate(torch.cat((clips * q, clips * m, (clips - q).abs(), (clips - m).abs()), dim=-1))[..., 0])
        resets, news = self.reset_clip(clips), self.new_clip(clips)
        state = torch.zeros_like(memory)
        for step in range(clips.shape[1]):
            reset = torch.sigmoid(resets[:, step] + self.reset_state(state))
            new = torch.tanh(news[:, step] + reset * self.new_state(state))
            gate = gates[:, step, None]
            state = gate * new + (1 - gate) * state
        return torch.relu(self.update(torch.cat((memory, state, query), dim=-1)))


class CoMemReader(nn.Module):
    """All of CoMem but its last layer."""

    def __init__(self, sizes: InputSizes, options: CoMemOptions) -> None:
        super().__init__()
        hidden, both = options.hidden, 2 * options.hidden
        self.cycles = options.cycles
        self.words = WordEncoder(
            sizes.words, hidden, cell=options.cell, layers=2, input_dropout=options.word_dropout, dropout=options.layer_dropout
        )
        self.appearance = StackedEncoder(sizes.appearance, hidden, cell=options.cell)
        self.motion = StackedEncoder(sizes.motion, hidden, cell=options.cell)
        self.appearance_memory, self.motion_memory = EpisodicMemory(both), EpisodicMemory(both)
        self.appearance_update, self.motion_update = nn.Linear(3 * both, both), nn.Linear(3 * both, both)

    def forward(self, video: VideoFeatures, words: Words) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return both memories side by side (B, 4H), the question's outputs (B, T, H) and last state (B, H), and the video's (B, N, H)."""
        question, states, _ = self.words(words)
        asked = layers_side_by_side(states)
        appearance, motion = self.appearance(video.appearance), self.motion(video.motion)
        seen, moved = appearance.both, motion.both
        read_a, read_b = seen[:, -1], moved[:, -1]
        memory_a, memory_b = read_a.detach(), read_b.detach()
        for _ in range(self.cycles):
            shared = memory_a + memory_b
            read_a, read_b = self.appearance_memory(seen, shared, read_a), self.motion_memory(moved, shared, read_b)
            memory_a = torch.tanh(self.appearance_update(torch.cat((memory_a, read_a, asked), dim=-1)))
            memory_b = torch.tanh(self.motion_update(torch.cat((memory_b, read_b, asked), dim=-1)))
        return torch.cat((memory_a, memory_b), dim=-1), question, states[-1], appearance.second + motion.second


class CoMem(MultiChoiceModel):
    """CoMem for multiple choice."""

    Options = CoMemOptions

    def __init__(self, sizes: InputSizes, options: CoMemOptions) -> None:
        super().__init__()
        self.reader = CoMemReader(sizes, options)
        self.score = nn.Linear(4 * options.hidden, 1)

    def forward(self, video: VideoFeatures, words: Words) -> Tensor:
        """Return the scores (B,)."""
        memories, *_ = self.reader(video, words)
        scores: Tensor = self.score(memories)[:, 0]
        return scores


class CoMemEncoder(Encoder):
    """CoMem for open-ended answers."""

    Options = CoMemOptions

    def __init__(self, sizes: InputSizes, options: CoMemOptions) -> None:
        super().__init__()
        self.fused_size = self.hidden_size = options.hidden
        self.reader = CoMemReader(sizes, options)
        self.fuse = nn.Linear(4 * options.hidden, options.hidden)

    def forward(self, video: VideoFeatures, words: Words) -> Encoded:
        """Return what a decoder answers from. `video` is the sum of the upper layers over appearance and motion."""
        memories, question, state, clips = self.reader(video, words)
        return Encoded(fused=self.fuse(memories), question_state=state, question=question, question_mask=words.mask, video=clips)
