"""nextqa-oe: answer a question about a video in a few words (Xiao et al. 2021, sections 3.1 and 4, appendix B)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import cast

from vip.errors import InputError
from vip.html.charts import Chart
from vip.metrics import Pair, Result
from vip.metrics.wups import VARIANTS, Answer, AnswerReference, Variant, Wups
from vip.prompts import load_prompt, prompts_folder
from vip.tasks.data_description import DataDescription
from vip.tasks.frames import introduce_frames
from vip.tasks.nextqa import baselines
from vip.tasks.nextqa.figure4 import figure_charts, figure_tables
from vip.tasks.nextqa.figures import describe_sets
from vip.tasks.nextqa.files import MOST_ANSWER_LETTERS, read_answers, read_token_predictions
from vip.tasks.nextqa.samples import VERSION, check_predictions, published_id, read_samples, reject_variant
from vip.tasks.nextqa.tables import nextqa_tables
from vip.tasks.records import FreeText, Prediction, Sample, TaskResult
from vip.tasks.table import Table
from vip.tasks.task import Baseline, SampleSource, TaskInfo, TaskRequest

EXACT = frozenset({"DB", "DC"})
"""Types whose answers are right or wrong."""


class AnswerWups:
    """WUPS of the answers; the best reference counts. Answers that are tokens already need no tagger."""

    def __init__(self, variant: Variant, *, wordnet: Path | None = None, tagger: Path | None = None) -> None:
        self._raw = Wups(variant, wordnet=wordnet, tagger=tagger)
        self._tokens = Wups(variant, wordnet=wordnet, tokens=True)
        self.name = self._raw.name

    @property
    def needs(self) -> tuple[str, ...]:
        return self._raw.needs

    @property
    def signature(self) -> str:
        return self._raw.signature

    def check(self) -> None:
        """Refuse the metric without WordNet; whether the tagger is needed is known when answers are."""
        self._tokens.check()

    def score(self, pairs: Sequence[tuple[Sample, Prediction]]) -> Result:
        rows = [_pair(sample, prediction) for sample, prediction in pairs]
        is_raw = any(isinstance(answer, str) for row in rows for answer in (row.prediction, *row.reference.answers))
        return (self._raw if is_raw else self._tokens).score(rows)


@dataclass(frozen=True)
class NextqaOpenEnded:
    """The open-ended task.

    Args:
        train: questions of the training set: what the baseline popular counts.
        wordnet: the folder of WordNet 3.0, or of NLTK data; by default where NLTK or Debian has it.
        tagger: the folder of the data of NLTK's tagger, or of NLTK data; by default where NLTK has it.
    """

    train: Path | None = None
    wordnet: Path | None = None
    tagger: Path | None = None

    name = "nextqa-oe"
    version = VERSION
    paper = "Xiao et al. 2021, section 3"
    info = TaskInfo(
        summary="Answer a question about causes, order or content of a video in a few words.",
        data="val.csv, test.csv and add_reference_answer_test.json of the authors' repository NExT-OE (MIT); videos of VidOR",
        needs="WordNet 3.0 and the data of NLTK's tagger to score; a folder of videos or runs, where an engine answers",
        splits=("train", "val", "test"),
        groupings=("type",),
        over_videos=True,
    )
    demonstrates = False

    @cached_property
    def metrics(self) -> tuple[AnswerWups, ...]:
        return tuple(AnswerWups(variant, wordnet=self.wordnet, tagger=self.tagger) for variant in VARIANTS)

    @property
    def baselines(self) -> Mapping[str, Baseline]:
        return baselines.open_ended(self.train)

    def with_training(self, train: Path) -> NextqaOpenEnded:
        return replace(self, train=train)

    def describe_data(self, paths: Sequence[Path]) -> DataDescription:
        return describe_sets(paths, "nextqa-oe")

    def samples(self, source: SampleSource) -> Iterator[Sample]:
        return read_samples(source, "nextqa-oe")

    def request(self, sample: Sample, demonstration: Sample | None, *, variant: int = 1) -> TaskRequest:
        reject_variant(variant)
        if not isinstance(sample.ask, FreeText) or not sample.ask.question:
            raise InputError(f"The sample {sample.id} has no question. Make samples of nextqa-oe from a file with the column question.")
        prompt = load_prompt(prompts_folder() / "tasks" / "nextqa-oe.md")
        text = prompt.render({"pictures": introduce_frames(sample), "question": sample.ask.question})
        return TaskRequest(prompt=prompt, text=text, max_tokens=64)

    def parse(self, sample: Sample, answer: str) -> Prediction:
        """Take the answer as it is; one without a word, or of several lines, is unparsed."""
        text = answer.strip()
        reason = None
        if not any(letter.isalnum() for letter in text):
            reason = "no word"
        elif "\n" in text or len(text) > MOST_ANSWER_LETTERS:
            reason = "more than one line" if "\n" in text else f"more than {MOST_ANSWER_LETTERS:,} letters"
        if reason:
            return Prediction(sample_id=sample.id, value=None, status="unparsed", raw=answer, reason=reason)
        return Prediction(sample_id=sample.id, value=text, raw=answer)

    def read_predictions(self, path: Path, samples: Sequence[Sample]) -> Iterator[Prediction]:
        """Read a published result; or a csv with the columns video, qid and prediction_tokens, words that are normalised already."""
        found = read_token_predictions(path) if path.suffix in {".csv", ".gz"} else read_answers(path)
        answers, doubled = cast("tuple[dict[str, Answer], int]", found)
        check_predictions(path, answers, samples, doubled=doubled)
        return (
            Prediction(sample_id=sample.id, value=answers[published_id(sample)]) for sample in samples if published_id(sample) in answers
        )

    def tables(self, results: Sequence[TaskResult]) -> Sequence[Table]:
        return [*nextqa_tables(results, self.name), *figure_tables(results, self.name)]

    def charts(self, results: Sequence[TaskResult]) -> Sequence[Chart]:
        return figure_charts(results, self.name)


def _pair(sample: Sample, prediction: Prediction) -> Pair[Answer, AnswerReference]:
    references = sample.reference.values if sample.reference else ()
    if not references:
        raise InputError(f"The question {sample.id} has no answer in its file, so that nothing can be scored. Give a file with answers.")
    is_exact = not EXACT.isdisjoint(sample.groups.get("type", ()))
    answers = tuple(_answer(value, sample) for value in references)
    return Pair(
        None if prediction.value is None else _answer(prediction.value, sample), AnswerReference(answers, is_exact), prediction.status
    )


def _answer(value: object, sample: Sample) -> Answer:
    if isinstance(value, str) or (isinstance(value, tuple) and all(isinstance(word, str) for word in value)):
        return cast(Answer, value)
    raise InputError(f"The answer to {sample.id} is no text. Make the predictions with nextqa-oe.")
