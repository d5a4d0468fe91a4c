"""fiber: fill the blank of a caption with a noun phrase that fits the video (Castro et al. 2022)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from vip.errors import InputError, UsageError
from vip.metrics import Pair, Result
from vip.metrics.blank_answers import ExactMatch, RawTokenF1, TokenF1
from vip.prompts import load_prompt, prompts_folder
from vip.tasks.described_videos import described_videos
from vip.tasks.fiber.blanks import DEFAULT_CHUNKER, BlankCounts, load_chunker, make_blanks, read_available
from vip.tasks.fiber.records import BLANK, FiberRecord, read_records
from vip.tasks.fiber.submissions import is_records, read_fillers
from vip.tasks.fiber.tables import fiber_tables
from vip.tasks.fiber.vatex import CaptionedVideo, read_captions
from vip.tasks.frames import introduce_frames
from vip.tasks.labels import read_labels
from vip.tasks.records import Blank, Prediction, Reference, Sample, TaskResult
from vip.tasks.table import Table
from vip.tasks.task import Baseline, ReadSamples, SampleSource, TaskInfo, TaskMetric, TaskRequest
from vip.untrusted import one_line

MOST_WORDS = 20  # the longest label has fewer
LABEL = "-label"


@dataclass(frozen=True)
class FillerMetric:
    """A metric of phrases, against the label and all answers, or the label alone."""

    metric: TokenF1 | RawTokenF1 | ExactMatch
    is_label_only: bool = False

    @property
    def name(self) -> str:
        return self.metric.name + (LABEL if self.is_label_only else "")

    @property
    def needs(self) -> tuple[str, ...]:
        return self.metric.needs

    @property
    def signature(self) -> str:
        rest = self.metric.signature.partition("|")[2]
        return f"{self.name}|{rest}|answers:{'label' if self.is_label_only else 'label and workers'}"

    def check(self) -> None:
        self.metric.check()

    def score(self, pairs: Sequence[tuple[Sample, Prediction]]) -> Result:
        result = self.metric.score([Pair(_phrase(prediction), self._answers(sample), prediction.status) for sample, prediction in pairs])
        return Result(
            value=result.value,
            value_answered=result.value_answered,
            per_sample=result.per_sample,
            n=result.n,
            unscored=result.unscored,
            signature=self.signature,
        )

    def _answers(self, sample: Sample) -> tuple[str, ...]:
        if sample.reference is None or sample.reference.label is None:
            raise InputError(f'The sample "{one_line(sample.id)[:80]}" has no label. Make samples of fiber again.')
        return (sample.reference.label,) if self.is_label_only else tuple(map(str, sample.reference.values))


def _phrase(prediction: Prediction) -> str | None:
    if not isinstance(prediction.value, str | None):
        raise InputError(f'The prediction of "{one_line(prediction.sample_id)[:80]}" is no text. Predict it again with fiber.')
    return prediction.value


class Fiber:
    """The task.

    Args:
        train: records whose most frequent label is the baseline; None: that of the other samples.
    """

    name = "fiber"
    version = 1
    paper = "Castro et al. 2022, section 4"
    info = TaskInfo(
        summary="Fill the blank of a caption with a noun phrase.",
        data="FIBER's train, val and test.json, of the authors; or made from VATEX's captions (CC BY 4.0), or from dense captions of vip.",
        needs="spaCy and its model en_core_web_trf, where blanks are made",
        splits=("train", "val", "test"),
        groupings=("category",),
        over_videos=True,
        settings=("chunker", "available", "labels"),
    )
    demonstrates = False
    metrics: Sequence[TaskMetric] = (
        *(FillerMetric(metric) for metric in (TokenF1(), ExactMatch(), RawTokenF1())),
        *(FillerMetric(metric, is_label_only=True) for metric in (TokenF1(), ExactMatch())),
    )

    def __init__(self, train: Path | None = None) -> None:
        self.train = train

    def with_training(self, train: Path) -> Fiber:
        """Return the task whose baseline counts the labels of a file of records."""
        return Fiber(train)

    @property
    def baselines(self) -> Mapping[str, Baseline]:
        return {"most-frequent": self._most_frequent}

    def samples(self, source: SampleSource) -> Iterator[Sample]:
        labels = read_labels(source.settings.labels)
        for sample in map(sample_of, self._records(source)):
            groups = labels.groups(sample.id, sample.video, {})
            yield sample.model_copy(update={"groups": groups}) if groups else sample

    def _records(self, source: SampleSource) -> Iterator[FiberRecord]:
        """Yield the records of files of FIBER; blanks of captions, and of the dense captions of runs and data sets."""
        settings, counts = source.settings, BlankCounts()
        available = read_available(settings.available) if settings.available else None
        for name in source.paths:
            path = Path(name)
            if path.is_file() and is_records(path):
                yield from read_records(path)
            else:
                videos = read_captions(path) if path.is_file() else _described(name)
                first = list(islice(videos, 1))  # what cannot be read is said before a chunker is asked for
                chunker = load_chunker(settings.chunker or DEFAULT_CHUNKER)
                yield from make_blanks(chain(first, videos), chunker, seed=settings.seed, available=available, counts=counts)
        for note in counts.notes():
            source.note(note)

    def read_predictions(self, path: Path, samples: Sequence[Sample]) -> Iterator[Prediction]:
        return read_fillers(path, samples)

    def request(self, sample: Sample, demonstration: Sample | None, *, variant: int = 1) -> TaskRequest:
        if variant != 1 or not isinstance(sample.ask, Blank):
            raise UsageError("fiber has one prompt, and asks for blanks alone. Leave the variant out, and give samples of fiber.")
        prompt = load_prompt(prompts_folder() / "tasks" / "fiber.md")
        return TaskRequest(
            prompt=prompt, text=prompt.render({"frames": introduce_frames(sample), "masked": sample.ask.text}), max_tokens=64
        )

    def parse(self, sample: Sample, answer: str) -> Prediction:
        """Read one phrase on one line. A sentence with the blank, several lines or too many words are unparsed."""
        phrase = answer.strip().rstrip(".").strip("\"'“”‘’").rstrip(".").strip()
        problem = None
        if not phrase or "\n" in phrase:
            problem = "no phrase on one line"
        elif BLANK in phrase or len(phrase.split()) > MOST_WORDS:
            problem = "a sentence instead of a phrase"
        if problem:
            return Prediction(sample_id=sample.id, value=None, status="unparsed", reason=problem, raw=answer)
        return Prediction(sample_id=sample.id, value=phrase, raw=answer)

    def _most_frequent(self, read: ReadSamples, seed: int) -> Iterator[Prediction]:
        """Answer each sample with the most frequent label of the training records, else of the samples of other videos."""
        labels = Counter(record.label.lower() for record in read_records(self.train)) if self.train else Counter(map(_label, read()))
        of_video: dict[str, Counter[str]] = {}
        for sample in read() if self.train is None else ():
            of_video.setdefault(sample.video, Counter())[_label(sample)] += 1
        ranking = [label for label, _ in labels.most_common()]
        for sample in read():
            own = of_video.get(sample.video, Counter())
            free = next((label for label in ranking if label not in own), None)
            candidates = [*([] if free is None else [free]), *own]
            best = max(candidates, key=lambda label, own=own: labels[label] - own[label])  # type: ignore[misc]
            yield Prediction(sample_id=sample.id, value=best)

    def tables(self, results: Sequence[TaskResult]) -> Sequence[Table]:
        return fiber_tables(results)


def sample_of(record: FiberRecord) -> Sample:
    """Return the sample of a record: its label and all answers of workers are right."""
    answers = dict.fromkeys([record.label, *(answer for group in record.additional_answers for answer in group)])
    return Sample(
        id=record.clip_id,
        task=Fiber.name,
        task_version=Fiber.version,
        video=record.video_id,
        start_s=record.video_start_time,
        end_s=record.video_end_time,
        ask=Blank(text=record.masked_caption),
        reference=Reference(values=tuple(answers), label=record.label),
    )


def _label(sample: Sample) -> str:
    return (sample.reference.label or "").lower() if sample.reference else ""


def _described(name: str) -> Iterator[CaptionedVideo]:
    """Yield the videos of a run or a data set with the dense captions of their keyframes, in order of time."""
    for video in described_videos((name,)):
        captions = [frame.description.dense_caption for frame in video.keyframes]
        times = [frame.time_s or 0.0 for frame in video.keyframes]
        yield CaptionedVideo(video.name, int(min(times)), int(max(times)) + 1, tuple(caption for caption in captions if caption))
