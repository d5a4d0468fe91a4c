"""HGA: words and clips as one graph (Jiang and Han 2020, "Reasoning with Heterogeneous Graph Alignment"; Xiao et al. 2021, section 4.2).

    q, v   = GRU(words), GRU(ReLU(W clips)), each layer-normed
    q', v' = co-attention: each word adds what it attends to in the video, each clip what it attends to in the question
    A      = E Eᵀ with E = two weight-normed layers with ReLU over [q'; v']          one weight for each pair of places, symmetric
    X      = three layers of ReLU(LayerNorm(A X W)) over [q'; v']
    local  = pooling of X over all places
    score  = Block(Block(q_last, v_last), local)

Where the authors' code differs from the papers, an option of the settings names both:

- `pooling`: "attention" weighs the places by a softmax (papers). In the code the softmax runs over an axis of size 1, so that every weight
  is 1 and pooling is a plain "sum"; the published figures are of this.
- `co_attention_learns`: in the code the layers of the co-attention are wrapped anew at each step and keep their first weights (false); in
  the papers they are trained (true).
- `reduce_motion`: the open-ended code first maps motion to the size of appearance, then both together, and maps words too before the GRU.
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from vip.baselines.nextqa.block_fusion import BlockFusion
from vip.baselines.nextqa.interface import Encoded, Encoder, InputSizes, ModelOptions, MultiChoiceModel, VideoFeatures, Words
from vip.baselines.nextqa.layers import WordEncoder, recurrent


class HGAOptions(ModelOptions):
    hidden: int = Field(ge=1, le=8192)
    """Of all layers."""
    dropout: float = Field(ge=0, lt=1)
    pooling: Literal["sum", "attention"]
    """How the places of the graph become one vector: `sum` as in the code, `attention` as in the papers."""
    co_attention_learns: bool
    """Whether the weights of the co-attention are trained: not in the code, but in the papers."""
    reduce_motion: bool
    """Whether clips and words are mapped as in the open-ended code."""
    graph_layers: int = Field(ge=1, le=64)
    fusion: int = Field(ge=1, le=16_384)
    """Size of the Block fusions within."""
    fusion_chunks: int = Field(ge=1, le=1024)


class HGAEncoder(Encoder):
    """The model up to its last fusion; open-ended, that fusion has the size of the decoder's state.

    Args:
        output: size of the last fusion; None: hidden.
    """

    Options = HGAOptions

    def __init__(self, sizes: InputSizes, options: HGAOptions, output: int | None = None) -> None:
        super().__init__()
        hidden, dropout = options.hidden, options.dropout
        self.project_words = nn.Linear(sizes.words, hidden, bias=False) if options.reduce_motion else None
        self.word_dropout = nn.Dropout(dropout)
        self.words = WordEncoder(hidden if options.reduce_motion else sizes.words, hidden, cell="gru")
        self.clips = (ReducedClips if options.reduce_motion else ProjectedClips)(sizes, hidden, dropout)
        self.video = recurrent("gru", self.clips.output, hidden)
        self.co_attention = WordClipAttention(hidden, dropout, learns=options.co_attention_learns)
        self.adjacency = AdjacencyLearner(hidden)
        self.graph = GraphConvolutions(hidden, options.graph_layers, dropout)
        self.pool = AttentionPool(hidden) if options.pooling == "attention" else SumPool()
        sizes_within = {"size": options.fusion, "chunks": options.fusion_chunks}
        self.fuse_global = BlockFusion(hidden, hidden, hidden, dropout=dropout, **sizes_within)
        self.fuse = BlockFusion(hidden, hidden, hidden if output is None else output, **sizes_within)
        self.fused_size, self.hidden_size = hidden if output is None else output, hidden

    def forward(self, video: VideoFeatures, words: Words) -> Encoded:
        mask = words.mask
        question, question_last = self._read_words(words)
        clips, video_last = self.video(self.clips(video))
        question, clips = functional.layer_norm(question, question.shape[-1:]), functional.layer_norm(clips, clips.shape[-1:])
        question, clips = self.co_attention(question, mask, clips)
        places = torch.cat((question, clips), dim=1)
        there = torch.cat((mask, mask.new_ones(clips.shape[:2])), dim=1)
        graph = self.graph(places, self.adjacency(places, there), there)
        fused = self.fuse(self.fuse_global(question_last, video_last[-1]), self.pool(graph, there))
        return Encoded(fused=fused, question_state=question_last, question=question, question_mask=mask, video=clips)

    def _read_words(self, words: Words) -> tuple[Tensor, Tensor]:
        """Return (B, T, H) and the last state (B, H)."""
        vectors = self.word_dropout(words.vectors)
        if self.project_words is not None:
            vectors = functional.relu(self.project_words(vectors))
        outputs, hidden, _ = self.words(Words(vectors, words.lengths))
        return outputs, hidden[-1]


class HGA(MultiChoiceModel):
    """The model with options: its last fusion has size 1, the score."""

    Options = HGAOptions

    def __init__(self, sizes: InputSizes, options: HGAOptions) -> None:
        super().__init__()
        self.encoder = HGAEncoder(sizes, options, output=1)

    def forward(self, video: VideoFeatures, words: Words) -> Tensor:
        encoded: Encoded = self.encoder(video, words)
        return encoded.fused.squeeze(-1)


class ProjectedClips(nn.Module):
    """Clips mapped to the hidden size (code with options)."""

    def __init__(self, sizes: InputSizes, hidden: int, dropout: float) -> None:
        super().__init__()
        self.output = hidden
        self.project = nn.Linear(sizes.appearance + sizes.motion, hidden)
        nn.init.xavier_normal_(self.project.weight)
        self.dropout = nn.Dropout(dropout)

    def forward(self, video: VideoFeatures) -> Tensor:
        mapped: Tensor = self.dropout(functional.relu(self.project(video.clips)))
        return mapped


class ReducedClips(nn.Module):
    """Motion mapped to the size of appearance, then both together (open-ended code)."""

    def __init__(self, sizes: InputSizes, hidden: int, dropout: float) -> None:
        super().__init__()
        self.output = sizes.appearance
        self.motion = nn.Linear(sizes.motion, sizes.appearance)
        self.both = nn.Linear(2 * sizes.appearance, sizes.appearance)
        self.dropout = nn.Dropout(dropout)

    def forward(self, video: VideoFeatures) -> Tensor:
        motion = functional.relu(self.dropout(self.motion(video.motion)))
        return functional.relu(self.dropout(self.both(torch.cat((video.appearance, motion), dim=-1))))


class WeightDropLinear(nn.Module):
    """A linear map without bias, some of whose weights are left out at each step of the training (DropConnect)."""

    def __init__(self, size: int, dropout: float, *, learns: bool) -> None:
        super().__init__()
        self.weight = nn.Linear(size, size, bias=False).weight.requires_grad_(learns)
        self.dropout = dropout

    def forward(self, values: Tensor) -> Tensor:
        return functional.linear(values, functional.dropout(self.weight, self.dropout, self.training))


class WordClipAttention(nn.Module):
    """Each word adds what it attends to among the clips, each clip what it attends to among the words; both are layer-normed."""

    def __init__(self, hidden: int, dropout: float, *, learns: bool) -> None:
        super().__init__()
        names = ("query", "key", "question_value", "video_value", "question_output", "video_output")
        self.maps = nn.ModuleDict({name: WeightDropLinear(hidden, dropout, learns=learns) for name in names})

    def forward(self, question: Tensor, mask: Tensor, video: Tensor) -> tuple[Tensor, Tensor]:
        """Return (B, T, H), 0 behind the end, and (B, N, H)."""
        likeness = self.maps["query"](question) @ self.maps["key"](video).transpose(1, 2) * question.shape[-1] ** -0.5
        to_video = likeness.softmax(dim=-1)
        to_question = likeness.masked_fill(~mask[:, :, None], -torch.inf).softmax(dim=1).transpose(1, 2)
        question_seen = self.maps["question_output"](to_video @ self.maps["video_value"](video))
        video_seen = self.maps["video_output"](to_question @ self.maps["question_value"](question))
        question = functional.layer_norm(question + question_seen, question.shape[-1:]) * mask[:, :, None]
        return question, functional.layer_norm(video + video_seen, video.shape[-1:])


class AdjacencyLearner(nn.Module):
    """The weight of each pair of places: the product of what two weight-normed layers make of each."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.first = weight_norm(nn.Linear(hidden, hidden, bias=False), dim=0)
        self.second = weight_norm(nn.Linear(hidden, hidden, bias=False), dim=0)

    def forward(self, places: Tensor, mask: Tensor) -> Tensor:
        """Return (B, P, P), symmetric; 0 where a place is padding."""
        nodes = functional.relu(self.second(functional.relu(self.first(places)))) * mask[:, :, None]
        return nodes @ nodes.transpose(1, 2)


class GraphConvolutions(nn.Module):
    """Layers of ReLU(LayerNorm(A X W)) with dropout (Kipf and Welling 2017); the papers' two and a last one."""

    def __init__(self, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(hidden, hidden, bias=False) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)

    def forward(self, places: Tensor, adjacency: Tensor, mask: Tensor) -> Tensor:
        """Return (B, P, H), 0 where a place is padding."""
        for layer in self.layers:
            places = functional.layer_norm(adjacency @ layer(places), places.shape[-1:]) * mask[:, :, None]
            places = self.dropout(functional.relu(places))
        return places


class SumPool(nn.Module):
    """The sum over all places: what the authors' code does."""

    def forward(self, places: Tensor, mask: Tensor) -> Tensor:
        return (places * mask[:, :, None]).sum(dim=1)


class AttentionPool(nn.Module):
    """The mean over all places, weighted by a softmax over a small network: what the papers describe."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.weigh = nn.Sequential(nn.Linear(hidden, max(1, hidden // 2)), nn.Tanh(), nn.Linear(max(1, hidden // 2), 1))

    def forward(self, places: Tensor, mask: Tensor) -> Tensor:
        return (self.weights(places, mask)[:, :, None] * places).sum(dim=1)

    def weights(self, places: Tensor, mask: Tensor) -> Tensor:
        """Return (B, P): each row adds up to 1; 0 where a place is padding."""
        likeness: Tensor = self.weigh(places).squeeze(-1)
        return likeness.masked_fill(~mask, -torch.inf).softmax(dim=-1)
