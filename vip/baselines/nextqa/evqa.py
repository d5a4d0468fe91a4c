"""EVQA: BlindQA and a second LSTM over the video, added (Antol et al. 2015 for pictures; Xiao et al. 2021, section 4.2).

    h = LSTM(words);  v = LSTM(clips);  score = w · (h_last + v_last) + b

With options this model cannot see: w · v_last is the same for all options of a question, and drops out of their ranking and of the loss.
The paper and the authors' code both add; their EVQA is 0.9 points from BlindQA. Antol et al. multiply, which relates words to clips. The
option
`fusion` names both: "add" and "multiply".
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from vip.baselines.nextqa.interface import Encoded, Encoder, InputSizes, ModelOptions, MultiChoiceModel, VideoFeatures, Words
from vip.baselines.nextqa.layers import WordEncoder, recurrent


class EVQAOptions(ModelOptions):
    hidden: int = Field(ge=1, le=8192)
    """Of both LSTMs."""
    dropout: float = Field(ge=0, lt=1)
    """On the word vectors; the code has none on the clips."""
    fusion: Literal["add", "multiply"]
    """How the two last states become one: `add` as in the paper and the code, `multiply` as in the model that EVQA is named after."""


class EVQAEncoder(Encoder):
    """Reads words and clips; for open-ended answers a decoder begins with the sum."""

    Options = EVQAOptions

    def __init__(self, sizes: InputSizes, options: EVQAOptions) -> None:
        super().__init__()
        self.words = WordEncoder(sizes.words, options.hidden, cell="lstm", input_dropout=options.dropout)
        self.video = recurrent("lstm", sizes.appearance + sizes.motion, options.hidden)
        self.fusion = options.fusion
        self.fused_size = self.hidden_size = options.hidden

    def forward(self, video: VideoFeatures, words: Words) -> Encoded:
        outputs, hidden, _ = self.words(words)
        clips, (last, _) = self.video(video.clips)
        fused = hidden[-1] + last[-1] if self.fusion == "add" else hidden[-1] * last[-1]
        return Encoded(fused=fused, question_state=hidden[-1], question=outputs, question_mask=words.mask, video=clips)


class EVQA(MultiChoiceModel):
    """The model with options."""

    Options = EVQAOptions

    def __init__(self, sizes: InputSizes, options: EVQAOptions) -> None:
        super().__init__()
        self.encoder = EVQAEncoder(sizes, options)
        self.score = nn.Linear(options.hidden, 1)

    def forward(self, video: VideoFeatures, words: Words) -> Tensor:
        scores: Tensor = self.score(self.encoder(video, words).fused)
        return scores.squeeze(-1)
