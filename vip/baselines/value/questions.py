"""The head of HERO for questions: which option is right (TVQA, How2QA, VLEP), or whether a statement is true (VIOLIN).

The texts of an option stand behind every sentence, and behind the frames in the temporal transformer. The frames of an option are pooled
by attention over time, and an MLP gives its score. Where it is known which frames show the answer, start and end are predicted from the
frames pooled over the options, 0.4 times the mean of both losses (`HeroForVideoQA` of model/videoQA.py; Li et al. 2021, section 4.1).
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from vip.baselines.value.batches import NOTHING
from vip.baselines.value.encoder import VideoEncoder
from vip.baselines.value.interface import HeroSettings, LossOptions, QuestionBatch
from vip.baselines.value.layers import HIDDEN_SCORE, MLP, AttentionPool
from vip.baselines.value.retrieval import span_loss


class QuestionHead(nn.Module):
    """Scores of options."""

    def __init__(self, settings: HeroSettings) -> None:
        super().__init__()
        hidden = settings.hidden
        self.pool = AttentionPool(hidden)
        self.answer = MLP(hidden, 2 * hidden, 1)
        self.span_pool = AttentionPool(hidden)
        self.span = MLP(hidden, 2 * hidden, 2)

    def loss(self, encoder: VideoEncoder, batch: QuestionBatch, options: LossOptions) -> Tensor:
        """Return the loss of the answers, and of the spans where they are known."""
        logits, spans = self.logits(encoder, batch)
        loss = answer_loss(logits, batch.answers)
        if batch.options == 1 or not options.question_span_weight:
            return loss
        return loss + options.question_span_weight * span_loss(spans, batch.spans) / 2

    def predict(self, encoder: VideoEncoder, batch: QuestionBatch) -> Tensor:
        """Return the probabilities (B, O); with one option that it is true."""
        logits, _ = self.logits(encoder, batch)
        return logits.sigmoid() if batch.options == 1 else logits.softmax(-1)

    def logits(self, encoder: VideoEncoder, batch: QuestionBatch) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return the logits (B, O) of the options, and those (B, L) of start and end."""
        read, mask = encoder.read_with(batch.video, batch.texts, batch.text_mask)
        read = read.view(-1, batch.options, *read.shape[1:])
        mask = mask.view(-1, batch.options, *mask.shape[1:])
        logits: Tensor = self.answer(self.pool(read, mask, dim=2))[..., 0]
        spans = self.span(self.span_pool(read, mask, dim=1)).masked_fill(~mask[:, 0, :, None], HIDDEN_SCORE)
        return logits, (spans[..., 0], spans[..., 1])


def answer_loss(logits: Tensor, answers: Tensor) -> Tensor:
    """Return the cross-entropy of options (B, O), or the binary one of statements (B, 1): the mean over known answers."""
    known = answers != NOTHING
    if not known.any():
        return logits.sum() * 0.0
    if logits.shape[1] == 1:
        return functional.binary_cross_entropy_with_logits(logits[known, 0], answers[known].to(logits.dtype))
    return functional.cross_entropy(logits[known], answers[known])
