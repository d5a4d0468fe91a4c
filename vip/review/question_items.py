"""Questions with options that people answer or check: samples, questions in the form of NExT-QA, VALUE's annotations as published.

In: a file, and a folder of clips where they are at hand. Out: a `QuestionItem` a question. A file may come from a stranger: its rows are
checked by the readers of their tasks, and the name of a clip is never a path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from vip.errors import InputError
from vip.review.videos import clips_in
from vip.tasks.fiber.submissions import is_records
from vip.tasks.files import read_samples
from vip.tasks.json_rows import open_bounded
from vip.tasks.nextqa.files import Question, read_questions
from vip.tasks.records import Choice, Sample, Subtitle
from vip.tasks.value import annotations as value_files
from vip.tasks.value.datasets import BY_KEY, Dataset
from vip.untrusted import one_line, parse_json

MOST_QUESTIONS = 200_000
MOST_OPTIONS = 20
MOST_LINE_BYTES = 2**20
WRITTEN_KINDS = ("describe_keyframes", "free_text")
"""What samples ask that people answer in words, see `vip.review.written`."""
CHECKED_TASK: Literal["nextqa-mc"] = "nextqa-mc"
"""Its options are made by a program, so that people check them; those of other tasks people answer."""
KEYS_OF_VALUE = {"statement": "violin", "events": "vlep", "a4": "tvqa", "a0": "how2qa"}
"""A field that the rows of a task have; the first that is there decides."""
_SPAN = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)-(\d{1,6}(?:\.\d{1,9})?)")

FileKind = Literal["blanks", "questions", "samples"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionItem:
    """A question to answer, or whose options are checked."""

    id: str
    text: str
    options: tuple[str, ...]
    answer: int | None
    """Place of the right option; None where the file does not say."""
    video: str
    clip: Path | None
    """The video's file, where it is at hand."""
    start_s: float | None
    """Of the interval that is asked about; None: the whole video."""
    end_s: float | None
    said: tuple[Subtitle, ...]
    kind: str
    """The type of the question; empty where it has none."""
    source: Sample | Question
    """The row of the file."""
    is_verdict: bool = False
    """It asks whether an open answer is correct, see `vip.review.answer_items`."""


def kind_of_file(path: Path) -> FileKind:
    """Return what a file asks people for, by its name and its first row.

    Raises:
        InputError: it cannot be read.
    """
    if _is_table(path):
        return "questions"
    if path.suffix != ".jsonl" and is_records(path):
        return "blanks"
    row = first_row(path)
    ask = row.get("ask")
    if isinstance(ask, dict) and ask.get("kind") in WRITTEN_KINDS:
        return "samples"
    is_choice = isinstance(ask, dict) and ask.get("kind") == "choice"
    return "questions" if is_choice or "sample_id" in row or any(key in row for key in KEYS_OF_VALUE) else "blanks"


def read_question_items(path: Path, videos: Path | None) -> list[QuestionItem]:
    """Return the questions of a file in their order.

    Args:
        videos: a folder of clips, by the name of the clip or of the video.

    Raises:
        InputError: the file is damaged, has no question with options, has one twice, or too many.
    """
    clips = clips_in(videos) if videos else {}
    items = list(islice(_items(path, clips), MOST_QUESTIONS + 1))
    if not items:
        raise InputError(f"{path} has no question. Give what `vip samples` wrote, or questions as published.")
    if len(items) > MOST_QUESTIONS:
        raise InputError(f"{path} has more than {MOST_QUESTIONS:,} questions. Give a part of them.")
    seen: set[str] = set()
    for item in items:
        if item.id in seen:
            raise InputError(f"{path} has the question {one_line(item.id)[:80]} twice. Remove one.")
        seen.add(item.id)
    return items


def is_to_check(items: Iterable[QuestionItem]) -> bool:
    """Return whether people check the options of these questions, and do not answer them."""
    return all(isinstance(item.source, Question) or item.source.task == CHECKED_TASK for item in items)


# ---------------------------------------------------------------- files


def _is_table(path: Path) -> bool:
    return path.name.lower().endswith((".csv", ".csv.gz"))


def first_row(path: Path) -> Mapping[str, Any]:
    """Return the first row of a file of JSON lines; nothing where it is none."""
    with open_bounded(path, 2**40) as file:
        line = next((line for _ in range(100) if (line := file.readline(MOST_LINE_BYTES)).strip()), b"")
    row: Any = None
    with suppress(ValueError):
        row = parse_json(line)
    return row if isinstance(row, dict) else {}


def _items(path: Path, clips: Mapping[str, Path]) -> Iterator[QuestionItem]:
    if _is_table(path):
        yield from (_item_of_question(question, clips) for question in read_questions(path, CHECKED_TASK))
        return
    first = first_row(path)
    if "ask" in first:
        yield from (_item_of_sample(sample, clips, sample.start_s, sample.end_s) for sample in read_samples(path))
        return
    key = next((key for field, key in KEYS_OF_VALUE.items() if field in first), None)
    if key is None:
        raise InputError(f"{path} has no questions with options. Give what `vip samples` wrote, or questions as published.")
    yield from _items_of_value(path, BY_KEY[key], clips)


def _items_of_value(path: Path, dataset: Dataset, clips: Mapping[str, Path]) -> Iterator[QuestionItem]:
    rows = value_files.read_rows(path, dataset)
    for sample, (_, row) in zip(value_files.read_samples(path, dataset), rows, strict=True):
        yield _item_of_sample(sample, clips, *shown_interval(row.get("ts")))


def shown_interval(value: Any) -> tuple[float | None, float | None]:
    """Return the interval of a published question, `[36.6, 58.5]` or `36.6-58.5`; nothing for what is none, such as `NaN-NaN`."""
    if isinstance(value, str) and (match := _SPAN.fullmatch(value.strip())):
        value = [float(match[1]), float(match[2])]
    is_pair = isinstance(value, list) and len(value) == 2 and all(type(one) in (int, float) for one in value)
    return (float(value[0]), float(value[1])) if is_pair and 0 <= value[0] < value[1] < 10**6 else (None, None)


def _item_of_question(question: Question, clips: Mapping[str, Path]) -> QuestionItem:
    return QuestionItem(
        id=question.id,
        text=question.text,
        options=question.options,
        answer=question.answer if isinstance(question.answer, int) else None,
        video=question.video,
        clip=clips.get(question.video),
        start_s=None,
        end_s=None,
        said=(),
        kind=question.type,
        source=question,
    )


def _item_of_sample(sample: Sample, clips: Mapping[str, Path], start_s: float | None, end_s: float | None) -> QuestionItem:
    if not isinstance(sample.ask, Choice) or len(sample.ask.options) > MOST_OPTIONS:
        raise InputError(f"The sample {one_line(sample.id)[:80]} is no question with 2 to {MOST_OPTIONS} options. Give samples that are.")
    right = sample.reference.values[0] if sample.reference else None
    clip = (clips.get(sample.clip) if sample.clip else None) or clips.get(sample.video)
    is_whole = clip is not None and sample.clip is not None and clip.stem == sample.clip  # its file is the interval
    return QuestionItem(
        id=sample.id,
        text=sample.ask.question,
        options=sample.ask.options,
        answer=right if isinstance(right, int) and 0 <= right < len(sample.ask.options) else None,
        video=sample.clip or sample.video,
        clip=clip,
        start_s=None if is_whole else start_s,
        end_s=None if is_whole else end_s,
        said=tuple(piece for piece in sample.context if isinstance(piece, Subtitle)),
        kind=next(iter(sample.groups.get("type", ())), ""),
        source=sample,
    )
