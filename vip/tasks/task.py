"""What a task is: how its samples are made or read, what is asked, how an answer is read, what measures it, which tables it fills.

Everything else is shared. A task of another package is found by an entry point of the group `vip.tasks`, a class without arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from vip.config import SampleSettings
from vip.html.charts import Chart
from vip.metrics import Result
from vip.prompts import Prompt
from vip.tasks.records import Prediction, Sample, TaskResult
from vip.tasks.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    """What `vip tasks` says about a task."""

    summary: str
    """One line."""
    data: str
    """Where its data comes from, with the licence where there is one."""
    needs: str = ""
    """What must be installed or at hand; empty where vip alone suffices."""
    splits: tuple[str, ...] = ()
    """As published."""
    groupings: tuple[str, ...] = ()
    """Keys of `Sample.groups` that results are split by."""
    over_videos: bool = False
    """Whether frames of videos are shown: how many, and who chooses them, are settings of its samples."""
    suite: str | None = None
    """The benchmark that it is a part of: `value`."""
    settings: tuple[str, ...] = ()
    """Settings of samples that it takes and most tasks do not: `chunker`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSource:
    """What samples are made from."""

    paths: tuple[str, ...]
    """Run folders, folders of runs, data sets under any address; or published annotation files."""
    settings: SampleSettings = field(default_factory=SampleSettings)
    references: Path | None = None
    """Second references of a published benchmark, as they are."""
    video_index: Path | None = None
    """Numbers and lengths of the videos of a published benchmark, as they are."""
    note: Callable[[str], None] = lambda text: None
    """Is given a sentence for each kind of what was left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRequest:
    """A question about a sample, before its pictures are loaded."""

    prompt: Prompt
    text: str
    """The prompt with the sample filled in; no word of the reference is in it."""
    schema: dict[str, Any] | None = None
    """JSON schema of the answer; None for free text."""
    max_tokens: int = 1024
    demonstration: str | None = None
    """Id of the sample that stands in the prompt as an example."""


class TaskMetric(Protocol):
    """A measure over the whole list of samples and predictions; libraries are loaded when it scores."""

    @property
    def name(self) -> str:
        """As tables name it: `rouge-l`."""

    @property
    def signature(self) -> str:
        """What must be equal for two values to be comparable."""

    @property
    def needs(self) -> tuple[str, ...]:
        """What must be installed or at hand, in words for people."""

    def check(self) -> None:
        """Refuse the metric where it lacks something.

        Raises:
            BackendError: a library, weights or data are missing.
        """

    def score(self, pairs: Sequence[tuple[Sample, Prediction]]) -> Result:
        """Return the result over the whole list. Predictions without an answer count as wrong ones."""


@runtime_checkable
class EncoderMetric(Protocol):
    """A metric that loads an encoder, which may be another."""

    def with_encoder(self, encoder: str) -> TaskMetric:
        """Return the metric with another encoder: a folder, or a repository of the hub.

        Raises:
            UsageError: it has none.
        """


ReadSamples = Callable[[], Iterator[Sample]]
"""Reads the samples from the beginning, as often as it is called."""

Baseline = Callable[[ReadSamples, int], Iterator[Prediction]]
"""Answers every sample, in order; takes the seed."""


class Task(Protocol):
    """A benchmark."""

    @property
    def name(self) -> str:
        """As users type it: `infilling`."""

    @property
    def version(self) -> int:
        """Counts up when a change of the task changes its scores."""

    @property
    def paper(self) -> str:
        """As one cites it: "Himakunthala et al. 2023, section 4.1"."""

    @property
    def info(self) -> TaskInfo: ...

    def samples(self, source: SampleSource) -> Iterator[Sample]:
        """Make the samples, or read them from published files as they are; a few in memory at a time.

        Raises:
            InputError: the source has none, or is damaged.
        """

    def request(self, sample: Sample, demonstration: Sample | None, *, variant: int = 1) -> TaskRequest:
        """Return the question about a sample.

        Args:
            demonstration: a sample of another video with its reference; None for tasks that show none.
            variant: which of the prompts.
        """

    def parse(self, sample: Sample, answer: str) -> Prediction:
        """Read an answer strictly: what does not fit is `unparsed`, and nothing is guessed."""

    def read_predictions(self, path: Path, samples: Sequence[Sample]) -> Iterator[Prediction]:
        """Read a published form of predictions; ours is read by `vip.tasks.files`.

        Raises:
            InputError: it is damaged; the message names the row.
        """

    @property
    def demonstrates(self) -> bool:
        """Whether its prompts show an example."""

    @property
    def baselines(self) -> Mapping[str, Baseline]:
        """What answers without a model, by name."""

    @property
    def metrics(self) -> Sequence[TaskMetric]:
        """The first is the paper's own."""

    def tables(self, results: Sequence[TaskResult]) -> Sequence[Table]:
        """Return the tables of the paper, with the published rows and those of these results; results of other tasks are left out."""


@runtime_checkable
class TrainableTask(Protocol):
    """A task some of whose baselines count answers of a training set."""

    def with_training(self, train: Path) -> Task:
        """Return the task with the file of the training set, in its published form."""


@runtime_checkable
class DrawsCharts(Protocol):
    """A task whose paper has figures of results."""

    def charts(self, results: Sequence[TaskResult]) -> Sequence[Chart]:
        """Return the figures of the paper for these results; results of other tasks are left out."""


@runtime_checkable
class ChecksAnswers(Protocol):
    """A task that says more of the answers of one file than its scores do."""

    def answer_tables(self, pairs: Sequence[tuple[Sample, Prediction]], title: str) -> Sequence[Table]:
        """Return tables of the answers themselves, such as how often each letter was chosen.

        Args:
            title: names the file.
        """
