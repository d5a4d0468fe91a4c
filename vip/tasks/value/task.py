"""The eleven tasks of VALUE on the protocol of tasks; they differ in their entry of the registry alone."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from vip.errors import InputError, UsageError
from vip.prompts import load_prompt, prompts_folder
from vip.tasks.frames import introduce_frames
from vip.tasks.records import Choice, FreeText, Prediction, Rank, Sample, Subtitle, TaskResult
from vip.tasks.table import Table
from vip.tasks.task import Baseline, ReadSamples, SampleSource, TaskInfo, TaskMetric, TaskRequest
from vip.tasks.value import suite
from vip.tasks.value.annotations import VERSION, index_advice, read_samples, read_video_index
from vip.tasks.value.channels import SubtitleFile
from vip.tasks.value.datasets import BY_KEY, PAPER, Dataset
from vip.tasks.value.metrics import value_metrics
from vip.tasks.value.submissions import read_submission
from vip.tasks.value.tables import value_tables
from vip.untrusted import one_line

TOKENS_OF_INDEX, TOKENS_OF_CAPTION = 16, 128


class ValueTask:
    """A task of VALUE.

    Args:
        key: as in the names of files: `vatex_en_r`.
    """

    version = VERSION
    demonstrates = False

    def __init__(self, key: str) -> None:
        self.dataset: Dataset = BY_KEY[key]
        self.name = self.dataset.name
        self.paper = f"{PAPER}, section 3"
        self.info = TaskInfo(
            summary=self.dataset.summary,
            data=f"Annotations of VALUE's DataRelease and EvaluationTools ({self.dataset.license}).",
            needs=index_advice(self.dataset) if self.dataset.category == "retrieval" else "",
            splits=self.dataset.splits,
            groupings=("type",),
            over_videos=self.dataset.category != "retrieval",
            suite=suite.SUITE,
        )
        self._names: dict[int, str] = {}
        self._metrics: tuple[TaskMetric, ...] = value_metrics(self.dataset)

    def samples(self, source: SampleSource) -> Iterator[Sample]:
        if source.video_index is not None:
            self._names = read_video_index(source.video_index, source.settings.split)
        subtitles = SubtitleFile(source.settings.subtitles) if source.settings.subtitles else None
        for path in source.paths:
            for sample in read_samples(Path(path), self.dataset):
                yield sample if subtitles is None else with_subtitles(sample, subtitles)

    def read_predictions(self, path: Path, samples: Sequence[Sample]) -> Iterator[Prediction]:
        if self.dataset.category == "retrieval" and not self._names:
            raise UsageError(f"Predictions of {self.name} name videos by number. {index_advice(self.dataset)}")
        return read_submission(path, self.dataset, samples, self._names)

    @property
    def metrics(self) -> Sequence[TaskMetric]:
        return self._metrics

    @property
    def baselines(self) -> Mapping[str, Baseline]:
        return {"first-option": first_option, "longest-option": longest_option} if self.dataset.category == "qa" else {}

    def tables(self, results: Sequence[TaskResult]) -> Sequence[Table]:
        return value_tables(results)

    # ------------------------------------------------------------ asking

    def request(self, sample: Sample, demonstration: Sample | None, *, variant: int = 1) -> TaskRequest:
        if variant != 1:
            raise UsageError(f"{self.name} has one prompt. Leave the variant out.")
        context = "\n".join([_introduce(sample), *_subtitles(sample)])
        if isinstance(sample.ask, Choice):
            prompt, most = load_prompt(prompts_folder() / "tasks" / "value-qa.md"), TOKENS_OF_INDEX
            options = "\n".join(f"{number}: {text}" for number, text in enumerate(sample.ask.options))
            text = prompt.render({"context": context, "question": sample.ask.question, "options": options})
        elif isinstance(sample.ask, FreeText):
            prompt, most = load_prompt(prompts_folder() / "tasks" / "value-caption.md"), TOKENS_OF_CAPTION
            text = prompt.render({"context": context, "question": sample.ask.question})
        else:
            raise UsageError(f"{self.name} ranks the videos of a corpus, which no engine answers. Give predictions of a retrieval model.")
        return TaskRequest(prompt=prompt, text=text, max_tokens=most)

    def parse(self, sample: Sample, answer: str) -> Prediction:
        """Read one number of an option, or a caption of one line. Anything else is unparsed."""
        words = one_line(answer).strip()
        if isinstance(sample.ask, Choice):
            number = re.fullmatch(r"\(?([0-9])[).:]?", words)
            index = int(number[1]) if number else -1
            if not 0 <= index < len(sample.ask.options):
                return _unparsed(sample, answer, "no number of an option alone")
            return Prediction(sample_id=sample.id, value=index, raw=answer)
        if isinstance(sample.ask, Rank) or not words:
            return _unparsed(sample, answer, "no caption")
        return Prediction(sample_id=sample.id, value=words, raw=answer)


def _introduce(sample: Sample) -> str:
    if _subtitles(sample) and not any(piece.kind == "picture" for piece in sample.context):
        return "You see nothing of the video. This is what is said in it:"
    return introduce_frames(sample) + (" This is what is said in it:" if _subtitles(sample) else "")


def _unparsed(sample: Sample, answer: str, reason: str) -> Prediction:
    return Prediction(sample_id=sample.id, value=None, status="unparsed", reason=reason, raw=answer)


def with_subtitles(sample: Sample, subtitles: SubtitleFile) -> Sample:
    """Return the sample with what is said in its video, or in the moment that is asked about, behind what it shows."""
    first, last = sample.start_s or 0.0, math.inf if sample.end_s is None else sample.end_s
    said = [one for one in subtitles.of_video(sample.clip or sample.video) if one.end_s >= first and one.start_s <= last]
    return sample.model_copy(update={"context": (*sample.context, *said)})


def _subtitles(sample: Sample) -> list[str]:
    return [f"{piece.start_s:.1f} s: {piece.text}" for piece in sample.context if isinstance(piece, Subtitle)]


def first_option(read: ReadSamples, seed: int) -> Iterator[Prediction]:
    """Answer each question with its first option."""
    for sample in read():
        yield Prediction(sample_id=sample.id, value=0)


def longest_option(read: ReadSamples, seed: int) -> Iterator[Prediction]:
    """Answer each question with the option of most words, the first of equal ones."""
    for sample in read():
        if not isinstance(sample.ask, Choice):
            raise InputError(f'The sample "{one_line(sample.id)[:80]}" has no options. Make samples of this task again.')
        lengths = [len(option.split()) for option in sample.ask.options]
        yield Prediction(sample_id=sample.id, value=lengths.index(max(lengths)))


# What the registry of tasks names.
tvr = partial(ValueTask, "tvr")
how2r = partial(ValueTask, "how2r")
yc2r = partial(ValueTask, "yc2r")
vatex_en_r = partial(ValueTask, "vatex_en_r")
tvqa = partial(ValueTask, "tvqa")
how2qa = partial(ValueTask, "how2qa")
violin = partial(ValueTask, "violin")
vlep = partial(ValueTask, "vlep")
tvc = partial(ValueTask, "tvc")
yc2c = partial(ValueTask, "yc2c")
vatex_en_c = partial(ValueTask, "vatex_en_c")
