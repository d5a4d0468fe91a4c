"""EVQA: BlindQA and a second LSTM over the video, added (Antol et al. 2015 for pictures; Xiao et al. 2021, section 4.2).

    h = LSTM(words);  v = LSTM(clips);  score = w · (h_last + v_last) + b

Nothing relates words to clips: what EVQA gains over BlindQA is what the video says by itself. The paper and the authors' code agree.
"""

from __future__ import annotations

from pydantic import Field
from torch import Tensor, nn

from vip.baselines.nextqa.interface import Encoded, Encoder, InputSizes, ModelOptions, MultiChoiceModel, VideoFeatures, Words
from vip.baselines.nextqa.layers import WordEncoder, recurrent


class EVQAOptions(ModelOptions):
    hidden: int = Field(ge=1, le=8192)
    """Of both LSTMs."""
    dropout: float = Field(ge=0, lt=1)
    """On the word vectors; the code has none on the clips."""


class EVQAEncoder(Encoder):
    """Reads words and clips; for open-ended answers a decoder begins with the sum."""

    Options = EVQAOptions

    def __init__(self, sizes: InputSizes, options: EVQAOptions) -> None:
        super().__init__()
        self.words = WordEncoder(sizes.words, options.hidden, cell="lstm", input_dropout=options.dropout)
        self.video = recurrent("lstm", sizes.appearance + sizes.motion, options.hidden)
        self.fused_size = self.hidden_size = options.hidden

    def forward(self, video: VideoFeatures, words: Words) -> Encoded:
        outputs, hidden, _ = self.words(words)
        clips, (last, _) = self.video(video.clips)
        return Encoded(fused=hidden[-1] + last[-1], question_state=hidden[-1], question=outputs, question_mask=words.mask, video=clips)


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
