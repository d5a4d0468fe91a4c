"""Samples, predictions and a metric without a library, for the tests of scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from vip.errors import BackendError
from vip.metrics import Pair, Result
from vip.metrics.metric import Status, score_mean
from vip.records import Famous, Record
from vip.tasks.description_metrics import DescriptionMetric
from vip.tasks.infilling import VideoInfilling
from vip.tasks.pairs import JoinedFile, join_files
from vip.tasks.records import (
    DescribeKeyframes,
    DescriptionText,
    FrameBudget,
    KeyframeDescription,
    Prediction,
    Reference,
    Sample,
    Score,
    TaskResult,
)
from vip.tasks.task import TaskMetric


class WordShare:
    """The share of the reference's words that a prediction has too."""

    name = "word-share"
    needs = ()
    signature = "word-share|v:1"

    def check(self) -> None:
        pass

    def score(self, pairs: Sequence[Pair[str, str]]) -> Result:
        return score_mean(pairs, lambda texts: [_share(*both) for both in texts], self.signature)


class Lacking(WordShare):
    """A metric whose library is missing."""

    name = "lacking"

    def check(self) -> None:
        raise BackendError("The metric lacking needs nothing-like-it. Run `pip install nothing-like-it`.")


def _share(prediction: str, reference: str) -> float:
    words = set(reference.split())
    return len(words & set(prediction.split())) / len(words)


class WordTask(VideoInfilling):
    """Infilling by a metric that needs no library."""

    def __init__(self, *more: WordShare) -> None:
        self.inner = (WordShare(), *more)

    @property
    def metrics(self) -> Sequence[TaskMetric]:
        return [DescriptionMetric(metric) for metric in self.inner]


def sample(
    name: str,
    *words: str,
    video: str = "v",
    groups: Mapping[str, tuple[str, ...]] | None = None,
    famous: bool = False,
    version: int = 1,
    task: str = "infilling-1",
) -> Sample:
    """A sample whose missing keyframes are described by these words, one text each; two keyframes are given."""
    kind = "famous" if famous else "dense"
    return Sample(
        id=f"{task}/{video}/{name}",
        task=task,
        task_version=version,
        video=video,
        groups=dict(groups or {}),
        context=tuple(KeyframeDescription(keyframe_id=str(place), time_s=1.0 * place, dense_caption="given") for place in range(2)),
        ask=DescribeKeyframes(count=len(words), representation=kind),
        reference=Reference(values=(tuple(description(word, famous) for word in words),)),
    )


def description(words: str, famous: bool = False) -> DescriptionText:
    """A description: for FAMOuS the words stand in each component."""
    if famous:
        return DescriptionText(famous=Famous(focus=words, action=words, mood=words, objects=(words,), setting=words))
    return DescriptionText(dense_caption=words)


def answer(of: Sample, *words: str, status: Status = "ok", engine: str = "engine") -> Prediction:
    """A prediction; without words it has no answer."""
    famous = of.ask.kind == "describe_keyframes" and of.ask.representation == "famous"
    value = tuple(description(word, famous) for word in words) if words else None
    reason = None if words else "it is not JSON"
    return Prediction(sample_id=of.id, value=value, status=status, engine=engine, reason=reason, raw=None if words else "<b>raw</b>")


def write(path: Path, rows: Iterable[Record]) -> Path:
    path.write_text("".join(row.model_dump_json() + "\n" for row in rows))
    return path


def joined(folder: Path, samples: Sequence[Sample], predictions: Sequence[Prediction], name: str = "predictions.jsonl") -> JoinedFile:
    return join_files(write(folder / "samples.jsonl", samples), write(folder / name, predictions))


def result(task: str, engine: str, representation: str = "famous", **more: object) -> TaskResult:
    """A result without samples, for tables."""
    values: dict[str, object] = {
        "task": task,
        "task_version": 1,
        "name": f"{engine}.jsonl",
        "engine": engine,
        "parameters": {"representation": representation},
        "budget": FrameBudget(frames=None),
        "n": 10,
        "unscored": {},
        "metrics": {},
        "samples_sha256": None,
        "predictions_sha256": "0" * 64,
        "versions": {},
    }
    return TaskResult.model_validate({**values, **more})


def score_of(value: float, **more: object) -> Score:
    return Score.model_validate({"value": value, "value_answered": value, "n": 10, "signature": "s", **more})
