"""UATT: attention from each word to the video and from each clip to the question, with what was read before (Xue et al. 2017; Xiao et al.
2021, section 4.2: "an order-preserved co-attention module"). For open-ended answers only.

    V, Q = LSTMs of both directions over clips and over words
    r₀ = 0;  for each word q_t in order:   r_t = attend(q_t, V, r_{t−1})
    w₀ = 0;  for each clip v_n in order:   w_n = attend(v_n, Q, w_{n−1})
    attend(x, Y, h) = Σ_j β_j W_Y y_j + tanh(U' h),   β = softmax of w · tanh(W_x x + W_Y y_j + U h)
    the answer: an LSTM of two layers, begun with hidden states (r_T, w_N) and the cells of V and Q (`uatt-lstm`)

In the code the cells are those of the forward directions; so are they here. Words behind the end are attended to and passed through there
as if they were words; here they have weight 0 and leave r as it is.
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from vip.baselines.nextqa.attention import AttentionWeights
from vip.baselines.nextqa.interface import Encoded, Encoder, InputSizes, ModelOptions, VideoFeatures, Words
from vip.baselines.nextqa.layers import recurrent


class UATTOptions(ModelOptions):
    """Hyper-parameters of UATT."""

    hidden: int = Field(ge=1, le=8192)
    """H, of one direction, of the attention's memory and of the decoder."""
    word_dropout: float = Field(ge=0, lt=1)


class AttentionWithHistory(nn.Module):
    """Attention to places by a vector and by what was read before."""

    def __init__(self, query: int, places: int, hidden: int) -> None:
        super().__init__()
        self.query, self.places = nn.Linear(query, hidden, bias=False), nn.Linear(places, hidden, bias=False)
        self.history, self.carry = nn.Linear(hidden, hidden, bias=False), nn.Linear(hidden, hidden, bias=False)
        self.score = nn.Linear(hidden, 1, bias=False)
        self.weights = AttentionWeights()
        for layer in (self.query, self.places, self.history, self.carry, self.score):
            nn.init.xavier_normal_(layer.weight)

    def forward(self, queries: Tensor, places: Tensor, *, query_mask: Tensor | None, place_mask: Tensor | None) -> Tensor:
        """Return what was read after the last query, (B, H).

        Args: queries: (B, S, Q), taken in order; places: (B, T, P); query_mask: (B, S) bool; place_mask: (B, T) bool.
        """
        asked, seen = self.query(queries), self.places(places)
        read: Tensor = asked.new_zeros(asked.shape[0], asked.shape[2])
        for step in range(asked.shape[1]):
            scores = self.score(torch.tanh((asked[:, step] + self.history(read))[:, None] + seen))[..., 0]
            following = (self.weights(scores, place_mask)[:, None] @ seen)[:, 0] + torch.tanh(self.carry(read))
            read = following if query_mask is None else torch.where(query_mask[:, step, None], following, read)
        return read


class UATTEncoder(Encoder):
    """UATT."""

    Options = UATTOptions
    decoders = ("uatt-lstm",)

    def __init__(self, sizes: InputSizes, options: UATTOptions) -> None:
        super().__init__()
        self.fused_size = self.hidden_size = hidden = options.hidden
        self.word_dropout = nn.Dropout(options.word_dropout)
        self.words = recurrent("lstm", sizes.words, hidden, bidirectional=True)
        self.clips = recurrent("lstm", sizes.appearance + sizes.motion, hidden, bidirectional=True)
        self.words_to_video = AttentionWithHistory(2 * hidden, 2 * hidden, hidden)
        self.clips_to_question = AttentionWithHistory(2 * hidden, 2 * hidden, hidden)

    def forward(self, video: VideoFeatures, words: Words) -> Encoded:
        """Return what its decoder answers from. `question` and `video` are sums of both directions."""
        vectors = self.word_dropout(words.vectors)
        packed = pack_padded_sequence(vectors, words.lengths.cpu(), batch_first=True, enforce_sorted=False)
        outputs, (_, question_cells) = self.words(packed)
        question, _ = pad_packed_sequence(outputs, batch_first=True, total_length=vectors.shape[1])
        clips, (_, clip_cells) = self.clips(video.clips)
        read = self.words_to_video(question, clips, query_mask=words.mask, place_mask=None)
        watched = self.clips_to_question(clips, question, query_mask=None, place_mask=words.mask)
        return Encoded(
            fused=read,
            question_state=watched,
            question=_both_directions(question),
            question_mask=words.mask,
            video=_both_directions(clips),
            hidden=torch.stack((read, watched)),
            cell=torch.stack((clip_cells[0], question_cells[0])),
        )


def _both_directions(outputs: Tensor) -> Tensor:
    """Return the sum (B, T, H) of both directions of outputs (B, T, 2H)."""
    forward, backward = outputs.chunk(2, dim=-1)
    return forward + backward
