"""ROUGE-L of captions with several references, as COCO's code counts: another number than `vip.metrics.rouge_l`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from vip.metrics.caption_corpus import TOKENS, CaptionCorpus, CaptionPair, CaptionTokenizer, Floats, score_corpus
from vip.metrics.metric import Result
from vip.metrics.rouge_l import common_subsequence_lengths

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
        values = self.tokenizer.tokenize(pairs).values(self.name, caption_rouge_l).tolist()
        return math.fsum(values) / len(values), values


def caption_rouge_l(corpus: CaptionCorpus) -> Floats:
    """Return the ROUGE-L of each predicted caption. (N,)"""
    return np.array([_f_measure(*both) for both in corpus.tokens()], np.float64)


def _f_measure(prediction: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    if not prediction:
        return 0.0
    some = [reference for reference in references if reference]
    common = list(common_subsequence_lengths(prediction, some))
    precision = max(common, default=0) / len(prediction)
    recall = max((length / len(reference) for length, reference in zip(common, some, strict=True)), default=0.0)
    return (1 + BETA**2) * precision * recall / (recall + BETA**2 * precision) if precision and recall else 0.0
