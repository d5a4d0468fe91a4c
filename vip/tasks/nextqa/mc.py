"""nextqa-mc: choose the answer to a question about a video among five options (Xiao et al. 2021, sections 3.1 and 4)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vip.errors import InputError
from vip.html.charts import Chart
from vip.metrics import Pair, Result
from vip.metrics.accuracy import Accuracy
from vip.prompts import load_prompt, prompts_folder
from vip.tasks.data_description import DataDescription
from vip.tasks.frames import introduce_frames
from vip.tasks.nextqa import baselines
from vip.tasks.nextqa.figure4 import figure_charts, figure_tables
from vip.tasks.nextqa.figures import describe_sets
from vip.tasks.nextqa.files import LETTERS, read_choices
from vip.tasks.nextqa.letters import count_letters, letter_table
from vip.tasks.nextqa.samples import VERSION, check_predictions, count_are, first_reference, published_id, read_samples, reject_variant
from vip.tasks.nextqa.tables import nextqa_tables
from vip.tasks.records import Choice, Prediction, Sample, TaskResult
from vip.tasks.registry import SHUFFLED
from vip.tasks.table import Table
from vip.tasks.task import Baseline, SampleSource, TaskInfo, TaskRequest
from vip.wording import counted

_ANSWER = re.compile(r"(?:answer|option)?(?: is)?\s*:?\s*[(\[]?([A-Z])(?:[)\].:,]+\s*(?P<text>.*?))?\.?", re.DOTALL | re.IGNORECASE)
_ANY_LETTER = re.compile(r"(?<![A-Za-z0-9'])[A-Z](?![A-Za-z0-9'])")
_NOT_WORD = re.compile(r"[^\w]+")


class OptionAccuracy:
    """The share of questions whose right option was chosen. Groups are micro averages."""

    name = "accuracy"
    needs: tuple[str, ...] = ()
    signature = Accuracy.signature

    def check(self) -> None:
        pass

    def score(self, pairs: Sequence[tuple[Sample, Prediction]]) -> Result:
        return Accuracy().score([_pair(sample, prediction) for sample, prediction in pairs])


@dataclass(frozen=True)
class NextqaMultiChoice:
    """The task with options.

    Args:
        train: questions of the training set with their options: what the baseline popular-shortest counts.
    """

    train: Path | None = None

    name = "nextqa-mc"
    version = VERSION
    paper = "Xiao et al. 2021, section 3"
    info = TaskInfo(
        summary="Choose the answer to a question about causes, order or content of a video among five.",
        data="val.csv and test.csv of the authors' repository NExT-QA (MIT); videos of VidOR",
        needs="a folder of videos or runs, where an engine answers",
        splits=("train", "val", "test"),
        groupings=("type",),
        over_videos=True,
    )
    demonstrates = False
    metrics = (OptionAccuracy(),)

    @property
    def baselines(self) -> Mapping[str, Baseline]:
        return baselines.multi_choice(self.train)

    def with_training(self, train: Path) -> NextqaMultiChoice:
        return replace(self, train=train)

    def describe_data(self, paths: Sequence[Path]) -> DataDescription:
        return describe_sets(paths, "nextqa-mc")

    def samples(self, source: SampleSource) -> Iterator[Sample]:
        return read_samples(source, "nextqa-mc")

    def request(self, sample: Sample, demonstration: Sample | None, *, variant: int = 1) -> TaskRequest:
        reject_variant(variant)
        ask = _choice(sample)
        prompt = load_prompt(prompts_folder() / "tasks" / "nextqa-mc.md")
        options = "\n".join(f"{letter}. {option}" for letter, option in zip(LETTERS, ask.options, strict=False))
        text = prompt.render({"pictures": introduce_frames(sample), "question": ask.question, "options": options})
        return TaskRequest(prompt=prompt, text=text, max_tokens=64)

    def parse(self, sample: Sample, answer: str) -> Prediction:
        """Read one letter, alone or in front of its own option. Anything else is unparsed."""
        index, reason = _parse_letter(answer, _choice(sample).options)
        if index is None:
            return Prediction(sample_id=sample.id, value=None, status="unparsed", raw=answer, reason=reason)
        return Prediction(sample_id=sample.id, value=index, raw=answer)

    def read_predictions(self, path: Path, samples: Sequence[Sample]) -> Iterator[Prediction]:
        choices, doubled = read_choices(path)
        pairs = [(sample, choices[key]) for sample in samples if (key := published_id(sample)) in choices]
        outside = [sample.id for sample, row in pairs if not 0 <= row.prediction < len(_choice(sample).options)]
        others = [
            sample.id for sample, row in pairs if None not in (row.answer, sample.reference) and row.answer != first_reference(sample)
        ]
        problems = [f"{count_are(len(outside), 'prediction')} no index of an option, such as that of {outside[0]}"] if outside else []
        if others:
            problems.append(
                f"the right answers of {counted(len(others), 'question')} are others there, such as of {others[0]}:"
                " another split or version"
            )
        check_predictions(path, choices, samples, doubled=doubled, problems=problems)
        return (
            Prediction(sample_id=sample.id, value=choices[published_id(sample)].prediction)
            for sample in samples
            if published_id(sample) in choices
        )

    def tables(self, results: Sequence[TaskResult]) -> Sequence[Table]:
        return [*nextqa_tables(results, self.name), *figure_tables(results, self.name)]

    def charts(self, results: Sequence[TaskResult]) -> Sequence[Chart]:
        return figure_charts(results, self.name)

    def answer_tables(self, pairs: Sequence[tuple[Sample, Prediction]], title: str) -> Sequence[Table]:
        """Return how often each letter was chosen, where options were shuffled: in the published order some are right more often."""
        is_shuffled = bool(pairs) and SHUFFLED in pairs[0][0].task
        return [replace(letter_table(count_letters(pairs)), title=f"{title}: letters")] if is_shuffled else []


def _choice(sample: Sample) -> Choice:
    if not isinstance(sample.ask, Choice) or len(sample.ask.options) > len(LETTERS):
        raise InputError(f"The sample {sample.id} has no five options. Make samples of nextqa-mc again.")
    return sample.ask


def _pair(sample: Sample, prediction: Prediction) -> Pair[int, int]:
    reference = first_reference(sample)
    if not isinstance(reference, int) or not isinstance(prediction.value, int | None):
        raise InputError(f"The answer to {sample.id} is no index of an option. Make the predictions with nextqa-mc.")
    return Pair(prediction.value, reference, prediction.status)


def _parse_letter(answer: str, options: Sequence[str]) -> tuple[int | None, str | None]:
    """Return the index of the option that is named, or None and why there is none."""
    match = _ANSWER.fullmatch(answer.strip())
    if match is None:
        letters = sorted(set(_ANY_LETTER.findall(answer)) - {"I"})
        return None, f"several letters: {', '.join(letters)}" if len(letters) > 1 else "no letter alone"
    index, text = LETTERS.find(match[1].upper()), match["text"]
    if not 0 <= index < len(options):
        return None, f"{match[1]} is the letter of no option"
    if text and _plain(text) != _plain(options[index]):
        return None, f"the words behind {match[1]} are not those of its option"
    return index, None


def _plain(text: str) -> str:
    return " ".join(_NOT_WORD.sub(" ", text).casefold().split())
