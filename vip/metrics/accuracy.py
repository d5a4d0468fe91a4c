"""Accuracy: the share of answers that are the right one."""

from __future__ import annotations

from collections.abc import Sequence

from vip.metrics.metric import Pair, Result, score_mean


class Accuracy:
    """The share of predictions that equal their reference, such as the index of an option."""

    name = "accuracy"
    needs: tuple[str, ...] = ()
    signature = "accuracy|v:1"

    def check(self) -> None:
        pass

    def score(self, pairs: Sequence[Pair[int, int]]) -> Result:
        return score_mean(pairs, lambda rows: [float(prediction == reference) for prediction, reference in rows], self.signature)
