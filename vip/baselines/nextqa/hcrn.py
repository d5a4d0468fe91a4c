"""HCRN: relations among the frames of a segment, then among segments, each under a condition (Le et al. 2020; Xiao et al. 2021,
section 4.1.2).

    CRN(objects, condition): for k of n − 1, n − 2, …, 2 (all n, where n is 2)
        some subsets of k objects, drawn at random (`subsets`, 1 in the code's settings)
        h = ELU(W_k [mean of the subset; condition])       with a gate σ(G_k […]) where the condition is the question
        mean of h over the subsets
    frames of a segment:  CRN under the segment's motion, CRN under the question
    segments:             CRN under the motion of the whole (an LSTM over the segments), CRN under the question
    what comes out:       attention by the question, then two layers with batch normalisation → score

Where things differ:
- Le et al. take 8 segments of 16 frames with a vector a frame. Features in the form of NExT-QA have one vector a clip. So a segment is here
  some clips in a row, its frames are their appearance, its motion the mean of theirs. 16 clips make 8 segments of 8, which overlap
  (`segments`, `frames`); 4 segments of 4 would leave one relation in the end, and nothing to attend to. With features of 128 clips,
  `frames = 16` is the layout of Le et al.
- Le et al. read question and option apart: the video under the question, and what comes out attended to by both. So do Xiao et al. with
  GloVe ("HCRN"); with BERT, question and option are one text ("HCRN*", table 4): `joined = false` or `true`.
- The code draws subsets when it evaluates too, so two runs differ. Here only training draws; otherwise the subsets lie evenly among all of
  their size, in lexical order.
- Xiao et al. give no code of HCRN; sizes and dropouts are those of the code of Le et al.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from math import comb

import torch
from pydantic import Field
from torch import Tensor, nn

from vip.baselines.nextqa.attention import AttentionWeights
from vip.baselines.nextqa.interface import Encoded, Encoder, InputSizes, ModelOptions, MultiChoiceModel, VideoFeatures, Words
from vip.baselines.nextqa.layers import recurrent
from vip.errors import InputError


class HCRNOptions(ModelOptions):
    """Hyper-parameters of HCRN."""

    hidden: int = Field(ge=2, le=8192, multiple_of=2)
    """D of all relations; even, half of it a direction over the words."""
    # of fewer than 4, the second CRN would have no objects; of more than 20, there are millions of subsets
    segments: int = Field(ge=4, le=20)
    """How many runs of clips are taken of a video, spread evenly."""
    frames: int = Field(ge=4, le=20)
    """Clips of each."""
    subsets: int = Field(ge=1, le=1024)
    """Subsets of one size that are drawn."""
    joined: bool
    """Whether a question and its option are read as one text."""
    word_dropout: float = Field(ge=0, lt=1)
    question_dropout: float = Field(ge=0, lt=1)
    dropout: float = Field(ge=0, lt=1)
    """On what is attended to, and in the last layers."""


def subset_sizes(objects: int) -> range:
    """Return the sizes of the subsets of `objects` objects, large ones first."""
    return range(2, 1, -1) if objects == 2 else range(objects - 1, 1, -1)


@lru_cache(maxsize=64)
def _subsets(objects: int, size: int) -> tuple[tuple[int, ...], ...]:
    return tuple(combinations(range(objects), size))


class ConditionalRelations(nn.Module):
    """A CRN: from n objects and a condition, one object a size of subset."""

    def __init__(self, size: int, *, objects: int, subsets: int, has_gate: bool) -> None:
        """Args: size: D of objects and condition."""
        super().__init__()
        self.objects, self.subsets = objects, subsets
        self.relations = nn.ModuleList(nn.Linear(2 * size, size) for _ in subset_sizes(objects))
        self.gates = nn.ModuleList(nn.Linear(2 * size, size) for _ in subset_sizes(objects)) if has_gate else None

    def forward(self, objects: Tensor, condition: Tensor) -> Tensor:
        """Return (B, number of sizes, K, D).

        Args: objects: (B, n, K, D), each K vectors; condition: (B, D).
        """
        outputs = []
        for place, size in enumerate(subset_sizes(self.objects)):
            means = torch.stack([objects[:, list(chosen)].mean(dim=1) for chosen in self._chosen(size)])  # (subsets, B, K, D)
            joint = torch.cat((means, condition[:, None].expand_as(means)), dim=-1)
            related = nn.functional.elu(self.relations[place](joint))
            if self.gates is not None:
                related = related * torch.sigmoid(self.gates[place](joint))
            outputs.append(related.mean(dim=0))
        return torch.stack(outputs, dim=1)

    def _chosen(self, size: int) -> list[tuple[int, ...]]:
        """Return the subsets of one size: drawn in training, else spread evenly."""
        count = min(self.subsets, comb(self.objects, size))
        every = _subsets(self.objects, size)
        if self.training:
            return [every[place] for place in torch.randperm(len(every))[:count].tolist()]
        return [every[(2 * place + 1) * len(every) // (2 * count)] for place in range(count)]


class QuestionAttention(nn.Module):
    """A weighted mean of the video's vectors under a question."""

    def __init__(self, size: int, dropout: float) -> None:
        super().__init__()
        self.question, self.video = nn.Linear(size, size, bias=False), nn.Linear(size, size, bias=False)
        self.score = nn.Sequential(nn.Linear(2 * size, size), nn.ELU(), nn.Linear(size, 1, bias=False))
        self.dropout = nn.Dropout(dropout)
        self.weights = AttentionWeights()

    def forward(self, question: Tensor, video: Tensor) -> Tensor:
        """Return (B, D) of a question (B, D) and vectors (B, K, D)."""
        video = self.dropout(video)
        projected = self.video(video)
        scores = self.score(torch.cat((projected, self.question(question)[:, None] * projected), dim=-1))[..., 0]
        mean: Tensor = (self.weights(scores)[:, None] @ video)[:, 0]
        return mean


class _QuestionReader(nn.Module):
    """An LSTM of both directions over the words, through a tanh."""

    def __init__(self, sizes: InputSizes, options: HCRNOptions) -> None:
        super().__init__()
        self.word_dropout, self.dropout = nn.Dropout(options.word_dropout), nn.Dropout(options.question_dropout)
        self.rnn = recurrent("lstm", sizes.words, options.hidden // 2, bidirectional=True)

    def forward(self, words: Words) -> tuple[Tensor, Tensor]:
        """Return the outputs (B, T, D) and the last states of both directions (B, D)."""
        vectors = torch.tanh(self.word_dropout(words.vectors))
        packed = nn.utils.rnn.pack_padded_sequence(vectors, words.lengths.cpu(), batch_first=True, enforce_sorted=False)
        outputs, (states, _) = self.rnn(packed)
        padded, _ = nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True, total_length=vectors.shape[1])
        return padded, self.dropout(torch.cat((states[0], states[1]), dim=-1))


class HCRNReader(nn.Module):
    """Question and video, up to the vectors that the question attends to."""

    places: Tensor
    """(S, F) int64: the clips of each segment."""

    def __init__(self, sizes: InputSizes, options: HCRNOptions) -> None:
        super().__init__()
        size = options.hidden
        if sizes.clips < options.frames:
            raise InputError(
                f"Features of {sizes.clips} clips make no segments of {options.frames}. Set model.frames={sizes.clips} or fewer."
            )
        starts = torch.linspace(0, sizes.clips - options.frames, options.segments).round().long()
        self.register_buffer("places", starts[:, None] + torch.arange(options.frames), persistent=False)  # (S, F)
        self.words = _QuestionReader(sizes, options)
        self.question = nn.Linear(size, size)
        self.appearance, self.motion = nn.Linear(sizes.appearance, size), nn.Linear(sizes.motion, size)
        self.sequence, self.whole_motion = recurrent("lstm", sizes.motion, size), nn.Linear(size, size)
        self.frames_motion, self.frames_question = self._pair(options.frames, options)
        self.segments_motion, self.segments_question = self._pair(options.segments, options)
        self.attention = QuestionAttention(size, options.dropout)
        self.apply(_initialize)

    @staticmethod
    def _pair(objects: int, options: HCRNOptions) -> tuple[ConditionalRelations, ConditionalRelations]:
        """Return the CRN under motion, and the one under the question over what it gives."""
        motion = ConditionalRelations(options.hidden, objects=objects, subsets=options.subsets, has_gate=False)
        left = len(subset_sizes(objects))
        return motion, ConditionalRelations(options.hidden, objects=left, subsets=options.subsets, has_gate=True)

    def forward(self, video: VideoFeatures, words: Words) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the attended video (B, D), the question (B, D), its outputs (B, T, D) and the video's vectors (B, K, D)."""
        outputs, question = self.words(words)
        relations = self._relations(video, self.question(question))
        return self.attention(question, relations), question, outputs, relations

    def _relations(self, video: VideoFeatures, question: Tensor) -> Tensor:
        """Return the video's vectors (B, K, D) under a question (B, D)."""
        batch, segments = len(question), len(self.places)
        motion = video.motion[:, self.places].mean(dim=2)  # (B, S, M)
        frames = self.appearance(video.appearance)[:, self.places].flatten(0, 1)[:, :, None]  # (B × S, F, 1, D)
        related = self.frames_motion(frames, self.motion(motion).flatten(0, 1))
        related = self.frames_question(related, question.repeat_interleave(segments, dim=0))
        objects = related.reshape(batch, segments, -1, question.shape[-1])  # (B, S, K, D)
        _, (last, _) = self.sequence(motion)
        related = self.segments_motion(objects, self.whole_motion(last[-1]))
        relations: Tensor = self.segments_question(related, question).flatten(1, 2)
        return relations


def _initialize(module: nn.Module) -> None:
    """Set the weights of linear layers and RNNs by Xavier's uniform rule, their biases to 0."""
    if isinstance(module, (nn.Linear, nn.LSTM)):
        for parameter in module.parameters():
            nn.init.xavier_uniform_(parameter) if parameter.dim() > 1 else nn.init.zeros_(parameter)


class HCRN(MultiChoiceModel):
    """HCRN for multiple choice."""

    Options = HCRNOptions

    def __init__(self, sizes: InputSizes, options: HCRNOptions) -> None:
        super().__init__()
        size = options.hidden
        self.reader = HCRNReader(sizes, options)
        self.question, self.option = nn.Linear(size, size), None if options.joined else nn.Linear(size, size)
        self.score = nn.Sequential(
            nn.Dropout(options.dropout),
            nn.Linear((2 if options.joined else 4) * size, size),
            nn.ELU(),
            nn.BatchNorm1d(size),
            nn.Dropout(options.dropout),
            nn.Linear(size, 1),
        )
        for part in (self.question, self.option, self.score):
            if part is not None:
                part.apply(_initialize)

    def forward(self, video: VideoFeatures, words: Words) -> Tensor:
        """Return the scores (B,)."""
        asked, offered = (words, None) if self.option is None else words.apart()
        seen, question, _, relations = self.reader(video, asked)
        parts = [seen, self.question(question)]
        if self.option is not None and offered is not None:
            _, option = self.reader.words(offered)
            parts += [self.reader.attention(option, relations), self.option(option)]
        scores: Tensor = self.score(torch.cat(parts, dim=-1))[:, 0]
        return scores


class HCRNEncoder(Encoder):
    """HCRN for open-ended answers: the last layer gives D numbers to a decoder. (Le et al. choose one of 1,000 answers instead.)"""

    Options = HCRNOptions

    def __init__(self, sizes: InputSizes, options: HCRNOptions) -> None:
        super().__init__()
        self.fused_size = self.hidden_size = options.hidden
        self.reader = HCRNReader(sizes, options)
        self.fuse = nn.Sequential(nn.Dropout(options.dropout), nn.Linear(2 * options.hidden, options.hidden), nn.ELU())

    def forward(self, video: VideoFeatures, words: Words) -> Encoded:
        """Return what a decoder answers from. `video` has a vector a relation instead of a clip."""
        seen, state, question, relations = self.reader(video, words)
        fused = self.fuse(torch.cat((seen, state), dim=-1))
        return Encoded(fused=fused, question_state=state, question=question, question_mask=words.mask, video=relations)
