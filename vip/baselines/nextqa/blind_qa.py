"""BlindQA: answers from the words alone (Xiao et al. 2021, section 4.1). What it reaches is what questions and options give away.

    h = LSTM(words);  score = w · h_last + b

With options, the words are those of the question and of one option. The words are GloVe's (30.60 %), BERT's (25.72 %) or those of a BERT
that was fine-tuned first (43.76 %): `BertChoice` is that fine-tuning, "maximizing the correct QA pairs' probability", and what it writes
is a BERT for any model here.
"""

from __future__ import annotations

from pydantic import Field
from torch import Tensor, nn

from vip.baselines.nextqa.interface import Encoded, Encoder, InputSizes, ModelOptions, MultiChoiceModel, VideoFeatures, Words
from vip.baselines.nextqa.layers import WordEncoder


class BlindQAOptions(ModelOptions):
    hidden: int = Field(ge=1, le=8192)
    """Of the LSTM."""
    dropout: float = Field(ge=0, lt=1)
    """On the word vectors."""


class BlindQA(MultiChoiceModel):
    """The model with options."""

    Options = BlindQAOptions
    sees_video = False

    def __init__(self, sizes: InputSizes, options: BlindQAOptions) -> None:
        super().__init__()
        self.words = WordEncoder(sizes.words, options.hidden, cell="lstm", input_dropout=options.dropout)
        self.score = nn.Linear(options.hidden, 1)

    def forward(self, video: VideoFeatures, words: Words) -> Tensor:
        _, hidden, _ = self.words(words)
        scores: Tensor = self.score(hidden[-1])
        return scores.squeeze(-1)


class BlindQAEncoder(Encoder):
    """The same for open-ended answers: what a decoder begins with is the last state of the question."""

    Options = BlindQAOptions
    sees_video = False
    decoders = ("att-qns", "naive", "naive-trans", "qns-ans")

    def __init__(self, sizes: InputSizes, options: BlindQAOptions) -> None:
        super().__init__()
        self.words = WordEncoder(sizes.words, options.hidden, cell="lstm", input_dropout=options.dropout)
        self.fused_size = self.hidden_size = options.hidden

    def forward(self, video: VideoFeatures, words: Words) -> Encoded:
        outputs, hidden, _ = self.words(words)
        nothing = outputs.new_zeros(len(outputs), 0, self.hidden_size)
        return Encoded(fused=hidden[-1], question_state=hidden[-1], question=outputs, question_mask=words.mask, video=nothing)


class BertChoiceOptions(ModelOptions):
    dropout: float = Field(ge=0, lt=1)
    """Before the last layer."""


class BertChoice(MultiChoiceModel):
    """Scores a pair by the first piece of BERT, [CLS]. It is for fine-tuning BERT (BERT-FT)."""

    Options = BertChoiceOptions
    sees_video = False

    def __init__(self, sizes: InputSizes, options: BertChoiceOptions) -> None:
        super().__init__()
        self.dropout = nn.Dropout(options.dropout)
        self.score = nn.Linear(sizes.words, 1)

    def forward(self, video: VideoFeatures, words: Words) -> Tensor:
        scores: Tensor = self.score(self.dropout(words.vectors[:, 0].tanh()))
        return scores.squeeze(-1)
