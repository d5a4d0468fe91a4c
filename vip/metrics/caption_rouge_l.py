"""ROUGE-L of captions with several references, as COCO's code counts: another number than `vip.metrics.rouge_l`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from vip.metrics.caption_corpus import TOKENS, CaptionPair, CaptionTokenizer, score_corpus
from vip.metrics.metric import Result
from vip.metrics.rouge_l import common_subsequence_length

BETA = 1.2
"""How much more recall counts than precision."""


class CaptionRougeL:
    """The mean ROUGE-L of predicted captions: the F-measure of the best precision and the best recall, of one reference each.

    Args:
        tokenizer: shared with other metrics that score the same list.
    """

    name = "rouge-l-coco"
    needs: tuple[str, ...] = ()

    def __init__(self, *, tokenizer: CaptionTokenizer | None = None) -> None:
        self.tokenizer = tokenizer or CaptionTokenizer()

    @property
    def signature(self) -> str:
        return f"{self.name}|v:1|beta:{BETA:g}|best precision and recall apart|{TOKENS}"

    def check(self) -> None:
        """Nothing is needed."""

    def score(self, pairs: Sequence[CaptionPair]) -> Result:
        return score_corpus(pairs, self._score, self.signature)

    def _score(self, pairs: Sequence[CaptionPair]) -> tuple[float, Sequence[float]]:
        corpus = self.tokenizer.tokenize(pairs)
        values = [_f_measure(*both) for both in zip(corpus.predictions, corpus.references, strict=True)]
        return math.fsum(values) / len(values), values


def _f_measure(prediction: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    if not prediction:
        return 0.0
    common = [(common_subsequence_length(prediction, reference), len(reference)) for reference in references if reference]
    precision = max((length / len(prediction) for length, _ in common), default=0.0)
    recall = max((length / words for length, words in common), default=0.0)
    return (1 + BETA**2) * precision * recall / (recall + BETA**2 * precision) if precision and recall else 0.0
