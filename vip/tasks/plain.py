"""What most tasks have in common: a base class, and the metric of answers that are right or wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from vip.errors import InputError
from vip.metrics import Pair, Result
from vip.metrics.metric import score_mean
from vip.tasks.records import Prediction, Sample, TaskResult
from vip.tasks.table import Table
from vip.tasks.task import Baseline, TaskMetric


class PlainTask:
    """A task without examples in its prompts, without baselines, tables and a published form of predictions."""

    name: str
    version = 1
    demonstrates = False
    baselines: Mapping[str, Baseline] = {}
    metrics: Sequence[TaskMetric] = ()

    def read_predictions(self, path: Path, samples: Sequence[Sample]) -> Iterator[Prediction]:
        raise InputError(f"{path}: {self.name} has no published form of predictions. Give the JSON lines that `vip predict` wrote.")

    def tables(self, results: Sequence[TaskResult]) -> Sequence[Table]:
        return ()


class RightAnswers:
    """The share of predictions whose value is one of the right ones."""

    name = "exact-match"
    needs: tuple[str, ...] = ()
    signature = "exact-match|v:1"

    def check(self) -> None:
        """Nothing is needed."""

    def score(self, pairs: Sequence[tuple[Sample, Prediction]]) -> Result:
        """Return the share of right answers.

        Raises:
            InputError: a sample has no reference.
        """
        rows = []
        for sample, prediction in pairs:
            if sample.reference is None:
                raise InputError(f"{sample.id} has no reference, so nothing can be scored. Take a split with references.")
            rows.append(Pair(prediction.value, sample.reference.values, prediction.status))
        return score_mean(rows, lambda found: [float(value in right) for value, right in found], self.signature)
